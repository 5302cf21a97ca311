-- Owns children that a handler makes itself, and the parent that waits for them without holding a worker (SPEC 8).
-- Must not know for_each (children.lua).

-- Makes one child of a running attempt. Background children are not waited for.
function Children.spawn(run, parent, c)
  local child = cjson.decode(c.child)
  child.id = parent.id .. "[" .. Num.text(Record.int(parent, "children")) .. "]"
  child.index = Record.int(run, "tasks")
  child.parent = parent.id
  child.depth = Record.int(parent, "depth") + 1
  child.background = c.background
  child.spawn_key = c.key
  Record.add(run, "tasks", 1)
  Record.add(run, "spawned", 1)
  Record.add(parent, "children", 1)
  if c.background == 0 then
    Record.add(parent, "children_awaited", 1)
  end
  Plan.task(run, child)
  redis.call("RPUSH", Key.of("children", run.id, parent.id), child.id)
  redis.call("HSET", Key.of("spawned", run.id), parent.id .. " " .. c.key, child.id)
  run.touched = true
  local task = Task.load(run, child.id)
  History.note(run, "task_spawned", child.id, c.background == 1 and "background" or "awaited", { via = parent.id })
  Readiness.consider(run, task)
  return child.id
end

-- A parent that waits for the children it spawned goes on when none that it waits for is open: a new attempt runs its
-- handler from the beginning, and finds them by their keys (SPEC 8).
function Children.spawned_ended(run, parent, child)
  if not Task.is(child, "background") then
    Record.add(parent, "children_awaited", -1)
    Children.resume_if_done(run, parent)
  end
end

function Children.resume_if_done(run, parent)
  local waits = Record.get(parent, "state") == "awaiting" and Record.get(parent, "waits_for") == "children"
  if waits and Record.int(parent, "children_awaited") == 0 then
    Record.set(parent, "waits_for", "")
    Task.move(run, parent, "children_ended", "pending", { reason = "children_ended" })
    Readiness.consider(run, parent)
  end
end
