-- Owns the verdicts on successes that repeat or contradict an earlier one, and on reports that come too late (SPEC 6).
-- Must not settle an attempt in the ordinary way (commands/end_attempt.lua, commands/report_external.lua).

-- How the digest stands to what came before: was it seen, and was anything else seen.
local function compare(prior, digest)
  local same, other = false, false
  for i = 1, #prior.seen do
    if prior.seen[i].digest == digest then
      same = true
    else
      other = true
    end
  end
  return same, other
end

-- "duplicate_result_ignored", "result_conflict_detected", or nil when the key says nothing against this success.
-- `live`: it comes from the task's present attempt. A digest that only late attempts sent counts as evidence, but is no
-- accepted result: the live one of the same digest is still accepted.
function Conflict.verdict(run, task, key, digest, live)
  local prior = Result.prior(run, task, key)
  if not prior then
    return nil
  end
  local same, other = compare(prior, digest)
  if live and prior.accepted == "" and Record.get(task, "conflict") ~= "1" then
    return other and "result_conflict_detected" or nil
  end
  return same and "duplicate_result_ignored" or "result_conflict_detected"
end

local function add_evidence(run, arrival)
  redis.call("RPUSH", Key.of("conflicts", run.id), cjson.encode(arrival))
end

-- Keeps one more arrival under the key; the first contradiction also lists what had arrived before it.
local function keep(run, task, c, key, listed)
  local prior = Result.prior(run, task, key) or { accepted = "", seen = {} }
  if not listed then
    for i = 1, #prior.seen do
      add_evidence(run, prior.seen[i])
    end
  end
  local arrival = Result.arrival(run, task, c, key, #prior.seen + 1)
  Result.keep_payload(run, c.digest, c.payload)
  add_evidence(run, arrival)
  prior.seen[#prior.seen + 1] = arrival
  Result.remember(run, task, key, prior)
end

-- Same key, same digest: nothing happens but the record; under an open conflict it is one more piece of evidence.
function Conflict.duplicate(run, task, c, key)
  if Record.get(task, "result_trust") == "conflicted" then
    keep(run, task, c, key, true)
    Review.touch(run, task)
  end
  Metrics.add("duplicate_results", 1)
  History.note(run, "duplicate_result_ignored", task.id, "same_digest", { digest = c.digest })
  return "refused", "duplicate_result_ignored"
end

-- Same key, other digest: the task freezes, its public result is cleared, what hangs on it is blocked or tainted.
function Conflict.detect(run, task, c, key, live)
  local listed = Record.get(task, "conflict") == "1"
  keep(run, task, c, key, listed)
  Review.touch(run, task)
  Record.set(task, "conflict", "1")
  Metrics.add("result_conflicts", 1)
  History.note(run, "result_conflict_detected", task.id, "other_digest", { digest = c.digest })
  local state = Task.state(run, task)
  if state == "running" or state == "succeeded" then
    Record.set(task, "digest", "")
    Record.set(task, "result_trust", "conflicted")
    if state == "running" then
      if live then
        Budget.settle(run, task, c.tokens, c.cost_micros)
      else
        Budget.settle_unknown(run, task)
        Cancellation.request(run, task, { reason = "conflict" })
      end
      Lease.drop(run, task, "conflicted")
    end
    if state == "succeeded" and Record.get(task, "parent") ~= "" then
      Children.take_back(run, task)
    end
    Result.clear_facts(run, task)
    Task.move(run, task, "conflict", "needs_review", { reason = "conflict", digest = c.digest })
    Review.open(run, task, "conflict")
    Batch.push(run, { "conflict", task.id, 0, task.id })
  end
  return "applied", "result_conflict_detected"
end

-- Too late to count: the run has stopped, or the lease is not the live one. Kept in the late ledger. `given`: the key
-- is not the attempt's own, so the digest is remembered beside those of other attempts.
function Conflict.late(run, task, c, key, reason, given)
  local success = c.outcome == "succeeded" or c.state == "completed"
  local would_change = 0
  if task and success and Run.is_final(run) and Task.unfinished[Record.get(task, "state")] then
    local begun = Record.get(task, "state") == "queued" or Record.get(task, "state") == "running"
    if Task.is(task, "external") and begun or Lease.refusal(task, c.attempt, c.lease) == nil then
      would_change = 1
    end
  end
  if c.digest ~= "" then
    Result.keep_payload(run, c.digest, c.payload)
  end
  if task and success and given then
    local prior = Result.prior(run, task, key) or { accepted = "", seen = {} }
    prior.seen[#prior.seen + 1] = Result.arrival(run, task, c, key, #prior.seen + 1)
    Result.remember(run, task, key, prior)
  end
  redis.call("RPUSH", Key.of("late", run.id), cjson.encode({
    task = c.task, source = c.worker or c.source or "", attempt = c.attempt or 1, at = run.now, digest = c.digest,
    verdict = "late_ignored", reason = reason, state = c.outcome or c.state, would_change = would_change,
  }))
  Metrics.add("late_results:" .. reason, 1)
  History.note(run, "late_ignored", c.task, reason, { digest = c.digest, worker = c.worker or c.source })
  return "refused", "late_ignored"
end
