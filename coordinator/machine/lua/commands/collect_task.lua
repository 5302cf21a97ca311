-- collect_task: ends a for_each parent with the list of its children's results, or with a failure (SPEC 2).
-- Applied: succeeded or failed. Refused: unknown_run, run_stopped, unknown_task, wrong_state (a success before the
-- children are decided included; a failure before that is a source that is no list).
-- Events: task_collecting, then task_succeeded | task_failed; those of canceled children.

Command[#Command + 1] = {
  name = "collect_task",
  fields = { "run", "task", "outcome", "payload", "digest", "facts", "error" },
  waits = true,
  logged = true,
  apply = function(c, run)
    if Run.is_final(run) then
      return Gate.refuse(run, "run_stopped")
    end
    local task = Task.load(run, c.task)
    if not task then
      return Gate.refuse(run, "unknown_task")
    end
    local state = Record.get(task, "state")
    local undecided = c.outcome == "succeeded" and Record.get(task, "children_verdict") == ""
    if not Task.is(task, "for_each") or (state ~= "queued" and state ~= "running") or undecided then
      return Gate.refuse(run, "wrong_state")
    end
    redis.call("ZREM", Key.of("internal"), Outbox.member(run, task))
    if state == "queued" then
      Task.move(run, task, "collect_task", "running", {})
    end
    if c.outcome == "succeeded" then
      Result.accept(run, task, c, nil)
      Ended.enter(run, task, "collect_task", "succeeded", { digest = c.digest })
    else
      Ended.enter(run, task, "collect_task", "failed", { reason = c.outcome, error = c.error })
    end
    return "applied", ""
  end,
}
