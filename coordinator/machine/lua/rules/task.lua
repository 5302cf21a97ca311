-- Owns the task record and Task.move, the one place where a task changes state.
-- Must not decide which move to make; the legal ones stand in table.lua, made from transitions.py.

Task.ended = {
  succeeded = true, failed = true, denied = true, blocked = true, skipped = true, canceled = true,
}
Task.unfinished = { pending = true, queued = true, running = true, awaiting = true }
Task.failing = { failed = true, denied = true }
Task.dead = { failed = true, denied = true, canceled = true }

function Task.load(run, id)
  local task = run.tasks[id]
  if not task then
    task = Record.load(Key.of("task", run.id, id)) or Integrity.ghost(run, id)
    if not task then
      return nil
    end
    Task.adopt(run, task, id)
  end
  return task
end

function Task.adopt(run, task, id)
  task.id = id
  run.tasks[id] = task
  run.task_order[#run.task_order + 1] = task
end

-- The state that people see: what a stop left unfinished is canceled without being rewritten (SPEC 3).
function Task.state(run, task)
  local state = Record.get(task, "state")
  if Task.unfinished[state] and Run.is_final(run) then
    return "canceled"
  end
  return state
end

function Task.is(task, field)
  return task.fields[field] == "1"
end

-- Moves a task for `cause` (a row of the table) and writes the event in the same call. `note`: reason, error, ...
-- Every mark of the state left behind (ready, waiting, its timer, its place in a lane) goes with it.
function Task.move(run, task, cause, to, note)
  local from = Record.get(task, "state")
  local kind = Table.rows[cause] and Table.rows[cause][from] and Table.rows[cause][from][to]
  if not kind then
    error("illegal move " .. cause .. ": " .. from .. " -> " .. to .. " of " .. task.id)
  end
  if Task.is(task, "ready") then
    Readiness.close(run, task)
  end
  if from == "queued" then
    Outbox.forget(run, task)
  elseif from == "running" then
    redis.call("ZREM", Key.of("running", run.id), task.id)
  end
  Timer.clear(run, task)
  Task.mark(run, task, { state = to, waiting = "0", reason = note.reason or "" })
  if Task.ended[from] ~= Task.ended[to] then
    Turn.count(run, Readiness.role(task), Task.ended[to] and -1 or 1)
  end
  Record.add(run, "state_version", 1)
  run.touched = true
  if to ~= "queued" and to ~= "running" then
    -- How often tasks were queued and began is counted with their attempts.
    Metrics.add("tasks:" .. to, 1)
  end
  History.event(run, kind, task, from, to, note)
end
