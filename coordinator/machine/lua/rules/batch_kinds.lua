-- Owns the kinds of work that a batch may hold: each walks one list or sorted set, a page at a time.
-- Must not decide what is done to one task; that is in ended, blocking, children, readiness.

local function page(key, cursor, left)
  return redis.call("LRANGE", key, cursor, cursor + left - 1)
end

-- Each kind: handles up to `left` elements from `cursor`; gives how many it saw.
local kinds = {}
Batch.kinds = kinds

function kinds.open(run, _, cursor, left)
  local names = redis.call("ZRANGE", Key.of("tasks", run.id), cursor, cursor + left - 1)
  for i = 1, #names do
    local task = Task.load(run, names[i])
    if Record.get(task, "reused") ~= "" then
      Result.reuse(run, task)
    else
      Readiness.consider(run, task)
    end
  end
  return #names
end

function kinds.ended(run, id, cursor, left)
  local task = Task.load(run, id)
  if not Task.is(task, "has_edges") then
    return 0
  end
  local edges = page(Key.of("edges", run.id, id), cursor, left)
  for i = 1, #edges do
    Ended.arrive(run, task, edges[i])
  end
  return #edges
end

-- Those whose result rests on this task's: its dependants, and the parent that collects it, which is the last.
local function relying(run, id, cursor, left)
  local edges = page(Key.of("edges", run.id, id), cursor, left)
  local parent = Record.get(Task.load(run, id), "parent")
  if #edges < left and parent ~= "" then
    edges[#edges + 1] = "r:" .. parent
  end
  return edges
end

function kinds.conflict(run, id, cursor, left, root)
  local edges = relying(run, id, cursor, left)
  for i = 1, #edges do
    Blocking.doubt(run, Task.load(run, id), root, edges[i])
  end
  return #edges
end

function kinds.withdraw(run, id, cursor, left)
  local edges = page(Key.of("edges", run.id, id), cursor, left)
  for i = 1, #edges do
    Blocking.withdraw(run, Task.load(run, id), edges[i])
  end
  return #edges
end

function kinds.unblock(run, id, cursor, left, root)
  local edges = relying(run, id, cursor, left)
  for i = 1, #edges do
    Review.unblock(run, Task.load(run, id), root, edges[i])
  end
  return #edges
end

function kinds.untaint(run, id, cursor, left, extra)
  local edges = relying(run, id, cursor, left)
  for i = 1, #edges do
    Review.untaint(run, Task.load(run, string.sub(edges[i], 3)), extra.root, extra.mode)
  end
  return #edges
end

function kinds.cancel_children(run, id, cursor, left)
  local names = page(Key.of("children", run.id, id), cursor, left)
  for i = 1, #names do
    Children.cancel(run, Task.load(run, names[i]), { reason = "parent_ended" })
  end
  return #names
end

-- Each one leaves `running` as it is lost, so the next piece begins at the front again.
function kinds.recover(run, _, _, left)
  local names = redis.call("ZRANGE", Key.of("running", run.id), 0, left - 1)
  for i = 1, #names do
    local task = Task.load(run, names[i])
    if not Task.is(task, "external") then
      Timer.lose(run, task, "expire_lease", "lost", "restored")
    else
      redis.call("ZREM", Key.of("running", run.id), names[i])
    end
  end
  return #names
end

function kinds.release(run, id, cursor, left, count)
  local parent = Task.load(run, id)
  local wanted = math.min(left, count - cursor)
  for _ = 1, wanted do
    Children.release(run, parent)
  end
  return wanted
end

function kinds.tell_canceled(run, reason, cursor, left)
  local names = redis.call("ZRANGE", Key.of("running", run.id), cursor, cursor + left - 1)
  for i = 1, #names do
    Cancellation.request(run, Task.load(run, names[i]), { reason = reason, source = run.cancel_source })
  end
  return #names
end
