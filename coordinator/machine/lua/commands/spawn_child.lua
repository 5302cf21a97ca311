-- spawn_child: a running attempt makes a child task, or finds the one it made before under the same key (SPEC 8).
-- `child` is a plan: one task, as in `items`; `allowed` 0: the Team does not let this role spawn for that owner.
-- Applied: the reply tells the child's id, state and, when it has ended, its result or error. Refused: unknown_run,
-- run_stopped, unknown_task, wrong_role, stale_lease, not_allowed, spawn_limit (too many, or too deep).
-- Events: task_spawned, then those of the child | refused.

local function refusal(c, run, parent)
  if c.allowed == 0 then
    return "not_allowed"
  elseif Record.int(run, "spawned") >= c.most or Record.int(parent, "depth") >= c.deepest then
    return "spawn_limit"
  end
  return nil
end

Command[#Command + 1] = {
  name = "spawn_child",
  fields = {
    "run", "task", "attempt", "role", "worker", "lease", "key", "child", "background", "allowed", "most", "deepest",
  },
  ints = { attempt = true, background = true, allowed = true, most = true, deepest = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local parent, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    local id = redis.call("HGET", Key.of("spawned", run.id), parent.id .. " " .. c.key)
    if not id then
      why = refusal(c, run, parent)
      if why then
        return Gate.refuse(run, why)
      end
      id = Children.spawn(run, parent, c)
    end
    Reply.child(c, run, Task.load(run, id))
    return "applied", ""
  end,
}
