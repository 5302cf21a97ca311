-- Owns the question whether a pending task may be dispatched, and the lanes in which ready tasks stand.
-- Must not dispatch (commands/dispatch_task.lua). A lane is one reserve within a role, so that a task which does not
-- fit the budget is passed over without being looked at.

Readiness.external = "~external"
Readiness.coordinator = "~coordinator"

-- Where the task queues: its role; outside systems and for_each parents have rows of their own.
function Readiness.role(task)
  if Task.is(task, "external") then
    return Readiness.external
  elseif Task.is(task, "for_each") then
    return Readiness.coordinator
  end
  return Record.get(task, "role")
end

function Readiness.lane(task)
  return Num.text(Record.int(task, "tokens")) .. "-" .. Num.text(Record.int(task, "cost_micros"))
end

-- Requirements are sets of what is still missing: a repeated arrival changes nothing (C-14).
local function is_met(run, task)
  if Record.int(task, "requires") + Record.int(task, "after") > 0 then
    if redis.call("SCARD", Key.of("unmet", run.id, task.id)) > 0 then
      return false
    end
  end
  return Record.int(task, "any_ok") >= Record.int(task, "any_count")
end

-- Called whenever something that the task waits for has changed. Order: met, `when`, capability, ready (SPEC 3).
function Readiness.consider(run, task)
  if Task.state(run, task) ~= "pending" or Task.is(task, "ready") or Task.is(task, "waiting") then
    return
  end
  -- What it started from is in doubt: coming back (a retry, an answer) it would start from the same doubt.
  Blocking.if_tainted(run, task)
  if Task.is(task, "tainted") or Task.is(task, "held") or not is_met(run, task) then
    return
  end
  local when = Record.get(task, "when")
  if when ~= "" and not Rule.holds(run, cjson.decode(when)) then
    Ended.enter(run, task, "skip", "skipped", { reason = "when" })
  elseif not Readiness.may(run, task) then
    Ended.enter(run, task, "deny", "denied", { reason = "capability" })
  else
    Readiness.open(run, task)
  end
end

-- A requirement was taken back: what had been ready for it waits again.
function Readiness.reconsider(run, task)
  if Task.is(task, "ready") and not is_met(run, task) then
    Readiness.close(run, task)
  end
end

-- The owner's right to the capability: judged when the task becomes ready, before the budget (SPEC 3).
function Readiness.may(run, task)
  if Task.is(task, "external") and Record.get(task, "role") == "" then
    return true
  end
  local right = Record.get(task, "role") .. " " .. Record.get(task, "capability")
  return redis.call("SISMEMBER", Key.of("capabilities", run.id), right) == 1
end

function Readiness.open(run, task)
  local role, lane = Readiness.role(task), Readiness.lane(task)
  -- Higher priority first, then file order; both fit exactly in a double.
  local score = Record.int(task, "index") - Record.int(task, "priority") * 4294967296
  redis.call("ZADD", Key.of("ready", run.id, role, lane), score, task.id)
  redis.call("ZADD", Key.of("lanes", run.id, role), 0, lane)
  redis.call("ZADD", Key.of("roles"), 0, role)
  run.first = nil
  Task.mark(run, task, { ready = "1" })
  run.external_ready = run.external_ready or role == Readiness.external
  Turn.join(run, role, score)
end

function Readiness.close(run, task)
  local role, lane = Readiness.role(task), Readiness.lane(task)
  local ready = Key.of("ready", run.id, role, lane)
  redis.call("ZREM", ready, task.id)
  if redis.call("EXISTS", ready) == 0 then
    redis.call("ZREM", Key.of("lanes", run.id, role), lane)
  end
  run.first = nil
  Task.mark(run, task, { ready = "0" })
end
