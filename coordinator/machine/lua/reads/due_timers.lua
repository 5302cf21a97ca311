-- due_timers: what may be due at `now`: run, task pairs (an empty task is the run's own timer), earliest first.

Read[#Read + 1] = {
  name = "due_timers",
  fields = { "now", "limit" },
  ints = { limit = true },
  read = function(q)
    local members = redis.call("ZRANGEBYSCORE", Key.of("timers"), "-inf", q.now, "LIMIT", 0, q.limit)
    local due = {}
    for i = 1, #members do
      local run, task = string.match(members[i], "^([^|]*)|(.*)$")
      due[i] = { run, task }
    end
    return due
  end,
}
