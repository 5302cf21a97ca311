-- Owns whose turn it is: the runs that have ready work for a role, in the order in which they are served.
-- Must not look at tasks. Priority first, then round robin between runs (SPEC 3): a run that was served goes to the end
-- of its priority by a sequence number, never by time or hash order.

-- At most this many attempts of a run and role lie in RQ; fewer while other runs want the same role, so that a small
-- run never waits behind a large one's whole window.
Turn.share = 8

local priority_step = 4294967296

-- A smaller number is a higher priority.
function Turn.priority(score)
  return math.floor(score / priority_step)
end

-- Puts the run in the row of a role, or forward if `score` (of a task that became ready) is of a higher priority.
function Turn.join(run, role, score)
  if not Run.is_open(run) or Record.int(run, "ready") == 0 then
    return
  end
  local placed = tonumber(redis.call("ZSCORE", Key.of("turn", role), run.id) or "")
  local ahead = score and placed and Turn.priority(score) < Turn.priority(placed)
  if not placed or ahead then
    Turn.place(run, role)
  end
end

-- Puts the run behind those that were served before it, within the priority of its first ready task.
function Turn.place(run, role)
  local task, score = Readiness.first(run, role)
  if not task then
    Turn.lose(run, role)
    return
  end
  local serial = redis.call("HINCRBY", Key.of("serials"), "turn", 1)
  redis.call("ZADD", Key.of("turn", role), Turn.priority(score) * priority_step + serial, run.id)
end

-- The installation's setting, read once a call.
function Turn.window()
  if not Gate.window then
    Gate.window = tonumber(redis.call("HGET", Key.of("settings"), "window") or "") or 64
  end
  return Gate.window
end

-- Room for one more attempt of this run in the role's RQ queue.
function Turn.has_room(run, role)
  if role == Readiness.external or role == Readiness.coordinator then
    return true
  end
  local window = Turn.window()
  if redis.call("ZCARD", Key.of("active", role)) > 1 then
    window = math.max(1, math.floor(window / Turn.share))
  end
  return Record.int(run, "queued:" .. role) < window
end

-- A run competes for a role while it is open and has tasks of that role that have not ended.
function Turn.count(run, role, amount)
  local field = "open:" .. role
  local before = Record.int(run, field)
  Record.add(run, field, amount)
  if (before > 0) ~= (before + amount > 0) then
    Turn.compete(run, role)
  end
end

function Turn.compete(run, role)
  if Record.int(run, "open:" .. role) > 0 and Run.is_open(run) then
    redis.call("ZADD", Key.of("active", role), 0, run.id)
  else
    redis.call("ZREM", Key.of("active", role), run.id)
  end
end

-- Nothing of it can be dispatched now; it comes back when something of it changes.
function Turn.lose(run, role)
  redis.call("ZREM", Key.of("turn", role), run.id)
  if run.lacks then
    Metrics.add("budget_refusals:" .. run.lacks, 1)
  end
end

-- A run that stopped or parked competes no more; one that goes on again competes as before.
function Turn.leave(run)
  local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
  for i = 1, #roles do
    redis.call("ZREM", Key.of("turn", roles[i]), run.id)
    redis.call("ZREM", Key.of("active", roles[i]), run.id)
  end
end

-- Also called when a batch closed or budget came free: a run that could not use its turn had lost it.
function Turn.rejoin(run)
  local roles = redis.call("ZRANGE", Key.of("roles"), 0, -1)
  for i = 1, #roles do
    Turn.compete(run, roles[i])
    Turn.join(run, roles[i])
  end
end
