-- Owns which ready task of a role comes first, budget included. Must not dispatch it (outbox.lua).

-- The first ready task of a role that fits the budget, with its score; nil if none does. Remembered while nothing of
-- the run becomes ready or stops being so, unless a budget could have moved meanwhile.
function Readiness.first(run, role)
  local known = run.first and run.first[role]
  if known and run.fields.bounded ~= "1" then
    return known[1], known[2]
  end
  local task, score = Readiness.look(run, role)
  run.first = run.first or {}
  run.first[role] = { task, score }
  return task, score
end

function Readiness.look(run, role)
  local lanes = redis.call("ZRANGE", Key.of("lanes", run.id, role), 0, -1)
  local best, best_score
  run.lacks = nil
  for i = 1, #lanes do
    local tokens, micros = string.match(lanes[i], "^(%d+)-(%d+)$")
    local lacks = role ~= Readiness.coordinator and Budget.refusal(run, tonumber(tokens), tonumber(micros))
    run.lacks = run.lacks or lacks
    if not lacks then
      local head = redis.call("ZRANGE", Key.of("ready", run.id, role, lanes[i]), 0, 0, "WITHSCORES")
      local score = tonumber(head[2])
      if score and (not best or score < best_score) then
        best, best_score = head[1], score
      end
    end
  end
  return best, best_score
end
