-- fire_timer: something of a task (or, with an empty task, of the run) may be due; `now` decides (SPEC 3, 7).
-- Applied: queue timeout, start-to-close timeout, lost lease, progress timeout, end of a backoff; for a run: judged.
-- Refused: unknown_run, run_stopped (its timers are taken away), not_due (moved meanwhile).
-- Events: task_failed, attempt_timed_out, attempt_lost; a run's end.

local function lose(run, task, cause, outcome, reason)
  Reply.cancel(run, task, reason)
  Budget.settle_unknown(run, task)
  Lease.drop(run, task, outcome)
  if outcome == "lost" then
    Metrics.add("lease_expirations", 1)
  end
  Retry.decide(run, task, cause, true, 0, { reason = reason, worker = Record.get(task, "worker") })
end

-- What was due first counts; at the same moment the start-to-close timeout, which ends the attempt whatever the
-- heartbeats say. An external task has no lease and shows no progress.
local function running(run, task)
  local first, cause, outcome, reason = Record.int(task, "timeout_at"), "time_out", "timed_out", "timeout"
  if not Task.is(task, "external") then
    local patience = Record.int(task, "progress_timeout_ms")
    local stuck_at = Record.int(task, "progressed_at") + patience
    if patience > 0 and stuck_at < first then
      first, reason = stuck_at, "progress_timeout"
    end
    if Record.int(task, "lease_until") < first then
      first, cause, outcome, reason = Record.int(task, "lease_until"), "expire_lease", "lost", "lease_expired"
    end
  end
  if run.now < first then
    return false
  end
  lose(run, task, cause, outcome, reason)
  return true
end

local function queued(run, task)
  local patience = Record.int(task, "queue_timeout_ms")
  if patience == 0 or run.now < Record.int(task, "queued_at") + patience then
    return false
  end
  Budget.release(run, task, false)
  Lease.drop(run, task, "timed_out")
  Ended.enter(run, task, "queue_timeout", "failed", { reason = "queue_timeout" })
  return true
end

local function pending(run, task)
  if not Task.is(task, "waiting") or run.now < Record.int(task, "due_at") then
    return false
  end
  Timer.clear(run, task)
  run.touched = true
  Retry.resume(run, task)
  return true
end

local due = { running = running, queued = queued, pending = pending }

Command[#Command + 1] = {
  name = "fire_timer",
  fields = { "run", "task" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if not run or Run.is_final(run) then
      redis.call("ZREM", Key.of("timers"), c.run .. "|" .. c.task)
      return "refused", run and "run_stopped" or "unknown_run"
    end
    if c.task == "" then
      run.touched = true
      Record.set(run, "timer_due", "")
      redis.call("ZREM", Key.of("timers"), c.run .. "|")
      return "applied", ""
    end
    local task = Task.load(run, c.task)
    local judge = task and due[Record.get(task, "state")]
    if not judge or not judge(run, task) then
      return "refused", "not_due"
    end
    return "applied", ""
  end,
}
