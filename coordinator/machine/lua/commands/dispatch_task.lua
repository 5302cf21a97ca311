-- dispatch_task: dispatches one ready task: reserves budget, numbers the attempt, queues it (SPEC 3, 5).
-- `dispatch` does the same for many; this one lets `verify` apply them one by one.
-- Applied: queued. Refused: unknown_run, run_stopped, run_parked, unknown_task, wrong_state,
-- not_ready, over_budget.
-- Events: task_queued.

Command[#Command + 1] = {
  name = "dispatch_task",
  fields = { "run", "task" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if not Run.is_open(run) then
      return Gate.refuse(run, Run.is_final(run) and "run_stopped" or "run_parked")
    end
    local task = Task.load(run, c.task)
    if not task then
      return Gate.refuse(run, "unknown_task")
    end
    if Record.get(task, "state") ~= "pending" then
      return Gate.refuse(run, "wrong_state")
    end
    if not Task.is(task, "ready") then
      return Gate.refuse(run, "not_ready")
    end
    if Readiness.role(task) ~= Readiness.coordinator
      and not Budget.fits(run, Record.int(task, "tokens"), Record.int(task, "cost_micros")) then
      return Gate.refuse(run, "over_budget")
    end
    Outbox.dispatch(run, task)
    return "applied", ""
  end,
}
