-- Owns the ordered list of reasons for which a run ends or parks (SPEC 4).
-- Must not judge (stop.lua) nor carry a stop out (stop_status.lua).

function Stop.flag(run, field)
  return Record.int(run, field) > 0
end

-- Nothing in flight and nothing ready.
function Stop.quiet(run)
  return Record.int(run, "in_flight") == 0 and Record.int(run, "ready") == 0
end

local function reached(run, field, value)
  local limit = run.fields[field]
  return limit ~= "" and value >= tonumber(limit)
end

-- The limit that keeps the first ready task (in dispatch order) from starting, or nil if any of them fits.
local function starved(run)
  if Record.int(run, "ready") == 0 or Record.int(run, "in_flight") > 0 then
    return nil
  end
  local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
  local limit, first
  for i = 1, #roles do
    local lanes = redis.call("ZRANGE", Key.of("lanes", run.id, roles[i]), 0, -1)
    for j = 1, #lanes do
      local tokens, micros = string.match(lanes[j], "^(%d+)-(%d+)$")
      local lacking = Budget.refusal(run, tonumber(tokens), tonumber(micros))
      if not lacking or roles[i] == Readiness.coordinator then
        return nil
      end
      local head = redis.call("ZRANGE", Key.of("ready", run.id, roles[i], lanes[j]), 0, 0, "WITHSCORES")
      if not first or tonumber(head[2]) < first then
        limit, first = lacking, tonumber(head[2])
      end
    end
  end
  return limit
end

-- Every required task succeeded, and none of them is in doubt.
function Stop.is_complete(run)
  return Record.int(run, "required_open") == 0 and Record.int(run, "required_tainted") == 0
end

-- SPEC 4, in its order. Each gives nil, or a limit's or rule's name ("" for none).
Stop.order = {
  { reason = "critical_failure", holds = function(run)
    return Record.get(run, "on_required_failure") == "stop" and Stop.flag(run, "required_failed") and ""
  end },
  { reason = "completed", holds = function(run)
    return Stop.is_complete(run) and (Record.get(run, "on_completion") == "stop" or Stop.quiet(run)) and ""
  end },
  { reason = "stop_rule", holds = function(run)
    return Stop.rule_that_holds(run)
  end },
  { reason = "deadline_exceeded", limit = true, holds = function(run)
    return reached(run, "deadline_at", run.now) and "deadline"
  end },
  { reason = "step_limit", limit = true, holds = function(run)
    return reached(run, "limit_max_steps", Record.int(run, "reports")) and "max_steps"
  end },
  { reason = "no_progress", limit = true, holds = function(run)
    return (reached(run, "limit_no_progress_ms", run.now - Record.int(run, "progress_at"))
      or reached(run, "limit_no_progress_steps", Record.int(run, "reports") - Record.int(run, "progress_reports")))
      and "no_progress"
  end },
  { reason = "budget_exhausted", limit = true, holds = starved },
}

-- A rule that paused the run and was passed over by an operator counts again only after it has been false.
local function is_passed(run, rule, holds)
  local text = Record.get(run, "rules_passed")
  local passed = text ~= "" and cjson.decode(text) or {}
  if not passed[rule.name] then
    return false
  elseif not holds then
    passed[rule.name] = nil
    Record.set(run, "rules_passed", next(passed) and cjson.encode(passed) or "")
  end
  return holds
end

function Stop.pass_rule(run, name)
  local text = Record.get(run, "rules_passed")
  local passed = text ~= "" and cjson.decode(text) or {}
  passed[name] = true
  Record.set(run, "rules_passed", cjson.encode(passed))
end

-- Rules are few and only read where the Team has any; the one that holds is kept for its name and its `ends`.
function Stop.rule_that_holds(run)
  local text = Record.get(run, "rules")
  if text == "" then
    return nil
  end
  local rules = cjson.decode(text)
  for i = 1, #rules do
    local holds = Rule.holds(run, rules[i].rule)
    if not is_passed(run, rules[i], holds) and holds then
      run.rule = rules[i]
      return rules[i].name
    end
  end
  return nil
end
