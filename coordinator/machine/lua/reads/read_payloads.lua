-- read_payloads: payload texts by digest (a JSON array of digests), in their order; nil where there is none.

Read[#Read + 1] = {
  name = "read_payloads",
  fields = { "run", "digests" },
  read = function(q)
    local digests = cjson.decode(q.digests)
    if #digests == 0 then
      return {}
    end
    return redis.call("HMGET", Key.of("payloads", q.run), unpack(digests))
  end,
}
