-- Owns side effects: started durably before the effect, confirmed with a receipt after it, unknown in between (SPEC 7).
-- Must not decide what to do about an unknown one: the handler does, or a person (review.lua).
-- A record: {key, task, attempt, state, at, worker, details, receipt}; details and receipt are digests of payloads.

local function field(task_id, key)
  return task_id .. " " .. key
end

function Action.load(run, task_id, key)
  local text = redis.call("HGET", Key.of("actions", run.id), field(task_id, key))
  return text and cjson.decode(text) or nil
end

function Action.save(run, record, event, before)
  if before then
    Metrics.add("actions_now:" .. before, -1)
  end
  Metrics.add("actions_now:" .. record.state, 1)
  redis.call("HSET", Key.of("actions", run.id), field(record.task, record.key), cjson.encode(record))
  Metrics.add("actions:" .. record.state, 1)
  History.note(run, event, record.task, record.key, { attempt = tostring(record.attempt), worker = record.worker })
end

-- What an attempt that wants to perform the action is told: `start` it, it is `confirmed` (with its receipt), or it is
-- `unknown` because another attempt started it and never said how it ended.
function Action.start(run, task, c)
  local record = Action.load(run, task.id, c.key)
  if record and record.state == "confirmed" then
    return "action_confirmed", record
  elseif record and record.state ~= "failed" and record.attempt ~= c.attempt then
    if record.state == "started" then
      record.state = "unknown"
      Action.save(run, record, "action_unknown", "started")
    end
    if c.again == 0 then
      return "action_unknown", record
    end
  end
  Result.keep_payload(run, c.digest, c.payload)
  local before = record and record.state
  record = {
    key = c.key, task = task.id, attempt = c.attempt, state = "started", at = run.now, worker = c.worker,
    details = c.digest, receipt = "",
  }
  Record.set(task, "acts", "1")
  Action.save(run, record, "action_started", before)
  return "action_started", record
end

-- An attempt is over: what it started and never ended is unknown from now on.
function Action.forsake(run, task)
  if not Task.is(task, "acts") then
    return
  end
  local flat = redis.call("HGETALL", Key.of("actions", run.id))
  local open = {}
  for i = 2, #flat, 2 do
    local record = cjson.decode(flat[i])
    if record.task == task.id and record.state == "started" then
      open[#open + 1] = record
    end
  end
  table.sort(open, function(a, b) return a.key < b.key end)
  for i = 1, #open do
    open[i].state = "unknown"
    Action.save(run, open[i], "action_unknown", "started")
  end
end

-- How it ended. Also believed from an attempt that lost its lease: it is the one that did it.
function Action.finish(run, record, state, receipt, worker)
  local before = record.state
  record.state = state
  record.receipt = receipt
  record.at = run.now
  record.worker = worker
  Action.save(run, record, "action_" .. state, before)
end
