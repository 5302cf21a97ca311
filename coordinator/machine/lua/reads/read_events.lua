-- read_events: events after a sequence number, oldest first, each flat with its `seq`.

Read[#Read + 1] = {
  name = "read_events",
  fields = { "run", "after", "limit" },
  ints = { after = true, limit = true },
  read = function(q)
    local first = "(" .. Num.text(q.after) .. "-0"
    local entries = redis.call("XRANGE", Key.of("history", q.run), first, "+", "COUNT", q.limit)
    local events = {}
    for i = 1, #entries do
      local flat = entries[i][2]
      flat[#flat + 1] = "seq"
      flat[#flat + 1] = string.match(entries[i][1], "^(%d+)")
      events[i] = flat
    end
    return events
  end,
}
