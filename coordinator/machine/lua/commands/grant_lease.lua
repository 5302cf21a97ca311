-- grant_lease: a worker asks to begin a queued attempt; the grant is its reply, in the same call (DESIGN 1).
-- Applied: running under a lease. Repeated: the same asker again; the same grant is sent. Refused: unknown_run,
-- run_stopped, run_parked (nothing new starts; the attempt's job is gone, so it becomes never_started at no cost),
-- unknown_task, wrong_role, stale_attempt (an attempt that is over), wrong_state (a second job of the attempt).
-- Events: attempt_started | refused.

local function refusal(c, run, task)
  if Run.is_final(run) then
    return "run_stopped"
  elseif not Run.is_open(run) then
    return "run_parked"
  elseif not task then
    return "unknown_task"
  elseif Record.get(task, "role") ~= c.role then
    return "wrong_role"
  elseif Record.int(task, "attempt") ~= c.attempt then
    return "stale_attempt"
  elseif Record.get(task, "state") ~= "queued" or Readiness.role(task) ~= c.role then
    return "wrong_state"
  end
  return nil
end

-- The grant went out and was lost on its way: the same worker asks again, by the same correlation id.
local function holds_already(c, run, task)
  return c.asked ~= "" and Record.get(task, "asked") == c.asked and Record.get(task, "worker") == c.worker
    and Record.int(task, "attempt") == c.attempt and Task.state(run, task) == "running"
end

Command[#Command + 1] = {
  name = "grant_lease",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "asked" },
  ints = { attempt = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task = Task.load(run, c.task)
    if task and holds_already(c, run, task) then
      c.lease = Record.get(task, "lease")
      Reply.grant(c, run, task)
      return "repeated", ""
    end
    local why = refusal(c, run, task)
    if why then
      return Gate.refuse(run, why)
    end
    Lease.grant(run, task, c.worker, c.lease)
    Record.set(task, "asked", c.asked)
    Budget.start(run)
    Run.report(run, c.role)
    Metrics.observe("queue_wait", run.now - Record.int(task, "queued_at"))
    Task.move(run, task, "grant_lease", "running", { worker = c.worker })
    redis.call("ZADD", Key.of("running", run.id), run.now, task.id)
    Timer.attempt(run, task)
    Reply.grant(c, run, task)
    return "applied", ""
  end,
}
