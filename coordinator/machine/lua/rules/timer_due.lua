-- Owns what a task's timer does when it is due, by the task's state. Each gives true, or false and when it will be.
-- Must not set timers for what begins (timer.lua).

-- The attempt is over without a word of its own: class transient (SPEC 3).
function Timer.lose(run, task, cause, outcome, reason)
  Cancellation.request(run, task, { reason = reason })
  Budget.settle_unknown(run, task)
  Lease.drop(run, task, outcome)
  if outcome == "lost" then
    Metrics.add("lease_expirations", 1)
  end
  Retry.decide(run, task, cause, true, 0, { reason = reason, worker = Record.get(task, "worker") })
end

-- What was due first counts; at the same moment the start-to-close timeout, which ends the attempt whatever the
-- heartbeats say. An external task has no lease and shows no progress.
local function running(run, task, led_since)
  if Task.is(task, "for_each") then
    return false
  end
  local first, cause, outcome, reason = Record.int(task, "timeout_at"), "time_out", "timed_out", "timeout"
  if not Task.is(task, "external") then
    local patience = Record.int(task, "progress_timeout_ms")
    local stuck_at = Record.int(task, "progressed_at") + patience
    if patience > 0 and stuck_at < first then
      first, reason = stuck_at, "progress_timeout"
    end
    -- Under a new leader each live lease has one full heartbeat more: its renewals may lie unread (SPEC 7).
    local lease_until = math.max(Record.int(task, "lease_until"), led_since + Record.int(task, "heartbeat_ms"))
    if lease_until < first then
      first, cause, outcome, reason = lease_until, "expire_lease", "lost", "lease_expired"
    end
  end
  if run.now < first then
    return false, first
  end
  Timer.lose(run, task, cause, outcome, reason)
  return true
end

local function queued(run, task)
  local patience = Record.int(task, "queue_timeout_ms")
  local due_at = Record.int(task, "queued_at") + patience
  if patience == 0 or run.now < due_at then
    return false, patience > 0 and due_at
  end
  Budget.release(run, task, false)
  Lease.drop(run, task, "timed_out")
  Ended.enter(run, task, "queue_timeout", "failed", { reason = "queue_timeout" })
  return true
end

local function pending(run, task)
  local waiting, due_at = Task.is(task, "waiting"), Record.int(task, "due_at")
  if not waiting or run.now < due_at then
    return false, waiting and due_at
  end
  Timer.clear(run, task)
  run.touched = true
  Retry.resume(run, task)
  return true
end

Timer.due = { running = running, queued = queued, pending = pending }
