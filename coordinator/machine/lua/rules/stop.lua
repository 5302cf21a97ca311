-- Owns the judgement of a run, after each transition and in the same call (SPEC 4).
-- Must not carry a stop out (stop_status.lua). The reasons and their order stand in stop_order.lua.

-- What is left when nothing moves any more (SPEC 4, 8).
local function at_rest(run)
  if Stop.flag(run, "reviews_open") then
    return "needs_review"
  elseif Stop.flag(run, "required_dead") then
    return "failed"
  elseif Stop.flag(run, "n_awaiting") then
    return "paused"
  end
  return "deadlock"
end

local rule_status = { stopped = "stop_rule", completed = "completed", failed = "failed", paused = "paused" }

-- The status that a reason leads to, and why it is locked when it parks. Completed while draining: the limit that ends
-- the drain is told beside it, not instead of it (SPEC 4).
local function status_of(run, fired, detail)
  if fired.reason == "stop_rule" then
    local status = rule_status[run.rule.ends]
    return status, status == "paused" and "stop_rule" or nil
  elseif fired.limit and Stop.is_complete(run) then
    return "completed"
  elseif fired.limit and Record.get(run, "on_limit") == "pause" then
    return "paused", detail
  end
  return fired.reason
end

-- The first reason that holds, its detail, and the others that hold too. Only the first two can hold for a run that has
-- neither limits nor rules. A parked run still ends by the first three; limits stand still.
local function judge_order(run)
  local fired, detail
  local also = {}
  local last = run.fields.bounded ~= "1" and 2 or (Run.is_open(run) and #Stop.order or 3)
  for i = 1, last do
    local held = Stop.order[i].holds(run)
    if held and not fired then
      fired, detail = Stop.order[i], held
    elseif held then
      also[#also + 1] = Stop.order[i].reason
    end
  end
  return fired, detail, also
end

-- The reasons that hold now, for a stop that none of them decided (an operator's cancel).
function Stop.reasons(run)
  local fired, _, also = judge_order(run)
  if fired then
    table.insert(also, 1, fired.reason)
  end
  return also
end

-- Judged after each transition, when no batch is open; the first reason that holds wins (SPEC 4).
function Stop.judge(run)
  if Run.is_final(run) then
    return
  end
  local fired, detail, also = judge_order(run)
  if not fired then
    Stop.rest(run)
    return
  end
  local status, locked = status_of(run, fired, detail)
  if not Run.is_open(run) and Run.parked[status] then
    return
  end
  if fired.limit and status == "completed" then
    table.insert(also, 1, fired.reason)
  end
  Stop.enter(run, status, {
    locked = locked, also = also, limit = fired.limit and detail or "",
    rule = fired.reason == "stop_rule" and detail or "",
  })
end

-- Nothing ends the run: it goes on, or, when nothing of it moves any more, it comes to rest.
function Stop.rest(run)
  if not Run.is_open(run) then
    return
  elseif Stop.quiet(run) then
    Stop.enter(run, at_rest(run), { also = {} })
  else
    Timer.run(run)
  end
end
