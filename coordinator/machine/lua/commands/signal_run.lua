-- signal_run: an operator's named signal becomes a fact for rules (SPEC 4).
-- Applied: recorded; the run is judged. Refused: unknown_run, run_stopped.
-- Events: signal | refused.

Command[#Command + 1] = {
  name = "signal_run",
  fields = { "run", "signal", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if Run.is_final(run) then
      return Gate.refuse(run, "run_stopped")
    end
    redis.call("SADD", Key.of("signals", run.id), c.signal)
    History.note(run, "signal", "", c.signal, { worker = c.source })
    run.touched = true
    return "applied", ""
  end,
}
