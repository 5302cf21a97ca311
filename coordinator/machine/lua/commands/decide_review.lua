-- decide_review: a person closes a review: `accept` one of the digests, `supply` another result, `reject`, or `rerun`.
-- It names the state_version that it was made on: of two deciders one wins, and who saw old evidence is told (SPEC 6).
-- `tainted` says what becomes of what had started from the old result: `keep` or `rerun`.
-- Applied: decided; what the review blocked is unblocked, a parked run goes on. Refused: unknown_run, unknown_review,
-- already_decided, stale_version, unknown_digest (accept of what nobody sent), wrong_state, same_person (four eyes).
-- Events: review_accepted | review_rejected | task_rerun, those of its dependants, run_resumed | refused.

local function is_evidence(run, task, digest)
  local entries = redis.call("LRANGE", Key.of("conflicts", run.id), 0, -1)
  for i = 1, #entries do
    local entry = cjson.decode(entries[i])
    if entry.task == task.id and entry.digest == digest then
      return true
    end
  end
  return false
end

local function refusal(c, run, review, task)
  if not review then
    return "unknown_review"
  elseif review.status ~= "open" then
    return "already_decided"
  elseif c.version ~= review.state_version then
    return "stale_version"
  elseif Record.get(task, "state") ~= "needs_review" then
    return "wrong_state"
  elseif c.decision == "accept" and not is_evidence(run, task, c.digest) then
    return "unknown_digest"
  elseif Record.get(run, "four_eyes") == "1" and review.first and review.first.source == c.source then
    return "same_person"
  end
  return nil
end

-- With four eyes the first decision is only noted; the second must be the same one by somebody else.
local function needs_second(c, run, review)
  if Record.get(run, "four_eyes") ~= "1" then
    return false
  end
  local first = review.first
  if first and first.decision == c.decision and first.digest == c.digest then
    return false
  end
  review.first = { source = c.source, decision = c.decision, digest = c.digest, at = run.now }
  Review.save(run, review)
  History.note(run, "review_seconded", review.task, c.decision, { worker = c.source })
  return true
end

Command[#Command + 1] = {
  name = "decide_review",
  fields = { "run", "review", "decision", "payload", "digest", "facts", "version", "tainted", "reason", "source" },
  ints = { version = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local review = Review.load(run, c.review)
    local task = review and Task.load(run, review.task)
    c.task = task and task.id
    local why = refusal(c, run, review, task)
    if why then
      return Gate.refuse(run, why, task and task.id)
    end
    if needs_second(c, run, review) then
      return "applied", "needs_second"
    end
    Review.close(run, task, review, c)
    Review.effects[c.decision](run, task, c)
    Stop.reopen(run, "review_decided", c.source)
    return "applied", ""
  end,
}
