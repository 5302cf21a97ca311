-- read_ledger: a page of a run's `conflicts` or `late` ledger, oldest first, each a JSON text.

Read[#Read + 1] = {
  name = "read_ledger",
  fields = { "run", "ledger", "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    return redis.call("LRANGE", Key.of(q.ledger, q.run), q.offset, q.offset + q.limit - 1)
  end,
}
