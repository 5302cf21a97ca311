-- dispatch: dispatches up to `limit` ready tasks of all runs, role by role: priority, round robin, file order (SPEC 3).
-- Applied: data holds how many. A run whose first task does not fit, or whose window is full, loses its turn until
-- something of it changes. Each dispatched task is logged with its run as dispatch_task.
-- Events: task_queued.

-- The run whose turn it is in this role, or nil; runs that cannot use their turn are put out of the row.
local function next_run(role)
  while true do
    local id = redis.call("ZRANGE", Key.of("turn", role), 0, 0)[1]
    if not id then
      return nil
    end
    local run = Run.load(id)
    if run and Run.is_open(run) and not Batch.is_open(run) and Turn.has_room(run, role) then
      local task = Readiness.first(run, role)
      if task then
        return run, task
      end
    end
    redis.call("ZREM", Key.of("turn", role), id)
  end
end

Command[#Command + 1] = {
  name = "dispatch",
  fields = { "limit" },
  ints = { limit = true },
  apply = function(c)
    local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
    local done = 0
    for i = 1, #roles do
      local run, task = next_run(roles[i])
      while run and done < c.limit do
        Run.clock(run, c.now)
        Outbox.dispatch(run, Task.load(run, task))
        History.log(run, { name = "dispatch_task", fields = { "run", "task" } }, { run = run.id, task = task })
        Run.settle(run)
        Turn.place(run, roles[i])
        done = done + 1
        run, task = next_run(roles[i])
      end
    end
    return "applied", "", tostring(done)
  end,
}
