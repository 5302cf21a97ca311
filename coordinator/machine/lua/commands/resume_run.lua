-- resume_run: an operator lets a parked run go on, with limits raised (SPEC 5).
-- `raises` is a plan: JSON array of [limit field, value, 1 if it is added to the limit].
-- Applied: running, and judged again at once. Refused: unknown_run, run_stopped, not_parked.
-- Events: limit_raised for each, run_resumed; a run that still exceeds a limit parks again.

local raisable = {
  limit_step_budget = true, limit_max_steps = true, limit_tokens = true, limit_cost = true, limit_deadline_ms = true,
  limit_no_progress_ms = true, limit_no_progress_steps = true,
}

-- Adding to a limit that the Team does not set would make one: it stays unlimited.
local function raise(run, field, value, is_added, source)
  local old = Record.get(run, field)
  if old == "" and is_added == 1 then
    return
  end
  local new = is_added == 1 and (tonumber(old) or 0) + value or value
  Record.set(run, field, new)
  Record.set(run, "bounded", "1")
  if field == "limit_deadline_ms" then
    local before = tonumber(old) or 0
    local at = tonumber(Record.get(run, "deadline_at")) or Record.int(run, "created_at")
    Record.set(run, "deadline_at", at + new - before)
  end
  History.note(run, "limit_raised", "", field, { worker = source, detail = old .. " -> " .. Num.text(new) })
end

Command[#Command + 1] = {
  name = "resume_run",
  fields = { "run", "raises", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if Run.is_final(run) then
      return Gate.refuse(run, "run_stopped")
    end
    if Run.is_open(run) then
      return Gate.refuse(run, "not_parked")
    end
    local raises = cjson.decode(c.raises)
    for i = 1, #raises do
      if raisable[raises[i][1]] then
        raise(run, raises[i][1], raises[i][2], raises[i][3], c.source)
      end
    end
    if Record.get(run, "locked_reason") == "stop_rule" then
      Stop.pass_rule(run, Record.get(run, "stop_rule"))
    end
    Stop.reopen(run, "resumed", c.source)
    return "applied", ""
  end,
}
