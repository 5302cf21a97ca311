-- Owns the second phase of a cancel: what became of an attempt that was running when it was told to end (SPEC 7).
-- Must not cancel anything itself: the first phase is the move (or the stop) that makes the attempt's report stale.
-- requested -> confirmed | completed_anyway | unconfirmed (the grace passed; a later word still replaces it).

local function field(task_id, attempt)
  return task_id .. " " .. attempt
end

local function member(run, task_id, attempt)
  return run.id .. "|" .. task_id .. "|" .. attempt
end

local function grace_ms()
  return tonumber(redis.call("HGET", Key.of("settings"), "cancel_grace_ms") or "") or 30000
end

-- Tells the worker, and waits for its word until the grace has passed. Outside systems have no lease to give back.
function Cancellation.request(run, task, why)
  if Task.is(task, "external") or Record.get(task, "lease") == "" then
    return
  end
  Reply.cancel(run, task, why.reason)
  local attempt = Record.get(task, "attempt")
  redis.call("HSET", Key.of("cancellations", run.id), field(task.id, attempt), cjson.encode({
    task = task.id, attempt = tonumber(attempt), worker = Record.get(task, "worker"), requested_at = run.now,
    reason = why.reason, source = why.source or "", outcome = "requested",
  }))
  redis.call("ZADD", Key.of("graces"), run.now + grace_ms(), member(run, task.id, attempt))
  Metrics.add("cancellations:requested", 1)
  History.note(run, "cancel_requested", task.id, why.reason, { attempt = attempt, worker = Record.get(task, "worker") })
end

-- Records what became of it; gives the outcome, or nil when no cancel of this attempt is open.
function Cancellation.settle(run, task_id, attempt, outcome)
  attempt = Num.text(tonumber(attempt))
  local key = Key.of("cancellations", run.id)
  local text = redis.call("HGET", key, field(task_id, attempt))
  local record = text and cjson.decode(text)
  if not record or (record.outcome ~= "requested" and record.outcome ~= "unconfirmed") or record.outcome == outcome then
    return nil
  end
  record.outcome, record.at = outcome, run.now
  redis.call("HSET", key, field(task_id, attempt), cjson.encode(record))
  redis.call("ZREM", Key.of("graces"), member(run, task_id, attempt))
  Metrics.add("cancellations:" .. outcome, 1)
  Metrics.observe("cancel_ack", run.now - record.requested_at)
  History.note(run, "cancel_" .. outcome, task_id, record.reason, { attempt = attempt, worker = record.worker })
  return outcome
end

-- The end of an attempt that had been told to end. A success may be late, and is then in the late ledger as well.
function Cancellation.answer(run, c)
  return Cancellation.settle(run, c.task, c.attempt, c.outcome == "canceled" and "confirmed" or "completed_anyway")
end
