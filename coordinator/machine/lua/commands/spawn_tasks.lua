-- spawn_tasks: adds a bounded part of a parent's children; the last part parks the parent until they end (SPEC 2, 8).
-- Applied: children made, held until the list is complete. Refused: unknown_run, run_stopped, run_parked, unknown_task,
-- wrong_state, stale_version (another call made this part).
-- Events: task_spawning (first part), task_awaiting (last part), then those of the children that become ready.

local function refusal(c, run, task)
  if Run.is_final(run) then
    return "run_stopped"
  elseif not Run.is_open(run) then
    return "run_parked"
  elseif not task then
    return "unknown_task"
  end
  local state = Record.get(task, "state")
  if not Task.is(task, "for_each") or (state ~= "queued" and state ~= "running")
    or Record.get(task, "children_verdict") ~= "" then
    return "wrong_state"
  elseif Record.int(task, "children") ~= c.cursor then
    return "stale_version"
  end
  return nil
end

Command[#Command + 1] = {
  name = "spawn_tasks",
  fields = { "run", "task", "cursor", "children", "more" },
  ints = { cursor = true, more = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local parent = Task.load(run, c.task)
    local why = refusal(c, run, parent)
    if why then
      return Gate.refuse(run, why)
    end
    if Record.get(parent, "state") == "queued" then
      Task.move(run, parent, "spawn_tasks", "running", {})
      redis.call("ZADD", Key.of("internal"), run.now, Outbox.member(run, parent))
    end
    local children = cjson.decode(c.children)
    for i = 1, #children do
      local child = children[i]
      child.index = Record.int(run, "tasks")
      child.held = "1"
      child.parent = parent.id
      Record.add(run, "tasks", 1)
      Plan.task(run, child)
      redis.call("RPUSH", Key.of("children", run.id, parent.id), child.id)
    end
    Record.add(parent, "children", #children)
    if c.more == 0 then
      Children.close(run, parent)
    end
    return "applied", ""
  end,
}
