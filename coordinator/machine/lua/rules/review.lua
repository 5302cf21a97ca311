-- Owns what a person must decide: opened by the machine, closed by a decision that names what it was made on (SPEC 6).
-- Must not move tasks (commands/decide_review.lua). Kinds: conflict, unknown_action, integrity.

function Review.load(run, id)
  local text = redis.call("HGET", Key.of("reviews", run.id), id)
  return text and cjson.decode(text) or nil
end

function Review.save(run, review)
  redis.call("HSET", Key.of("reviews", run.id), review.id, cjson.encode(review))
end

-- One review a task at a time; `state_version` is what a decision must have been made on.
function Review.open(run, task, kind, extra)
  local id = task.id .. "." .. Num.text(Record.int(run, "reviews") + 1)
  Record.add(run, "reviews", 1)
  Record.add(run, "reviews_open", 1)
  Record.set(task, "review", id)
  redis.call("ZADD", Key.of("reviews_open"), run.now, run.id .. "|" .. id)
  Metrics.add("reviews_opened:" .. kind, 1)
  Review.save(run, {
    id = id, task = task.id, kind = kind, opened_at = run.now, status = "open", action = extra or "",
    state_version = Record.int(run, "state_version"), evidence = 1,
  })
  History.note(run, "review_opened", task.id, kind, {})
end

-- More evidence: whoever looked before has not seen all.
function Review.touch(run, task)
  local review = Review.load(run, Record.get(task, "review"))
  if review and review.status == "open" then
    review.evidence = review.evidence + 1
    review.state_version = Record.int(run, "state_version")
    Review.save(run, review)
  end
end

function Review.close(run, task, review, c)
  review.status = "decided"
  review.decision, review.digest, review.reason = c.decision, c.digest, c.reason
  review.source, review.decided_at = c.source, run.now
  Review.save(run, review)
  Record.add(run, "reviews_open", -1)
  Record.set(task, "review", "")
  redis.call("ZREM", Key.of("reviews_open"), run.id .. "|" .. review.id)
  Metrics.add("reviews_decided:" .. review.kind, 1)
end
