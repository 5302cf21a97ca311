-- end_attempt: a worker says how an attempt ended. The verdict follows the order of SPEC 6.
-- Applied: succeeded, failed, denied, awaiting or back to pending; result_conflict_detected freezes the task.
-- Refused: unknown_run, wrong_role, duplicate_result_ignored, late_ignored (run_stopped or stale_lease), unknown_task.
-- Events: task_succeeded, task_failed, task_denied, task_awaiting, attempt_failed, duplicate_result_ignored,
-- result_conflict_detected, task_conflicted, late_ignored, refused.

local effects = {}

function effects.succeeded(c, run, task)
  Result.accept(run, task, c, Result.key_of(task, c.attempt))
  Ended.enter(run, task, "end_attempt", "succeeded", { worker = c.worker, digest = c.digest })
end

function effects.transient(c, run, task, note)
  Retry.decide(run, task, "end_attempt", true, c.retry_after_ms, note)
end

function effects.invalid_output(c, run, task, note)
  Retry.decide(run, task, "end_attempt", Task.is(task, "retry_invalid"), c.retry_after_ms, note)
end

function effects.permission(_, run, task, note)
  Ended.enter(run, task, "end_attempt", "denied", note)
end

function effects.permanent(_, run, task, note)
  Ended.enter(run, task, "end_attempt", "failed", note)
end

-- The question is kept; the attempt does not count against max_attempts (SPEC 3).
function effects.missing_input(c, run, task, note)
  Result.keep_payload(run, c.digest, c.payload)
  Record.set(task, "question_digest", c.digest)
  Record.set(task, "waits_for", "input")
  Record.add(task, "granted", -1)
  Task.move(run, task, "end_attempt", "awaiting", note)
end

local outcomes = { succeeded = "succeeded", permission = "denied", missing_input = "awaiting" }

local function apply_end(c, run, task)
  local effect = effects[c.outcome] and c.outcome or "permanent"
  Run.report(run, c.role)
  Budget.settle(run, task, c.tokens, c.cost_micros)
  Metrics.observe("attempt", run.now - Record.int(task, "started_at"))
  Lease.drop(run, task, outcomes[effect] or "failed")
  effects[effect](c, run, task, { reason = effect, worker = c.worker, error = c.error })
  return "applied", ""
end

Command[#Command + 1] = {
  name = "end_attempt",
  fields = {
    "run", "task", "attempt", "role", "worker", "lease", "outcome", "payload", "digest", "facts", "error",
    "retry_after_ms", "tokens", "cost_micros",
  },
  ints = { attempt = true, retry_after_ms = true, tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    if not run then
      return "refused", "unknown_run"
    end
    local task = Task.load(run, c.task)
    if task and Record.get(task, "role") ~= c.role then
      return Gate.refuse(run, "wrong_role")
    end
    local stale = task and Lease.refusal(task, c.attempt, c.lease)
    local key = task and Result.key_of(task, c.attempt)
    local live = not stale and not Run.is_final(run)
    local given = task and Record.get(task, "key") ~= ""
    local verdict = task and c.outcome == "succeeded" and Conflict.verdict(run, task, key, c.digest, live)
    if verdict == "duplicate_result_ignored" then
      return Conflict.duplicate(run, task, c, key)
    elseif verdict then
      return Conflict.detect(run, task, c, key, live)
    elseif Run.is_final(run) then
      return Conflict.late(run, task, c, key, "run_stopped", given)
    elseif not task then
      return Gate.refuse(run, "unknown_task")
    elseif stale then
      return Conflict.late(run, task, c, key, "stale_lease", given)
    end
    return apply_end(c, run, task)
  end,
}
