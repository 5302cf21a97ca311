-- Owns the run record: loading it once a call, its clock, settling it at the end of a call.
-- Must not move tasks (task.lua) or decide statuses (stop.lua).

Run.final = {
  completed = true, critical_failure = true, failed = true, deadlock = true, step_limit = true,
  budget_exhausted = true, deadline_exceeded = true, no_progress = true, canceled = true, stop_rule = true,
}

Run.parked = { paused = true, needs_review = true }

function Run.load(id)
  local run = Gate.runs[id]
  if not run then
    run = Record.load(Key.of("run", id))
    if not run then
      return nil
    end
    Run.adopt(run, id)
  end
  return run
end

-- Makes a record part of this call: it is settled and written when the call ends.
function Run.adopt(run, id)
  run.id = id
  run.tasks = {}
  run.task_order = {}
  Gate.runs[id] = run
  Gate.order[#Gate.order + 1] = run
end

-- `now` never runs backwards within a run (SPEC 3).
function Run.clock(run, now)
  local last = Record.int(run, "now")
  run.now = now > last and now or last
  Record.set(run, "now", run.now)
end

function Run.is_final(run)
  return Run.final[run.fields.status] == true
end

function Run.is_open(run)
  return run.fields.status == "running"
end

-- The bounded batch, then the judgement when nothing of it is left. A call that only recorded something (a refusal,
-- a duplicate, a late report) left `touched` unset and changes no status.
function Run.settle(run)
  Batch.work(run)
  Integrity.park(run)
  Outbox.dispatch_external(run)
  if run.touched and not Batch.is_open(run) then
    Stop.judge(run)
    Batch.work(run)
  end
  if run.budget_freed and run.fields.bounded == "1" and Run.is_open(run) and Record.int(run, "ready") > 0 then
    Turn.rejoin(run)
  end
end

function Run.save(run)
  for i = 1, #run.task_order do
    if not run.task_order[i].is_ghost then
      Record.save(run.task_order[i])
    end
  end
  Record.save(run)
end

-- Whatever counts as progress for no_progress (SPEC 4): a task ended, a new artifact digest, fewer open tasks.
function Run.progress(run)
  Record.set(run, "progress_at", run.now)
  Record.set(run, "progress_reports", Record.int(run, "reports"))
end

-- An accepted task report: one step of max_steps (SPEC 4).
function Run.report(run, role)
  Record.add(run, "reports", 1)
  run.reporter = role
  run.touched = true
end
