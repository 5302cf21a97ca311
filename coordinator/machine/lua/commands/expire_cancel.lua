-- expire_cancel: the grace of an attempt that was told to end has passed without its word (SPEC 7).
-- Applied: unconfirmed; its word may still come. Refused: unknown_run, not_due.
-- Events: cancel_unconfirmed.

Command[#Command + 1] = {
  name = "expire_cancel",
  fields = { "run", "task", "attempt" },
  ints = { attempt = true },
  waits = true,
  without_run = true,
  logged = true,
  apply = function(c, run)
    local member = c.run .. "|" .. c.task .. "|" .. Num.text(c.attempt)
    local due = tonumber(redis.call("ZSCORE", Key.of("graces"), member) or "")
    if not run then
      redis.call("ZREM", Key.of("graces"), member)
      return "refused", "unknown_run"
    end
    if not due or run.now < due then
      return "refused", "not_due"
    end
    redis.call("ZREM", Key.of("graces"), member)
    Cancellation.settle(run, c.task, c.attempt, "unconfirmed")
    return "applied", ""
  end,
}
