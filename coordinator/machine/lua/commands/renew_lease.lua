-- renew_lease: the worker's handler is alive; with `progress` it also did something (SPEC 7).
-- Applied: the lease runs one full heartbeat from now. Refused: unknown_run, run_stopped, unknown_task, wrong_role,
-- stale_lease. A start-to-close timeout is not moved by it (C-06).
-- Events: none when applied (a heartbeat is no step and no progress of the run).

Command[#Command + 1] = {
  name = "renew_lease",
  fields = { "run", "task", "attempt", "role", "lease", "progress", "details" },
  ints = { attempt = true, progress = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    if c.progress == 1 then
      Record.set(task, "progressed_at", run.now)
      Record.set(task, "details", c.details)
    end
    Lease.renew(run, task)
    return "applied", ""
  end,
}
