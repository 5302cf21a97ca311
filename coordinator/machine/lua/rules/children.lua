-- Owns the bond between a parent and its children: places, counting, the parent's end (SPEC 2 for_each, 8).
-- Must not make children (commands/spawn_tasks.lua) nor build the list of results (the coordinator's collect).

local function wanted(parent)
  local total = Record.int(parent, "children")
  local minimum = Record.int(parent, "min_success")
  return minimum < 0 and total or minimum
end

-- Lets the next held child in; a parent has at most max_parallel of them in flight.
function Children.release(run, parent)
  local name = redis.call("LINDEX", Key.of("children", run.id, parent.id), Record.int(parent, "children_next"))
  if name then
    Record.add(parent, "children_next", 1)
    local child = Task.load(run, name)
    Record.set(child, "held", "0")
    Readiness.consider(run, child)
  end
end

-- The list of children is complete: the parent waits, the first ones are let in. An empty list is decided at once.
function Children.close(run, parent)
  redis.call("ZREM", Key.of("internal"), Outbox.member(run, parent))
  Record.set(parent, "waits_for", "children")
  Task.move(run, parent, "spawn_tasks", "awaiting", { reason = "children" })
  Children.judge(run, parent)
  if Record.get(parent, "state") == "awaiting" then
    Batch.push(run, { "release", parent.id, 0, Record.int(parent, "max_parallel") })
  end
end

-- A child ended: its place goes to the next one, and the parent may be decided.
function Children.ended(run, child)
  local parent = Task.load(run, Record.get(child, "parent"))
  Record.add(parent, "children_ended", 1)
  if Record.get(child, "state") == "succeeded" then
    Record.add(parent, "children_ok", 1)
  end
  if not Task.is(parent, "for_each") then
    Children.spawned_ended(run, parent, child)
  elseif Record.get(parent, "state") == "awaiting" then
    Children.judge(run, parent)
  end
  if Task.is(parent, "for_each") and Record.get(parent, "state") == "awaiting" then
    Children.release(run, parent)
  end
end

-- A child's accepted result is in doubt: it has not ended after all.
function Children.take_back(run, child)
  local parent = Task.load(run, Record.get(child, "parent"))
  Record.add(parent, "children_ended", -1)
  Record.add(parent, "children_ok", -1)
  if not Task.is(parent, "for_each") and not Task.is(child, "background") then
    Record.add(parent, "children_awaited", 1)
  end
end

-- Decided when all ended, or when too many failed for min_success to be reached.
function Children.judge(run, parent)
  local total, ok = Record.int(parent, "children"), Record.int(parent, "children_ok")
  local ended = Record.int(parent, "children_ended")
  local enough = ok >= wanted(parent)
  local hopeless = total - (ended - ok) < wanted(parent)
  if ended < total and not hopeless then
    return
  end
  Record.set(parent, "children_verdict", enough and "succeeded" or "failed")
  Record.set(parent, "waits_for", "")
  Task.move(run, parent, "children_ended", "pending", { reason = "children_ended" })
  Readiness.open(run, parent)
end

-- Cancels one task, a child whose parent ended without success included: at once, and whoever runs it is told.
function Children.cancel(run, task, why)
  local state = Task.state(run, task)
  if state == "queued" then
    Budget.release(run, task, false)
  elseif state == "running" then
    Cancellation.request(run, task, why)
    Budget.settle_unknown(run, task)
    Lease.drop(run, task, "canceled")
  elseif state ~= "pending" and state ~= "awaiting" then
    return
  end
  Ended.enter(run, task, "cancel", "canceled", { reason = why.reason, worker = why.source })
end
