-- Owns what follows from an attempt's outcome when its report counts: one effect for each failure class (SPEC 3).
-- Must not give verdicts (commands/end_attempt.lua).

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

-- The handler waits for children that it spawned; the attempt is over and holds no worker (SPEC 8).
function effects.children(_, run, task, note)
  Record.set(task, "waits_for", "children")
  Record.add(task, "granted", -1)
  Task.move(run, task, "end_attempt", "awaiting", note)
  Children.resume_if_done(run, task)
end

local outcomes = { succeeded = "succeeded", permission = "denied", missing_input = "awaiting", children = "awaiting" }

-- Settles the attempt and does what its outcome means; an unknown class is `permanent` (SPEC 3).
function Outcome.apply(c, run, task)
  local effect = effects[c.outcome] and c.outcome or "permanent"
  Run.report(run, c.role)
  Budget.settle(run, task, c.tokens, c.cost_micros)
  Metrics.observe("attempt", run.now - Record.int(task, "started_at"))
  Lease.drop(run, task, outcomes[effect] or "failed")
  effects[effect](c, run, task, { reason = effect, worker = c.worker, error = c.error })
  return "applied", ""
end
