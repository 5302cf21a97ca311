-- Owns what happens when a record that must be there is gone (somebody deleted it, or an eviction did): the run is
-- parked for a person, and nothing is made up in its place (C-37).
-- Must not repair anything.

-- A stand-in for the missing record of a known task: in a state in which nothing may be done to it, and never written.
function Integrity.ghost(run, id)
  if redis.call("ZSCORE", Key.of("tasks", run.id), id) == false then
    return nil
  end
  run.missing = id
  run.touched = true
  local ghost = Record.new("", setmetatable({ state = "needs_review" }, { __index = function() return "" end }))
  ghost.is_ghost = true
  return ghost
end

-- At the end of a call that met one: the run stands still until a person has looked at it.
function Integrity.park(run)
  if not run.missing or not Run.is_open(run) then
    return
  end
  Metrics.add("integrity_faults", 1)
  History.note(run, "integrity", run.missing, "record_missing", {})
  Review.open(run, { id = run.missing, fields = {}, dirty = {} }, "integrity", "")
  Stop.enter(run, "needs_review", { locked = "integrity", also = {} })
end
