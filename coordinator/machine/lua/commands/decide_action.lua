-- decide_action: a person says how a side effect ended of which nobody knows: `confirmed`, with a receipt, or `failed`.
-- A task that was in review for it goes on with a new attempt, which finds the decision (SPEC 7).
-- Applied: recorded. Repeated: recorded so already. Refused: unknown_run, unknown_task, unknown_action (there is none,
-- or its attempt still runs).
-- Events: action_confirmed | action_failed, task_rerun, run_resumed | refused.

local ends = { confirmed = true, failed = true }

local function close_review(run, task, c)
  local review = Review.load(run, Record.get(task, "review"))
  if review and review.status == "open" and review.action == c.key then
    c.decision = c.state
    Review.close(run, task, review, c)
    Task.move(run, task, "rerun", "pending", { reason = "action_decided", worker = c.source })
    Batch.push(run, { "unblock", task.id, 0, task.id })
    Stop.reopen(run, "action_decided", c.source)
    Readiness.consider(run, task)
  end
end

Command[#Command + 1] = {
  name = "decide_action",
  fields = { "run", "task", "key", "state", "payload", "digest", "reason", "source" },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task = Task.load(run, c.task)
    if not task then
      return Gate.refuse(run, "unknown_task")
    end
    local record = Action.load(run, c.task, c.key)
    if record and record.state == c.state and record.receipt == c.digest then
      return "repeated", ""
    end
    local running = record and record.attempt == Record.int(task, "attempt") and Task.state(run, task) == "running"
    local open = record and (record.state == "started" or record.state == "unknown")
    if not open or running or not ends[c.state] then
      return Gate.refuse(run, "unknown_action")
    end
    Result.keep_payload(run, c.digest, c.payload)
    Action.finish(run, record, c.state, c.digest, c.source)
    close_review(run, task, c)
    return "applied", ""
  end,
}
