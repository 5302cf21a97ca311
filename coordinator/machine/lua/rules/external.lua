-- Owns tasks that outside systems do: no lease, no worker, one attempt (SPEC 3).
-- Must not give verdicts on repeated or late reports (conflict.lua).

local known = { working = true, completed = true, failed = true }

-- The key under which a completed report counts: the reporter's, else the Team's; without either there is none.
function External.key(c, task)
  if c.key ~= "" then
    return c.key
  end
  local given = Record.get(task, "key")
  return given ~= "" and given or nil
end

-- Why this report cannot count, or nil.
function External.refusal(c, run, task)
  local state = task and Task.state(run, task)
  if not task then
    return "unknown_task"
  elseif not known[c.state] then
    return "unknown_state"
  elseif not Task.is(task, "external") then
    return "not_external"
  elseif Task.ended[state] then
    return "task_ended"
  elseif state ~= "queued" and state ~= "running" then
    return "wrong_state"
  end
  return nil
end

local function begin(c, run, task)
  Lease.grant(run, task, c.source, "")
  Budget.start(run)
  Task.move(run, task, "report_external", "running", { worker = c.source })
  redis.call("ZADD", Key.of("running", run.id), run.now, task.id)
  Timer.attempt(run, task)
end

-- The report counts. An end of a task that nobody reported as working passes through running (SPEC 3).
function External.apply(c, run, task, key)
  local state = Record.get(task, "state")
  Run.report(run, Record.get(task, "role"))
  if state == "queued" then
    begin(c, run, task)
  elseif c.state == "working" then
    History.note(run, "working_repeated", task.id, "working", { worker = c.source })
  end
  if c.state == "working" then
    return "applied", ""
  end
  Budget.settle(run, task, c.tokens, c.cost_micros)
  if c.state == "completed" then
    Lease.drop(run, task, "succeeded")
    Result.accept(run, task, c, key)
    Ended.enter(run, task, "report_external", "succeeded", { worker = c.source, digest = c.digest })
  else
    Lease.drop(run, task, "failed")
    Ended.enter(run, task, "report_external", "failed", { reason = "permanent", worker = c.source, error = c.error })
  end
  return "applied", ""
end
