-- resign_lead: a leader that ends hands over at once instead of letting its lease run out (SPEC 7).
-- Applied: the lease is free; the next take_lead raises the epoch. Refused: old_epoch (it does not lead).
-- Events: none.

Command[#Command + 1] = {
  name = "resign_lead",
  fields = { "holder" },
  leaderless = true,
  apply = function(c)
    if redis.call("HGET", Key.of("leader"), "holder") ~= c.holder then
      return "refused", "old_epoch"
    end
    redis.call("HSET", Key.of("leader"), "until", "0")
    return "applied", ""
  end,
}
