-- Owns the lease of a running attempt: who may report on it, and until when.
-- Must not judge what is reported. The coordinator's clock alone decides expiry (SPEC 7).

-- Why this report has no live lease, or nil. Checked before anything is written.
function Lease.refusal(task, attempt, lease)
  if Record.get(task, "state") ~= "running" or Record.get(task, "lease") ~= lease or lease == "" then
    return "stale_lease"
  end
  if Record.int(task, "attempt") ~= attempt then
    return "stale_lease"
  end
  return nil
end

-- The task whose live lease this report carries, or nil and the refusal.
function Lease.holder(c, run)
  if Run.is_final(run) then
    return nil, "run_stopped"
  end
  local task = Task.load(run, c.task)
  if not task then
    return nil, "unknown_task"
  elseif Record.get(task, "role") ~= c.role then
    return nil, "wrong_role"
  end
  local why = Lease.refusal(task, c.attempt, c.lease)
  if why then
    return nil, why
  end
  return task
end

function Lease.grant(run, task, worker, token)
  Record.set(task, "worker", worker)
  Record.set(task, "lease", token)
  if token ~= "" then
    Record.add(run, "leases", 1)
    Metrics.add("leases_active", 1)
  end
  Record.set(task, "started_at", run.now)
  Record.set(task, "progressed_at", run.now)
  Record.set(task, "lease_until", run.now + Record.int(task, "heartbeat_ms"))
  Record.set(task, "timeout_at", run.now + Record.int(task, "timeout_ms"))
  Record.add(task, "granted", 1)
  Record.set(task, "started_seq", Record.int(run, "seq") + 1)
end

function Lease.renew(run, task)
  Record.set(task, "lease_until", run.now + Record.int(task, "heartbeat_ms"))
  Timer.attempt(run, task)
end

-- The attempt is over: its token proves nothing from now on.
function Lease.drop(run, task, outcome)
  Record.set(task, "last_worker", Record.get(task, "worker"))
  if Record.get(task, "lease") ~= "" then
    Record.add(run, "leases", -1)
    Metrics.add("leases_active", -1)
  end
  Record.set(task, "lease", "")
  Record.set(task, "outcome", outcome)
  if outcome ~= "never_started" then
    Record.set(task, "never_started", 0)
    Record.set(task, "no_worker", 0)
  end
  Record.set(task, "ended_at", run.now)
  Action.forsake(run, task)
  Metrics.add("attempts:" .. outcome, 1)
end
