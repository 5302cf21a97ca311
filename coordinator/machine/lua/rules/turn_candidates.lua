-- Owns the choice of the next task over all roles, from the first one of each (SPEC 3).
-- Must not dispatch it (commands/dispatch.lua).

-- Whose turn it is in a role: the run, its first task and that task's score, and where the run stands in the row; nil
-- if nobody can go. Runs that cannot use their turn are put out of the row.
function Turn.candidate(role)
  while true do
    local row = redis.call("ZRANGE", Key.of("turn", role), 0, 1, "WITHSCORES")
    local id = row[1]
    if not id then
      return nil
    end
    local run = Run.load(id)
    if run and Run.is_open(run) and not Batch.is_open(run) and Turn.has_room(run, role) then
      local task, score = Readiness.first(run, role)
      if task then
        return { run = run, role = role, task = task, score = score, place = tonumber(row[2]), alone = #row == 2 }
      end
    end
    if run then
      Turn.lose(run, role)
    else
      redis.call("ZREM", Key.of("turn", role), id)
    end
  end
end

-- Between roles: priority, then file order within one run, else the order of service between runs.
local function before(a, b)
  local pa, pb = Turn.priority(a.score), Turn.priority(b.score)
  if pa ~= pb then
    return pa < pb
  elseif a.run == b.run then
    return a.score < b.score
  end
  return a.place < b.place
end

function Turn.best(candidates, roles)
  local found
  for i = 1, #roles do
    local one = candidates[roles[i]]
    if one and (not found or before(one, found)) then
      found = one
    end
  end
  return found
end
