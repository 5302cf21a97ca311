-- read_run: the run's own record, flat (field, value, ...); empty for an unknown run.

Read[#Read + 1] = {
  name = "read_run",
  fields = { "run" },
  read = function(q)
    return redis.call("HGETALL", Key.of("run", q.run))
  end,
}
