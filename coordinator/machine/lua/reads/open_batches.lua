-- open_batches: runs with an open batch, longest open first: run, kind ("add" or "continue"), number of items added.

Read[#Read + 1] = {
  name = "open_batches",
  fields = { "limit" },
  ints = { limit = true },
  read = function(q)
    local ids = redis.call("ZRANGE", Key.of("batches"), 0, q.limit - 1)
    local rows = {}
    for i = 1, #ids do
      local values = redis.call("HMGET", Key.of("run", ids[i]), "batch", "items")
      rows[i] = { ids[i], values[1] == "add" and "add" or "continue", values[2] or "0" }
    end
    return rows
  end,
}
