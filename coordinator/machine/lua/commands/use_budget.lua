-- use_budget: a running attempt says what it used so far, in totals (SPEC 5, context.use).
-- Applied: noted and reserved. Refused: over_budget (noted all the same, since it was used), unknown_run,
-- run_stopped, unknown_task, wrong_role, stale_lease.
-- Events: refused.

Command[#Command + 1] = {
  name = "use_budget",
  fields = { "run", "task", "attempt", "role", "lease", "tokens", "cost_micros" },
  ints = { attempt = true, tokens = true, cost_micros = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    if not Budget.say(run, task, c.tokens, c.cost_micros) then
      return Gate.refuse(run, "over_budget")
    end
    return "applied", ""
  end,
}
