-- read_results: a page of a parent's children in element order: id, state, digest of the accepted result, ...

Read[#Read + 1] = {
  name = "read_results",
  fields = { "run", "task", "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    local names = redis.call("LRANGE", Key.of("children", q.run, q.task), q.offset, q.offset + q.limit - 1)
    local rows = {}
    for i = 1, #names do
      local values = redis.call("HMGET", Key.of("task", q.run, names[i]), "state", "digest")
      rows[i] = { names[i], values[1] or "", values[2] or "" }
    end
    return rows
  end,
}
