-- dispatch: dispatches up to `limit` ready tasks of all runs: higher priority, then round robin between runs, then file
-- order within a run, over all roles (SPEC 3). Each dispatched task is logged with its run as dispatch_task.
-- Applied: data holds how many. A run whose first task does not fit, or whose window is full, loses its turn until
-- something of it changes.
-- Events: task_queued.

-- Whose turn it is in a role: the run, its first task and that task's score, and where the run stands in the row; nil
-- if nobody can go. Runs that cannot use their turn are put out of the row.
local function candidate(role)
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
    redis.call("ZREM", Key.of("turn", role), id)
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

local function best(candidates, roles)
  local found
  for i = 1, #roles do
    local one = candidates[roles[i]]
    if one and (not found or before(one, found)) then
      found = one
    end
  end
  return found
end

local function serve(c, one)
  local run = one.run
  Run.clock(run, c.now)
  Outbox.dispatch(run, Task.load(run, one.task))
  History.log(run, Outbox.logged_as, { run = run.id, task = one.task })
  Run.settle(run)
  -- Alone in the row, a run keeps its place: whoever joins later stands behind it only once.
  if not one.alone then
    Turn.place(run, one.role)
  end
end

Command[#Command + 1] = {
  name = "dispatch",
  fields = { "limit" },
  ints = { limit = true },
  apply = function(c)
    local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
    local candidates = {}
    for i = 1, #roles do
      candidates[roles[i]] = candidate(roles[i])
    end
    local done = 0
    local one = best(candidates, roles)
    while one and done < c.limit do
      serve(c, one)
      done = done + 1
      -- What one role took of a budget, another one of the same run may lack.
      for i = 1, #roles do
        local other = candidates[roles[i]]
        if roles[i] == one.role or (other and other.run == one.run and one.run.fields.bounded == "1") then
          candidates[roles[i]] = candidate(roles[i])
        end
      end
      one = best(candidates, roles)
    end
    return "applied", "", tostring(done)
  end,
}
