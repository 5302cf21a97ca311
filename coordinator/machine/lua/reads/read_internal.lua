-- read_internal: for_each parents that the coordinator has to work on: run, task, what ("expand" or "collect"),
-- number of children made, verdict of the children.

Read[#Read + 1] = {
  name = "read_internal",
  fields = { "limit" },
  ints = { limit = true },
  read = function(q)
    local members = redis.call("ZRANGE", Key.of("internal"), 0, q.limit - 1)
    local rows = {}
    for i = 1, #members do
      local run, task = string.match(members[i], "^([^|]*)|(.*)$")
      local values = redis.call("HMGET", Key.of("task", run, task), "children_verdict", "children")
      local verdict = values[1] or ""
      rows[i] = { run, task, verdict == "" and "expand" or "collect", values[2] or "0", verdict }
    end
    return rows
  end,
}
