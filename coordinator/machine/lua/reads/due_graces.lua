-- due_graces: attempts that were told to end and whose grace has passed at `now`: run, task, attempt.

Read[#Read + 1] = {
  name = "due_graces",
  fields = { "now", "limit" },
  ints = { limit = true },
  read = function(q)
    local members = redis.call("ZRANGEBYSCORE", Key.of("graces"), "-inf", q.now, "LIMIT", 0, q.limit)
    local due = {}
    for i = 1, #members do
      local run, task, attempt = string.match(members[i], "^([^|]*)|([^|]*)|(%d+)$")
      due[i] = { run, task, attempt }
    end
    return due
  end,
}
