-- read_metrics: the counters, flat, with the gauges that are read from what stands (runs by status, leases, queues).

Read[#Read + 1] = {
  name = "read_metrics",
  fields = {},
  read = function()
    local flat = redis.call("HGETALL", Key.of("metrics"))
    local function add(name, value)
      flat[#flat + 1] = name
      flat[#flat + 1] = tostring(value)
    end
    for status in pairs(Run.final) do
      add("runs:" .. status, redis.call("SCARD", Key.of("runs_by", status)))
    end
    for _, status in ipairs({ "running", "paused", "needs_review" }) do
      add("runs:" .. status, redis.call("SCARD", Key.of("runs_by", status)))
    end
    add("outbox", redis.call("LLEN", Key.of("outbox")))
    add("epoch", redis.call("GET", Key.of("epoch")) or "0")
    local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
    for i = 1, #roles do
      add("queued:" .. roles[i], redis.call("ZCARD", Key.of("queued", roles[i])))
    end
    return flat
  end,
}
