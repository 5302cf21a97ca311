-- recover_run: Redis was restored from an older copy: what was in flight is lost, what was started is unknown, and the
-- run is parked until a person has looked at it (SPEC 7, DESIGN 1).
-- Applied: parked as `paused`, locked_reason `restored`. Refused: unknown_run, run_stopped, run_parked.
-- Events: run_parked, then attempt_lost and action_unknown for each running attempt | refused.

Command[#Command + 1] = {
  name = "recover_run",
  fields = { "run", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if not Run.is_open(run) then
      return Gate.refuse(run, Run.is_final(run) and "run_stopped" or "run_parked")
    end
    Stop.enter(run, "paused", { locked = "restored", also = {} })
    Batch.push(run, { "recover", c.source, 0 })
    return "applied", ""
  end,
}
