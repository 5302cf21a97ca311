-- Owns blocking and tainting: what a task that cannot succeed, or is in doubt, does to one dependant.
-- Must not walk the graph: a task that is blocked here leaves its own dependants to the batch, to a fixed point.

-- Root cause and its state: a blocked task passes on what blocked it.
function Blocking.cause(run, task)
  if Record.get(task, "state") == "blocked" then
    return Record.get(task, "root"), Record.get(task, "root_state")
  end
  return task.id, Task.state(run, task)
end

local weight = { needs_review = 1, skipped = 2, canceled = 3, failed = 4, denied = 4 }

-- Blocks an unstarted dependant; `via` is the id of the requirement through which the cause reached it.
function Blocking.block(run, dependant, root, root_state, via)
  local state = Task.state(run, dependant)
  local mark = { root = root, root_state = root_state, via = via }
  if state == "pending" or state == "queued" then
    if state == "queued" then
      Budget.release(run, dependant, false)
    end
    Task.mark(run, dependant, mark)
    Ended.enter(run, dependant, "block", "blocked", { reason = root_state, root = root, via = via })
  elseif state == "blocked" and (weight[root_state] or 0) > (weight[Record.get(dependant, "root_state")] or 0) then
    -- A second cause counts where it is stronger: a block by a review may be lifted, one by a failure is critical.
    Task.mark(run, dependant, mark)
    History.note(run, "block_cause_changed", dependant.id, root_state, { root = root, via = via })
    run.touched = true
    if Task.is(dependant, "required") then
      Ended.note_failure(run, dependant)
    end
    Batch.push(run, { "ended", dependant.id, 0 })
  end
end

-- An any_of member that succeeded only after the dependant had started was no part of what it started from.
local function had_result(source, kind, dependant)
  local at = Record.int(source, "ended_seq")
  return kind == "r" or (at > 0 and at < Record.int(dependant, "started_seq"))
end

local started = { running = true, awaiting = true, succeeded = true, failed = true, needs_review = true }

-- A dependant of a result that is now in doubt (`root` is the conflicted task): unstarted ones are blocked, those that
-- started from it are marked, and their own dependants looked at in turn.
function Blocking.doubt(run, source, root, edge)
  local kind, id = string.sub(edge, 1, 1), string.sub(edge, 3)
  local dependant = Task.load(run, id)
  local state = Task.state(run, dependant)
  if kind == "a" then
    -- Also for one that has started: it may come back (a retry, an answer) and waits then.
    if source.id == root and not Task.ended[state] then
      redis.call("SADD", Key.of("unmet", run.id, id), "a:" .. source.id)
      Readiness.reconsider(run, dependant)
    end
  elseif state == "awaiting" and dependant.id == Record.get(source, "parent") then
    -- It goes on waiting for this child, which has not ended after all.
    History.note(run, "child_in_doubt", id, "conflict", { root = root })
    return
  elseif state == "pending" or state == "queued" then
    if Blocking.retract(run, source, kind, dependant) then
      Blocking.block(run, dependant, root, "needs_review", source.id)
    end
    return
  end
  if kind == "o" then
    Blocking.retract(run, source, kind, dependant)
  end
  if kind ~= "a" and started[state] and had_result(source, kind, dependant) and not Task.is(dependant, "tainted") then
    Task.mark(run, dependant, { tainted = "1", doubt_root = root, doubt_via = source.id })
    History.note(run, "task_tainted", id, "conflict", { root = root })
    Batch.push(run, { "conflict", id, 0, root })
  end
end

-- A tainted attempt that comes back for another try would start from the same doubt: it is blocked instead.
function Blocking.if_tainted(run, task)
  if Task.is(task, "tainted") and Task.state(run, task) == "pending" then
    Blocking.block(run, task, Record.get(task, "doubt_root"), "needs_review", Record.get(task, "doubt_via"))
  end
end

-- The task is done again: whoever requires it, or waits for its end, waits anew, also one that has started and may come
-- back. (What any_of had counted of it was taken back when it came into doubt.)
function Blocking.withdraw(run, source, edge)
  local kind, id = string.sub(edge, 1, 1), string.sub(edge, 3)
  if kind ~= "o" then
    redis.call("SADD", Key.of("unmet", run.id, id), kind .. ":" .. source.id)
    Readiness.reconsider(run, Task.load(run, id))
  end
end

-- Takes back what the doubtful result had satisfied; true if the dependant can then no longer run.
function Blocking.retract(run, source, kind, dependant)
  if kind ~= "o" then
    redis.call("SADD", Key.of("unmet", run.id, dependant.id), kind .. ":" .. source.id)
    return true
  end
  if redis.call("SREM", Key.of("any", run.id, dependant.id), source.id) == 0 then
    Record.add(dependant, "any_ok", -1)
  end
  Record.add(dependant, "any_dead", 1)
  local reachable = Record.int(dependant, "any_total") - Record.int(dependant, "any_dead")
  if reachable < Record.int(dependant, "any_count") then
    return true
  end
  Readiness.reconsider(run, dependant)
  return false
end
