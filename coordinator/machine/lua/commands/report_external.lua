-- report_external: an outside system reports on an external task (SPEC 3, 6). There is no lease to check.
-- Applied: running, succeeded, failed; result_conflict_detected freezes the task. Refused: unknown_run, unknown_task,
-- unknown_state, not_external, task_ended, wrong_state (not queued yet), duplicate_result_ignored, late_ignored
-- (run_stopped).
-- Events: attempt_started, working_repeated, task_succeeded, task_failed, and those of the verdicts.

Command[#Command + 1] = {
  name = "report_external",
  fields = { "run", "task", "state", "key", "payload", "digest", "facts", "error", "source", "tokens", "cost_micros" },
  ints = { tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task = Task.load(run, c.task)
    local key = task and External.key(c, task)
    local success = task and c.state == "completed" and Task.is(task, "external")
    local live = not Run.is_final(run)
    local verdict = success and key and Conflict.verdict(run, task, key, c.digest, live)
    if verdict == "duplicate_result_ignored" then
      return Conflict.duplicate(run, task, c, key)
    elseif verdict then
      return Conflict.detect(run, task, c, key, live)
    elseif Run.is_final(run) then
      return Conflict.late(run, task, c, key, "run_stopped", key ~= nil)
    end
    local why = External.refusal(c, run, task)
    if why then
      return Gate.refuse(run, why)
    end
    return External.apply(c, run, task, key)
  end,
}
