-- next_timer: when the earliest timer is due, in ms; nil without timers.

Read[#Read + 1] = {
  name = "next_timer",
  fields = {},
  read = function()
    return redis.call("ZRANGE", Key.of("timers"), 0, 0, "WITHSCORES")[2]
  end,
}
