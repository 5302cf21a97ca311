-- read_documents: the run's Team and inputs, as JSON text, flat.

Read[#Read + 1] = {
  name = "read_documents",
  fields = { "run" },
  read = function(q)
    return redis.call("HGETALL", Key.of("documents", q.run))
  end,
}
