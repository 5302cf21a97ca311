-- Owns what waits to be handed to RQ (outbox) and to the coordinator itself (internal work of for_each parents).
-- Must not decide who is dispatched. Correctness never rests on the outbox: a second job of an attempt gets no lease, a
-- vanished one is `never_started` (DESIGN 1).

local function is_worker_task(task)
  return not Task.is(task, "external") and not Task.is(task, "for_each")
end

function Outbox.member(run, task)
  return run.id .. "|" .. task.id
end

-- How a dispatch stands in a run's log, so that `verify` can apply it alone.
Outbox.logged_as = { name = "dispatch_task", fields = { "run", "task" } }

-- Dispatches a ready task: the attempt gets its number, its reservation and its place in the outbox in one call.
-- A for_each parent has no attempt of its own: the coordinator does its work (SPEC 2).
function Outbox.dispatch(run, task)
  if not Task.is(task, "for_each") then
    Record.add(task, "attempt", 1)
    Budget.reserve(run, task)
  end
  Record.set(task, "queued_at", run.now)
  Task.move(run, task, "dispatch_task", "queued", {})
  Outbox.add(run, task)
  local patience = Record.int(task, "queue_timeout_ms")
  if patience > 0 then
    Timer.task(run, task, run.now + patience)
  end
end

-- What an outside system does needs no worker: ready is queued, in the same call, as far as the budget goes (SPEC 3).
function Outbox.dispatch_external(run)
  if not run.external_ready or Batch.is_open(run) or not Run.is_open(run) then
    return
  end
  local id = Readiness.first(run, Readiness.external)
  while id do
    Outbox.dispatch(run, Task.load(run, id))
    id = Readiness.first(run, Readiness.external)
  end
end

function Outbox.add(run, task)
  local role = Readiness.role(task)
  Record.add(run, "queued:" .. role, 1)
  if is_worker_task(task) then
    local job = { role = role, run = run.id, task = task.id, attempt = Record.int(task, "attempt") }
    redis.call("RPUSH", Key.of("outbox"), cjson.encode(job))
    redis.call("ZADD", Key.of("queued", role), run.now, Outbox.member(run, task))
  elseif Task.is(task, "for_each") then
    redis.call("ZADD", Key.of("internal"), run.now, Outbox.member(run, task))
  end
end

-- The queued task whose present attempt a report without a lease is about, or nil and the refusal.
function Outbox.queued(c, run)
  local task = Task.load(run, c.task)
  if Run.is_final(run) then
    return nil, "run_stopped"
  elseif not task then
    return nil, "unknown_task"
  elseif c.role and Record.get(task, "role") ~= c.role then
    return nil, "wrong_role"
  elseif Record.int(task, "attempt") ~= c.attempt then
    return nil, "stale_attempt"
  elseif Record.get(task, "state") ~= "queued" or not is_worker_task(task) then
    return nil, "wrong_state"
  end
  return task
end

-- Called by Task.move whenever a task leaves `queued`; the freed place lets the run's next task in.
function Outbox.forget(run, task)
  local role = Readiness.role(task)
  Record.add(run, "queued:" .. role, -1)
  if is_worker_task(task) then
    redis.call("ZREM", Key.of("queued", role), Outbox.member(run, task))
  elseif Task.is(task, "for_each") then
    redis.call("ZREM", Key.of("internal"), Outbox.member(run, task))
  end
  Turn.join(run, role)
end
