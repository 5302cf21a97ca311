-- Owns what a reviewer's decision does to the task, to what it had blocked and to what had started from it (SPEC 6).
-- Must not check the decision (commands/decide_review.lua).

local function take_result(run, task, c)
  Result.keep_payload(run, c.digest, c.payload)
  Record.set(task, "digest", c.digest)
  Record.set(task, "result_trust", "reviewed")
  Record.set(task, "conflict", "")
  if c.facts ~= "" and c.facts ~= "[]" then
    redis.call("SADD", Key.of("facts", run.id), unpack(cjson.decode(c.facts)))
    Record.set(task, "facts", c.facts)
  end
end

-- A decided key: the accepted digest is the task's, so that a repeat of it is a duplicate and another one a conflict.
local function settle_keys(run, task, c)
  local key = Result.key(task)
  local prior = Result.prior(run, task, key) or { seen = {} }
  prior.accepted = c.digest
  prior.seen[#prior.seen + 1] = Result.arrival(run, task, c, key, #prior.seen + 1)
  Result.remember(run, task, key, prior)
end

local function accept(run, task, c)
  take_result(run, task, c)
  settle_keys(run, task, c)
  Ended.enter(run, task, "accept_result", "succeeded", { reason = c.decision, worker = c.source, digest = c.digest })
  Batch.push(run, { "unblock", task.id, 0, task.id })
  Batch.push(run, { "untaint", task.id, 0, { root = task.id, mode = c.tainted } })
end

-- A new try, whatever max_attempts says; what was sent under the old ones stays evidence and binds no more.
function Review.rerun(run, task, source)
  redis.call("HDEL", Key.of("keys", run.id), task.id .. " " .. Result.key(task))
  Result.clear_facts(run, task)
  Task.mark(run, task, { tainted = "0" })
  for _, field in ipairs({ "digest", "result_trust", "conflict", "error", "children_verdict" }) do
    Record.set(task, field, "")
  end
  Record.set(task, "max_attempts", math.max(Record.int(task, "max_attempts"), Record.int(task, "granted") + 1))
  Task.move(run, task, "rerun", "pending", { reason = "rerun", worker = source })
  Batch.push(run, { "withdraw", task.id, 0 })
  Readiness.consider(run, task)
end

Review.effects = {
  accept = accept,
  supply = accept,
  reject = function(run, task, c)
    Record.set(task, "result_trust", "rejected")
    Ended.enter(run, task, "reject_result", "failed", { reason = "rejected", worker = c.source })
    Batch.push(run, { "untaint", task.id, 0, { root = task.id, mode = "keep" } })
  end,
  rerun = function(run, task, c)
    Review.rerun(run, task, c.source)
    Batch.push(run, { "unblock", task.id, 0, task.id })
    Batch.push(run, { "untaint", task.id, 0, { root = task.id, mode = c.tainted } })
  end,
}

-- What still keeps a dependant from running, among the requirements that it misses; sorted, to be always the same.
local function other_cause(run, dependant)
  local missing = redis.call("SMEMBERS", Key.of("unmet", run.id, dependant.id))
  table.sort(missing)
  for i = 1, #missing do
    local other = Task.load(run, string.sub(missing[i], 3))
    local state = Task.state(run, other)
    local hopeless = state == "needs_review" or (Task.ended[state] and state ~= "succeeded")
    if hopeless and string.sub(missing[i], 1, 1) == "r" then
      return other
    end
  end
  return nil
end

-- The review that blocked this dependant is decided: it waits again, or is blocked by what else is in its way.
function Review.unblock(run, source, root, edge)
  local kind, id = string.sub(edge, 1, 1), string.sub(edge, 3)
  local dependant = Task.load(run, id)
  local state = Task.state(run, source)
  if kind == "o" and state == "succeeded" then
    Record.add(dependant, "any_ok", 1)
    Record.add(dependant, "any_dead", -1)
  elseif kind == "o" and state == "pending" then
    redis.call("SADD", Key.of("any", run.id, id), source.id)
    Record.add(dependant, "any_dead", -1)
  elseif kind == "r" and state == "succeeded" then
    redis.call("SREM", Key.of("unmet", run.id, id), "r:" .. source.id)
  end
  if Task.state(run, dependant) == "blocked" and Record.get(dependant, "root") == root then
    Task.mark(run, dependant, { root = "", root_state = "", via = "" })
    Task.move(run, dependant, "unblock", "pending", { reason = "review_decided", root = root })
    Batch.push(run, { "unblock", id, 0, root })
    local cause = other_cause(run, dependant)
    if cause then
      Ended.block(run, dependant, cause)
    end
  end
  Readiness.consider(run, dependant)
end

-- What had started from the old result is kept as it is, or done again (what still runs is kept).
function Review.untaint(run, dependant, root, mode)
  if not Task.is(dependant, "tainted") or Record.get(dependant, "doubt_root") ~= root then
    return
  end
  Task.mark(run, dependant, { tainted = "0" })
  History.note(run, "task_untainted", dependant.id, mode, { root = root })
  run.touched = true
  local state = Task.state(run, dependant)
  if mode == "rerun" and (state == "succeeded" or state == "failed") then
    Review.rerun(run, dependant, "")
  end
  Batch.push(run, { "unblock", dependant.id, 0, root })
  Batch.push(run, { "untaint", dependant.id, 0, { root = root, mode = mode } })
end
