-- Owns accepted results and the memory of every digest that came under an idempotency key (SPEC 6).
-- Must not judge conflicts (conflict.lua). Payloads are kept once, by digest; everything else names the digest.

function Result.key(task)
  local key = Record.get(task, "key")
  return key ~= "" and key or task.id .. "/" .. Record.get(task, "attempt")
end

-- The key under which a success counts. `attempt` is the one that reports, which may be an old one.
function Result.key_of(task, attempt)
  local key = Record.get(task, "key")
  return key ~= "" and key or task.id .. "/" .. Num.text(attempt)
end

local function field(task, key)
  return task.id .. " " .. key
end

-- What is known under (task, key): {accepted, seen = [arrivals]}, or nil.
function Result.prior(run, task, key)
  local text = redis.call("HGET", Key.of("keys", run.id), field(task, key))
  return text and cjson.decode(text) or nil
end

function Result.keep_payload(run, digest, payload)
  if digest ~= "" then
    redis.call("HSETNX", Key.of("payloads", run.id), digest, payload)
  end
end

-- One arrival under a key, with all that a reviewer needs.
function Result.arrival(run, task, c, key, number)
  return {
    task = task.id, key = key, arrival = number, digest = c.digest, at = run.now, attempt = c.attempt or 1,
    state_version = Record.int(run, "state_version"), worker = c.worker or c.source or "", lease = c.lease or "",
    accepted = 0,
  }
end

function Result.remember(run, task, key, prior)
  redis.call("HSET", Key.of("keys", run.id), field(task, key), cjson.encode(prior))
end

-- The result becomes the task's own; rules may look at the facts that hold for it.
function Result.accept(run, task, c, key)
  Result.keep_payload(run, c.digest, c.payload)
  if key then
    -- An attempt's own key is new: an earlier success under it would have ended the attempt.
    local given = Record.get(task, "key") ~= "" or Task.is(task, "external")
    local prior = given and Result.prior(run, task, key) or { accepted = "", seen = {} }
    local arrival = Result.arrival(run, task, c, key, #prior.seen + 1)
    arrival.accepted = 1
    prior.accepted = c.digest
    prior.seen[#prior.seen + 1] = arrival
    Result.remember(run, task, key, prior)
  end
  Record.set(task, "digest", c.digest)
  Record.set(task, "result_trust", "trusted")
  if c.facts ~= "" and c.facts ~= "[]" then
    redis.call("SADD", Key.of("facts", run.id), unpack(cjson.decode(c.facts)))
    Record.set(task, "facts", c.facts)
  end
end

-- Facts hold while the result they were read from is accepted.
function Result.clear_facts(run, task)
  local facts = Record.get(task, "facts")
  if facts ~= "" then
    redis.call("SREM", Key.of("facts", run.id), unpack(cjson.decode(facts)))
    Record.set(task, "facts", "")
  end
end

-- A rerun takes over what its parent run has already: the same bytes, no attempt, no cost (SPEC 9 rerun).
function Result.reuse(run, task)
  local digest, source = Record.get(task, "reused"), Record.get(run, "parent_run")
  local payload = redis.call("HGET", Key.of("payloads", source), digest)
  if not payload then
    return Readiness.consider(run, task)
  end
  Result.keep_payload(run, digest, payload)
  Record.set(task, "digest", digest)
  Record.set(task, "result_trust", "trusted")
  Record.set(task, "reused_from", source)
  Ended.enter(run, task, "reuse", "succeeded", { reason = "reused", digest = digest, detail = source })
end
