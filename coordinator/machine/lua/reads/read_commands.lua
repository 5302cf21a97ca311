-- read_commands: a page of the commands that were applied to a run, oldest first, each a JSON array (for verify).

Read[#Read + 1] = {
  name = "read_commands",
  fields = { "run", "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    return redis.call("LRANGE", Key.of("commands", q.run), q.offset, q.offset + q.limit - 1)
  end,
}
