-- refuse_entry: an inbox entry that cannot be read goes to the installation's bounded ledger (SPEC 6).
-- Applied: never. Refused: malformed; recorded, and the entry is gone (the gate), so it cannot stop the inbox.
-- Events: none; the ledger is the record.

local most = 1000

Command[#Command + 1] = {
  name = "refuse_entry",
  fields = { "reason", "raw" },
  apply = function(c)
    local entry = { at = c.now, inbox = c.inbox, entry = c.entry, reason = c.reason, raw = string.sub(c.raw, 1, 4096) }
    redis.call("LPUSH", Key.of("ledger"), cjson.encode(entry))
    redis.call("LTRIM", Key.of("ledger"), 0, most - 1)
    Metrics.add("malformed_entries", 1)
    c.detail = c.reason
    return "refused", "malformed"
  end,
}
