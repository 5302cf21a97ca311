-- Owns what a change of a run's status does: the record of the stop, one event, what is withdrawn (SPEC 4).
-- Must not move tasks: what a stop leaves unfinished is canceled by being read (Task.state).

local function list(words)
  return #words > 0 and cjson.encode(words) or "[]"
end

-- The deciding task: the root cause of a failure, else the task whose report was judged.
local function deciding_task(run, status)
  if (status == "critical_failure" or status == "failed") and Record.get(run, "failure_task") ~= "" then
    return Record.get(run, "failure_task")
  end
  return Gate.call.task or ""
end

-- Sets a parked or final status; one event. Everything that competes for workers on behalf of the run is withdrawn.
function Stop.enter(run, status, why)
  local from = Record.get(run, "status")
  Record.set(run, "stop_reason", status)
  Record.set(run, "stop_rule", why.rule or "")
  Record.set(run, "stop_limit", why.limit or "")
  Record.set(run, "stop_task", deciding_task(run, status))
  Record.set(run, "stop_seq", Record.int(run, "seq"))
  Record.set(run, "stop_at", run.now)
  Record.set(run, "also_true", list(why.also))
  Record.set(run, "locked_reason", why.locked or "")
  Record.set(run, "status", status)
  local kind = Run.parked[status] and "run_parked" or "run_stopped"
  History.status(run, kind, from, status, { reason = status, task = Record.get(run, "stop_task") })
  Turn.leave(run)
  Timer.clear_run(run)
  redis.call("SMOVE", Key.of("runs_by", from), Key.of("runs_by", status), run.id)
  if Run.parked[status] then
    Metrics.add("parks:" .. status, 1)
  else
    Metrics.add("stops:" .. status, 1)
    Stop.finish(run)
  end
end

-- A parked run goes on: what a person decided, answered or raised may let something move. Parked time is no time for
-- the deadline nor for no_progress (SPEC 4). It is judged in this same call, and may park again.
local told = {
  "stop_reason", "stop_rule", "stop_limit", "stop_task", "stop_seq", "stop_at", "also_true", "locked_reason",
}

function Stop.reopen(run, reason, source)
  local from = Record.get(run, "status")
  if not Run.parked[from] then
    return
  end
  local parked_ms = run.now - Record.int(run, "stop_at")
  local deadline = tonumber(Record.get(run, "deadline_at"))
  if deadline then
    Record.set(run, "deadline_at", deadline + parked_ms)
  end
  Record.add(run, "progress_at", parked_ms)
  Record.set(run, "progress_reports", Record.int(run, "reports"))
  for i = 1, #told do
    Record.set(run, told[i], "")
  end
  Record.set(run, "status", "running")
  History.status(run, "run_resumed", from, "running", { reason = reason, worker = source })
  redis.call("SMOVE", Key.of("runs_by", from), Key.of("runs_by", "running"), run.id)
  run.external_ready = true
  run.touched = true
  Turn.rejoin(run)
end

-- A final status: unfinished tasks count as canceled from here on, and whoever works on one is told.
function Stop.finish(run)
  Record.set(run, "ended_at", run.now)
  local canceled = 0
  for state in pairs(Task.unfinished) do
    canceled = canceled + Record.int(run, "n_" .. state)
    Metrics.add("stopped:" .. state, Record.int(run, "n_" .. state))
  end
  Record.set(run, "n_stopped", canceled)
  Metrics.add("leases_active", -Record.int(run, "leases"))
  if redis.call("ZCARD", Key.of("running", run.id)) > 0 then
    Batch.push(run, { "tell_canceled", run.cancel_reason or "run_stopped", 0 })
  end
end
