-- hand_back: a worker returns an attempt that its handler did not begin: `never_started`, at no cost (SPEC 3).
-- Applied: pending again (no_worker: after a wait), or failed after too many in a row. Refused: unknown_run,
-- run_stopped, unknown_task, wrong_role, stale_lease; without a lease stale_attempt, wrong_state.
-- Events: attempt_never_started, task_failed, refused.

Command[#Command + 1] = {
  name = "hand_back",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "reason" },
  ints = { attempt = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why
    if c.lease ~= "" then
      task, why = Lease.holder(c, run)
    else
      task, why = Outbox.queued(c, run)
    end
    if why then
      return Gate.refuse(run, why)
    end
    Retry.unstarted(run, task, c.reason, c.reason == "no_worker")
    return "applied", ""
  end,
}
