-- end_attempt: a worker says how an attempt ended. The verdict follows the order of SPEC 6.
-- Applied: succeeded, failed, denied, awaiting or back to pending; result_conflict_detected freezes the task;
-- cancel_confirmed: an attempt that had been told to end has ended.
-- Refused: unknown_run, wrong_role, duplicate_result_ignored, late_ignored (run_stopped or stale_lease), unknown_task.
-- Events: task_succeeded, task_failed, task_denied, task_awaiting, attempt_failed, duplicate_result_ignored,
-- result_conflict_detected, task_conflicted, late_ignored, refused.

Command[#Command + 1] = {
  name = "end_attempt",
  fields = {
    "run", "task", "attempt", "role", "worker", "lease", "outcome", "payload", "digest", "facts", "error",
    "retry_after_ms", "tokens", "cost_micros",
  },
  ints = { attempt = true, retry_after_ms = true, tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task = Task.load(run, c.task)
    if task and Record.get(task, "role") ~= c.role then
      return Gate.refuse(run, "wrong_role")
    end
    local stale = task and Lease.refusal(task, c.attempt, c.lease)
    local key = task and Result.key_of(task, c.attempt)
    local live = not stale and not Run.is_final(run)
    local given = task and Record.get(task, "key") ~= ""
    -- Under a live lease only a given key can have been used before.
    local asks = task and c.outcome == "succeeded" and (given or not live)
    local verdict = asks and Conflict.verdict(run, task, key, c.digest, live)
    local settled = (stale or Run.is_final(run)) and Cancellation.answer(run, c)
    if settled == "confirmed" then
      return "applied", "cancel_confirmed"
    end
    if verdict == "duplicate_result_ignored" then
      return Conflict.duplicate(run, task, c, key)
    elseif verdict then
      return Conflict.detect(run, task, c, key, live)
    elseif Run.is_final(run) then
      return Conflict.late(run, task, c, key, "run_stopped", given)
    elseif not task then
      return Gate.refuse(run, "unknown_task")
    elseif stale then
      return Conflict.late(run, task, c, key, "stale_lease", given)
    end
    return Outcome.apply(c, run, task)
  end,
}
