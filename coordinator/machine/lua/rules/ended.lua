-- Owns what follows when a task ends, in whichever way: one function for every way (SPEC 3).
-- Must not walk the graph itself; it leaves a piece of work for the bounded batch (batch.lua).

-- Ends a task: moves it, records the earliest failure, tells its parent, and leaves its dependants to the batch.
function Ended.enter(run, task, cause, state, note)
  Task.move(run, task, cause, state, note)
  Record.set(task, "ended_at", run.now)
  Record.set(task, "ended_seq", Record.get(run, "seq"))
  if note.error and note.error ~= "" then
    Record.set(task, "error", note.error)
  end
  Run.progress(run)
  if Task.is(task, "required") then
    Ended.note_failure(run, task)
  end
  Batch.push(run, { "ended", task.id, 0 })
  if Record.get(task, "parent") ~= "" then
    Children.ended(run, task)
  end
  if Record.int(task, "children") > 0 and state ~= "succeeded" then
    Batch.push(run, { "cancel_children", task.id, 0 })
  end
end

-- The earliest event that led to a failing end is the root cause's own, not that of the task it blocked. A failure
-- counts before a cancel, which is never critical (SPEC 4).
function Ended.note_failure(run, task)
  local kind = Record.int(run, "required_failed") > 0 and "failed" or Record.int(run, "required_dead") > 0 and "dead"
  local known = Record.get(run, "failure_kind")
  if not kind or known == kind or known == "failed" then
    return
  end
  Record.set(run, "failure_kind", kind)
  local root = Record.get(task, "root")
  local cause = root ~= "" and Task.load(run, root) or task
  Record.set(run, "failure_seq", Record.get(cause, "ended_seq"))
  Record.set(run, "failure_task", cause.id)
end

-- Whether `task`, as it stands now, satisfies, still may, or can no longer satisfy an edge to `dependant`.
local function edge_verdict(run, task, kind, dependant)
  local state = Task.state(run, task)
  if kind == "a" then
    -- A block by an open review may be lifted: the task has not ended for good.
    local may_go_on = state == "blocked" and Record.get(task, "root_state") == "needs_review"
    return Task.ended[state] and not may_go_on and "met" or "open"
  end
  if state == "succeeded" or (state == "skipped" and Task.is(dependant, "skipped_ok")) then
    return "met"
  end
  return (Task.ended[state] or state == "needs_review") and "dead" or "open"
end

function Ended.block(run, dependant, task)
  local root, root_state = Blocking.cause(run, task)
  Blocking.block(run, dependant, root, root_state, task.id)
end

-- The common edge: a requirement that succeeded. The dependant is looked at only when nothing is missing any more, so
-- that a join of thousands costs each arrival the same.
local function arrive_succeeded(run, task, id)
  local unmet = Key.of("unmet", run.id, id)
  if redis.call("SREM", unmet, "r:" .. task.id) == 1 and redis.call("EXISTS", unmet) == 0 then
    Readiness.consider(run, Task.load(run, id))
  end
end

-- An edge is told once that it is met or dead: the sets make a repeated arrival a no-op (C-14).
function Ended.arrive(run, task, edge)
  local kind, id = string.sub(edge, 1, 1), string.sub(edge, 3)
  if kind == "r" and task.fields.state == "succeeded" then
    return arrive_succeeded(run, task, id)
  end
  local dependant = Task.load(run, id)
  local verdict = edge_verdict(run, task, kind, dependant)
  if verdict == "open" then
    return
  end
  if kind == "o" then
    Ended.arrive_any(run, task, dependant, verdict)
  elseif verdict == "dead" then
    Ended.block(run, dependant, task)
  elseif redis.call("SREM", Key.of("unmet", run.id, id), kind .. ":" .. task.id) == 1 then
    Readiness.consider(run, dependant)
  end
end

-- any_of: k succeeded, or k out of reach (SPEC 2). A member under review that later fails for good counts once.
function Ended.arrive_any(run, task, dependant, verdict)
  local undecided = Key.of("any", run.id, dependant.id)
  if redis.call("SREM", undecided, task.id) == 1 then
    Record.add(dependant, verdict == "met" and "any_ok" or "any_dead", 1)
  elseif verdict == "met" then
    return
  end
  local wanted = Record.int(dependant, "any_count")
  if verdict == "met" then
    Readiness.consider(run, dependant)
  elseif Record.int(dependant, "any_total") - Record.int(dependant, "any_dead") < wanted then
    Ended.block(run, dependant, task)
  end
end
