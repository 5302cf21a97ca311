-- cancel_run: an operator ends a run; judged before all other reasons (SPEC 4). Whoever works on it is told at once.
-- Applied: canceled. Repeated: the same request id again. Refused: unknown_run, run_stopped.
-- Events: cancel_run_requested, run_stopped, cancel_requested for each running attempt | refused.

Command[#Command + 1] = {
  name = "cancel_run",
  fields = { "run", "ask", "reason", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if c.ask ~= "" and redis.call("HEXISTS", Key.of("requests", run.id), c.ask) == 1 then
      return "repeated", ""
    end
    if Run.is_final(run) then
      return Gate.refuse(run, "run_stopped")
    end
    if c.ask ~= "" then
      redis.call("HSET", Key.of("requests", run.id), c.ask, "cancel_run")
    end
    History.note(run, "cancel_run_requested", "", c.reason, { worker = c.source })
    run.cancel_source, run.cancel_reason = c.source, c.reason
    Stop.enter(run, "canceled", { also = Stop.reasons(run) })
    return "applied", ""
  end,
}
