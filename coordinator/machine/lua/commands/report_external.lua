-- report_external: an outside system reports on an external task (SPEC 3, 6). There is no lease to check.
-- Applied: running, succeeded, failed; result_conflict_detected freezes the task. Refused: unknown_run, unknown_task,
-- unknown_state, not_external, task_ended, wrong_state (not queued yet), duplicate_result_ignored, late_ignored
-- (run_stopped).
-- Events: attempt_started, working_repeated, task_succeeded, task_failed, and those of the verdicts.

local known = { working = true, completed = true, failed = true }

-- The key under which a completed report counts: the reporter's, else the Team's; without either there is none.
local function key_of(c, task)
  if c.key ~= "" then
    return c.key
  end
  local given = Record.get(task, "key")
  return given ~= "" and given or nil
end

local function refusal(c, run, task)
  local state = task and Task.state(run, task)
  if not task then
    return "unknown_task"
  elseif not known[c.state] then
    return "unknown_state"
  elseif not Task.is(task, "external") then
    return "not_external"
  elseif Task.ended[state] then
    return "task_ended"
  elseif state ~= "queued" and state ~= "running" then
    return "wrong_state"
  end
  return nil
end

local function begin(c, run, task)
  Lease.grant(run, task, c.source, "")
  Budget.start(run)
  Task.move(run, task, "report_external", "running", { worker = c.source })
  redis.call("ZADD", Key.of("running", run.id), run.now, task.id)
  Timer.attempt(run, task)
end

local function apply_report(c, run, task, key)
  local state = Record.get(task, "state")
  Run.report(run, Record.get(task, "role"))
  if state == "queued" then
    begin(c, run, task)
  elseif c.state == "working" then
    History.note(run, "working_repeated", task.id, "working", { worker = c.source })
  end
  if c.state == "working" then
    return "applied", ""
  end
  Budget.settle(run, task, c.tokens, c.cost_micros)
  if c.state == "completed" then
    Lease.drop(run, task, "succeeded")
    Result.accept(run, task, c, key)
    Ended.enter(run, task, "report_external", "succeeded", { worker = c.source, digest = c.digest })
  else
    Lease.drop(run, task, "failed")
    Ended.enter(run, task, "report_external", "failed", { reason = "permanent", worker = c.source, error = c.error })
  end
  return "applied", ""
end

Command[#Command + 1] = {
  name = "report_external",
  fields = { "run", "task", "state", "key", "payload", "digest", "facts", "error", "source", "tokens", "cost_micros" },
  ints = { tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    if not run then
      return "refused", "unknown_run"
    end
    local task = Task.load(run, c.task)
    local key = task and key_of(c, task)
    local success = task and c.state == "completed" and Task.is(task, "external")
    local live = not Run.is_final(run)
    local verdict = success and key and Conflict.verdict(run, task, key, c.digest, live)
    if verdict == "duplicate_result_ignored" then
      return Conflict.duplicate(run, task, c, key)
    elseif verdict then
      return Conflict.detect(run, task, c, key, live)
    elseif Run.is_final(run) then
      return Conflict.late(run, task, c, key, "run_stopped", key ~= nil)
    end
    local why = refusal(c, run, task)
    if why then
      return Gate.refuse(run, why)
    end
    return apply_report(c, run, task, key)
  end,
}
