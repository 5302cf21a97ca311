-- read_leader: who leads, until when (ms, Redis' clock) and under which epoch.

Read[#Read + 1] = {
  name = "read_leader",
  fields = {},
  read = function()
    local values = redis.call("HMGET", Key.of("leader"), "holder", "until")
    return { "holder", values[1] or "", "until", values[2] or "0", "epoch", redis.call("GET", Key.of("epoch")) or "0" }
  end,
}
