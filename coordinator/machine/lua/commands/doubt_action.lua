-- doubt_action: the handler cannot tell whether an unknown side effect was done: a person decides (SPEC 7).
-- Applied: the task needs review (kind unknown_action). Refused: unknown_run, run_stopped, unknown_task, wrong_role,
-- stale_lease, unknown_action (there is no such unknown action).
-- Events: task_in_doubt, review_opened | refused.

Command[#Command + 1] = {
  name = "doubt_action",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "key", "tokens", "cost_micros" },
  ints = { attempt = true, tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    local record = Action.load(run, task.id, c.key)
    if not record or record.state ~= "unknown" then
      return Gate.refuse(run, "unknown_action")
    end
    Budget.settle(run, task, c.tokens, c.cost_micros)
    Lease.drop(run, task, "awaiting")
    Record.add(task, "granted", -1)
    Task.move(run, task, "doubt_action", "needs_review", { reason = "unknown_action", detail = c.key })
    Review.open(run, task, "unknown_action", c.key)
    Batch.push(run, { "conflict", task.id, 0, task.id })
    return "applied", ""
  end,
}
