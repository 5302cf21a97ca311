-- list_runs: a page of runs, newest first: id, status, team, created_at, state_version.

Read[#Read + 1] = {
  name = "list_runs",
  fields = { "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    local ids = redis.call("ZREVRANGE", Key.of("runs"), q.offset, q.offset + q.limit - 1)
    local rows = {}
    for i = 1, #ids do
      local values = redis.call("HMGET", Key.of("run", ids[i]), "status", "team", "created_at", "state_version")
      rows[i] = {
        "run", ids[i], "status", values[1] or "", "team", values[2] or "", "created_at", values[3] or "",
        "state_version", values[4] or "",
      }
    end
    return rows
  end,
}
