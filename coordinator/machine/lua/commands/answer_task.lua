-- answer_task: a person answers the question of a task that waits for input; once only (SPEC 3, 8).
-- Applied: pending again; the next attempt gets the answer. Repeated: the same answer again. Refused: unknown_run,
-- run_stopped, unknown_task, already_answered (another answer was given), wrong_state (it asks nothing).
-- Events: task_resumed, run_resumed | refused.

Command[#Command + 1] = {
  name = "answer_task",
  fields = { "run", "task", "question", "payload", "digest", "source" },
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
    local asks = Record.get(task, "state") == "awaiting" and Record.get(task, "waits_for") == "input"
    local current = Record.get(task, "question_digest")
    if not asks or (c.question ~= "" and c.question ~= current) then
      if Record.get(task, "answer_digest") == c.digest then
        return "repeated", ""
      end
      local answered = Record.get(task, "answer_digest") ~= ""
      return Gate.refuse(run, answered and "already_answered" or "wrong_state")
    end
    Result.keep_payload(run, c.digest, c.payload)
    Record.set(task, "answer_digest", c.digest)
    Record.set(task, "waits_for", "")
    Task.move(run, task, "answer_task", "pending", { reason = "answered", worker = c.source, digest = c.digest })
    Stop.reopen(run, "answered", c.source)
    Readiness.consider(run, task)
    return "applied", ""
  end,
}
