-- find_runs: ids that begin with a prefix, newest first, at most eleven; "-" is the newest run.

Read[#Read + 1] = {
  name = "find_runs",
  fields = { "prefix" },
  read = function(q)
    if q.prefix == "-" then
      return redis.call("ZREVRANGE", Key.of("runs"), 0, 0)
    end
    local exact = redis.call("EXISTS", Key.of("run", q.prefix)) == 1
    if exact then
      return { q.prefix }
    end
    local found = {}
    local ids = redis.call("ZREVRANGE", Key.of("runs"), 0, -1)
    for i = 1, #ids do
      if string.sub(ids[i], 1, #q.prefix) == q.prefix and #found < 11 then
        found[#found + 1] = ids[i]
      end
    end
    return found
  end,
}
