-- send_results: one page of the requirements' results, for a grant that is too large to carry them (DESIGN 1).
-- Applied: the page is the reply. Refused: unknown_run, run_stopped, unknown_task, wrong_role, stale_lease.
-- Events: none; nothing is changed and nothing is logged.

Command[#Command + 1] = {
  name = "send_results",
  fields = { "run", "task", "attempt", "role", "lease", "page" },
  ints = { attempt = true, page = true },
  waits = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return "refused", why
    end
    if c.reply_to ~= "" then
      Reply.page(c, run, task)
    end
    return "applied", ""
  end,
}
