-- queued_attempts: attempts of a role dispatched before a time and not granted yet: run, task, attempt.

Read[#Read + 1] = {
  name = "queued_attempts",
  fields = { "role", "before", "limit" },
  ints = { limit = true },
  read = function(q)
    local members = redis.call("ZRANGEBYSCORE", Key.of("queued", q.role), "-inf", q.before, "LIMIT", 0, q.limit)
    local rows = {}
    for i = 1, #members do
      local run, task = string.match(members[i], "^([^|]*)|(.*)$")
      rows[i] = { run, task, redis.call("HGET", Key.of("task", run, task), "attempt") or "0" }
    end
    return rows
  end,
}
