-- end_action: the attempt that started a side effect says how it ended: `confirmed` with a receipt, or `failed`.
-- Believed also when its lease is gone or the run has stopped: it is the one that did it (SPEC 7).
-- Applied: recorded. Repeated: it is recorded so already. Refused: unknown_run, unknown_task, wrong_role,
-- unknown_action (not started by this attempt, or decided since).
-- Events: action_confirmed, action_failed | refused.

local ends = { confirmed = true, failed = true }

Command[#Command + 1] = {
  name = "end_action",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "key", "state", "payload", "digest" },
  ints = { attempt = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task = Task.load(run, c.task)
    if not task then
      return Gate.refuse(run, "unknown_task")
    end
    if Record.get(task, "role") ~= c.role then
      return Gate.refuse(run, "wrong_role")
    end
    local record = Action.load(run, c.task, c.key)
    if record and record.attempt == c.attempt and record.state == c.state and record.receipt == c.digest then
      return "repeated", ""
    end
    local open = record and (record.state == "started" or record.state == "unknown")
    if not open or record.attempt ~= c.attempt or not ends[c.state] then
      return Gate.refuse(run, "unknown_action")
    end
    Result.keep_payload(run, c.digest, c.payload)
    Action.finish(run, record, c.state, c.digest, c.worker)
    return "applied", ""
  end,
}
