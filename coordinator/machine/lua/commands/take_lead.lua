-- take_lead: takes or renews the leader lease; this lease alone is judged by Redis' own clock (SPEC 7).
-- Applied: data is the epoch, raised when the holder changed. Refused: old_epoch (another one leads).
-- Events: none; the epoch fences every later command of the old leader.

Command[#Command + 1] = {
  name = "take_lead",
  fields = { "holder", "ttl_ms" },
  ints = { ttl_ms = true },
  leaderless = true,
  apply = function(c)
    local time = redis.call("TIME")
    local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    local key = Key.of("leader")
    local holder = redis.call("HGET", key, "holder")
    local until_ms = tonumber(redis.call("HGET", key, "until") or "0")
    if holder and holder ~= c.holder and until_ms > now then
      return "refused", "old_epoch"
    end
    local epoch = redis.call("GET", Key.of("epoch")) or "0"
    if holder ~= c.holder or until_ms <= now then
      epoch = Num.text(redis.call("INCR", Key.of("epoch")))
    end
    redis.call("HSET", key, "holder", c.holder, "until", Num.text(now + c.ttl_ms))
    return "applied", "", epoch
  end,
}
