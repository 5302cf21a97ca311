-- start_action: an attempt is about to perform a side effect; recorded before it may (SPEC 7).
-- Applied: the word is action_started (do it), action_confirmed (done: the receipt is in the reply) or action_unknown
-- (another attempt started it; with `again` 1 the handler says that it may be repeated).
-- Refused: unknown_run, run_stopped, unknown_task, wrong_role, stale_lease.
-- Events: action_started, action_unknown | refused.

Command[#Command + 1] = {
  name = "start_action",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "key", "payload", "digest", "again" },
  ints = { attempt = true, again = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    local word, record = Action.start(run, task, c)
    Reply.action(c, run, word, record)
    return "applied", word
  end,
}
