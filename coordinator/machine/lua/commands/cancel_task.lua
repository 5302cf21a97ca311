-- cancel_task: an operator cancels one task: canceled at once, what requires it is blocked, the rest goes on (SPEC 7).
-- Applied: canceled; a running attempt is told and has a grace. Repeated: the same request id again.
-- Refused: unknown_run, run_stopped, unknown_task, task_ended, wrong_state (a review decides about it).
-- Events: cancel_requested (running), task_canceled, then those of its dependants | refused.

Command[#Command + 1] = {
  name = "cancel_task",
  fields = { "run", "task", "ask", "reason", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if c.ask ~= "" and redis.call("HEXISTS", Key.of("requests", run.id), c.ask) == 1 then
      return "repeated", ""
    end
    if Run.is_final(run) then
      return Gate.refuse(run, "run_stopped")
    end
    local task = Task.load(run, c.task)
    if not task then
      return Gate.refuse(run, "unknown_task")
    end
    local state = Record.get(task, "state")
    if Task.ended[state] then
      return Gate.refuse(run, "task_ended")
    elseif not Task.unfinished[state] then
      return Gate.refuse(run, "wrong_state")
    end
    if c.ask ~= "" then
      redis.call("HSET", Key.of("requests", run.id), c.ask, "cancel_task")
    end
    Children.cancel(run, task, { reason = c.reason, source = c.source })
    return "applied", ""
  end,
}
