-- Owns the one timer of a task and the one of a run: a sorted set of due times for the whole installation.
-- Must not act on a timer (commands/fire_timer.lua). A TTL decides nothing (DESIGN 1).

local function member(run, task)
  return run.id .. "|" .. (task and task.id or "")
end

local function set(run, task, due)
  redis.call("ZADD", Key.of("timers"), due, member(run, task))
end

function Timer.clear(run, task)
  if Task.is(task, "timer") then
    redis.call("ZREM", Key.of("timers"), member(run, task))
    Record.set(task, "timer", "0")
  end
end

function Timer.task(run, task, due)
  set(run, task, due)
  Record.set(task, "timer", "1")
end

-- A running attempt: whichever comes first of lease expiry, start-to-close timeout and progress timeout.
function Timer.attempt(run, task)
  if Task.is(task, "external") then
    return Timer.task(run, task, Record.int(task, "timeout_at"))
  end
  local due = math.min(Record.int(task, "lease_until"), Record.int(task, "timeout_at"))
  local patience = Record.int(task, "progress_timeout_ms")
  if patience > 0 then
    due = math.min(due, Record.int(task, "progressed_at") + patience)
  end
  Timer.task(run, task, due)
end

-- The run: the next moment at which deadline, no_progress or a rule about time could become true.
function Timer.run(run)
  if run.fields.bounded ~= "1" then
    return
  end
  local deadline, patience = tonumber(run.fields.deadline_at), tonumber(run.fields.limit_no_progress_ms)
  local rules = run.fields.rule_times
  local due
  local function consider(at)
    if at and at > run.now and (not due or at < due) then
      due = at
    end
  end
  consider(deadline)
  local progress_at = Record.int(run, "progress_at")
  consider(patience and progress_at + patience)
  if rules ~= "" then
    local times = cjson.decode(rules)
    for i = 1, #times.elapsed do
      consider(Record.int(run, "created_at") + times.elapsed[i])
    end
    for i = 1, #times.idle do
      consider(progress_at + times.idle[i])
    end
  end
  if due and due ~= Record.int(run, "timer_due") then
    Record.set(run, "timer_due", due)
    set(run, nil, due)
  elseif not due then
    Timer.clear_run(run)
  end
end

function Timer.clear_run(run)
  if Record.get(run, "timer_due") ~= "" then
    Record.set(run, "timer_due", "")
    redis.call("ZREM", Key.of("timers"), member(run, nil))
  end
end
