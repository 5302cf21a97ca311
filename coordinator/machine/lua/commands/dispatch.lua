-- dispatch: dispatches up to `limit` ready tasks of all runs: higher priority, then round robin between runs, then file
-- order within a run, over all roles (SPEC 3). Each dispatched task is logged with its run as dispatch_task.
-- Applied: data holds how many. A run whose first task does not fit, or whose window is full, loses its turn until
-- something of it changes.
-- Events: task_queued.

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
      candidates[roles[i]] = Turn.candidate(roles[i])
    end
    local done = 0
    local one = Turn.best(candidates, roles)
    while one and done < c.limit do
      serve(c, one)
      done = done + 1
      -- What one role took of a budget, another one of the same run may lack.
      for i = 1, #roles do
        local other = candidates[roles[i]]
        if roles[i] == one.role or (other and other.run == one.run and one.run.fields.bounded == "1") then
          candidates[roles[i]] = Turn.candidate(roles[i])
        end
      end
      one = Turn.best(candidates, roles)
    end
    return "applied", "", tostring(done)
  end,
}
