-- Owns what follows an attempt that did not succeed: another one after a wait, or the end of the task.
-- Must not settle the budget (budget.lua). Counting rules are SPEC 3.

-- Seeded jitter of 0-20 %: the same run, task and attempt always wait the same (C-44).
local function jitter(run, task)
  local seed = Record.get(run, "seed") .. "|" .. task.id .. "|" .. Record.get(task, "attempt")
  return tonumber(string.sub(redis.sha1hex(seed), 1, 8), 16) / 4294967295 * 0.2
end

-- Milliseconds to wait; a provider's retry-after is a floor, 0 stays 0.
function Retry.delay(run, task, retry_after_ms)
  local base = Record.int(task, "backoff_ms")
  local tries = math.max(1, Record.int(task, "granted"))
  local wait = base
  if base > 0 then
    wait = math.min(base * 2 ^ math.min(tries - 1, 40), Record.int(task, "backoff_max_ms"))
    wait = math.floor(wait * (1 + jitter(run, task)))
  end
  return math.max(wait, retry_after_ms or 0)
end

-- Back to pending; ready at once or when the wait is over. The attempt number belongs to the next dispatch.
function Retry.wait(run, task, cause, delay, note)
  if delay > 0 then
    note.due_at = Num.text(run.now + delay)
  end
  Task.move(run, task, cause, "pending", note)
  Blocking.if_tainted(run, task)
  if Task.state(run, task) ~= "pending" then
    return
  end
  if delay > 0 then
    Task.mark(run, task, { waiting = "1", due_at = Num.text(run.now + delay) })
    Timer.task(run, task, run.now + delay)
  else
    Retry.resume(run, task)
  end
end

-- The wait is over. A requirement that was taken back meanwhile makes it wait for that instead.
function Retry.resume(run, task)
  Task.mark(run, task, { waiting = "0" })
  Readiness.consider(run, task)
end

-- The one decision after a failure: `retryable` failures use what max_attempts leaves.
function Retry.decide(run, task, cause, retryable, retry_after_ms, note)
  if retryable and Record.int(task, "granted") < Record.int(task, "max_attempts") then
    Retry.wait(run, task, cause, Retry.delay(run, task, retry_after_ms), note)
  else
    Ended.enter(run, task, cause, "failed", note)
  end
end

-- Ten in a row may be lost before they begin; the next one fails the task (SPEC 3).
Retry.most_unstarted = 10

-- An attempt that never began costs nothing: what a grant had counted is taken back. `waits`: no worker has the
-- handler, so asking again at once is useless.
function Retry.unstarted(run, task, reason, waits)
  local granted = Record.get(task, "state") == "running"
  Budget.release(run, task, granted)
  if granted then
    Record.add(task, "granted", -1)
    Record.add(run, "reports", -1)
  end
  Lease.drop(run, task, "never_started")
  if waits then
    local times = Record.int(task, "no_worker") + 1
    Record.set(task, "no_worker", times)
    Retry.wait(run, task, "never_start", math.min(1000 * 2 ^ math.min(times - 1, 10), 30000), { reason = reason })
    return
  end
  -- A worker that took more jobs ahead than it could begin says nothing about the task.
  if reason ~= "busy" then
    Record.add(task, "never_started", 1)
  end
  if Record.int(task, "never_started") > Retry.most_unstarted then
    Ended.enter(run, task, "never_start", "failed", { reason = "never_started" })
  else
    Retry.wait(run, task, "never_start", 0, { reason = reason })
  end
end
