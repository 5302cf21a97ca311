-- lose_queued: a queued attempt's job is in no queue and nobody asked for it: `never_started` (SPEC 3).
-- Applied: pending again, or failed after too many in a row. Refused: unknown_run, run_stopped, unknown_task,
-- stale_attempt, wrong_state.
-- Events: attempt_never_started, task_failed, refused.

Command[#Command + 1] = {
  name = "lose_queued",
  fields = { "run", "task", "attempt" },
  ints = { attempt = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Outbox.queued(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    Retry.unstarted(run, task, "job_vanished", false)
    return "applied", ""
  end,
}
