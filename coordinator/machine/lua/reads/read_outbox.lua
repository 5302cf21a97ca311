-- read_outbox: dispatched attempts that are not yet RQ jobs, oldest first, each a JSON object.

Read[#Read + 1] = {
  name = "read_outbox",
  fields = { "limit" },
  ints = { limit = true },
  read = function(q)
    return redis.call("LRANGE", Key.of("outbox"), 0, q.limit - 1)
  end,
}
