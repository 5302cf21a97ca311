-- Owns work that may be large: opening a run, following the dependants of an ended or doubtful task, canceling. It is
-- done in bounded pieces, some in the call that caused it, the rest by continue_batch (SPEC 3).
-- Must not decide what is done to one task; that is in ended, blocking, children, readiness.
-- An item is [kind, subject, cursor, extra]; while items are left, `batch` of the run is "open" and the gate lets
-- nothing else in.

-- Edges or tasks handled in one call. A call stays within a few milliseconds at any size of Team.
Batch.per_call = 80

function Batch.is_open(run)
  local batch = run.fields.batch
  return batch ~= nil and batch ~= ""
end

function Batch.push(run, item)
  run.todo = run.todo or {}
  run.todo[#run.todo + 1] = item
end

local function take(run, key)
  if Batch.is_open(run) then
    local text = redis.call("LPOP", key)
    if text then
      return cjson.decode(text)
    end
  end
  if run.todo and #run.todo > 0 then
    return table.remove(run.todo, 1)
  end
  return nil
end

-- Does up to Batch.per_call elements and puts the rest away for continue_batch.
function Batch.work(run)
  if not Batch.is_open(run) and not run.todo then
    return
  end
  local key = Key.of("batch", run.id)
  local left = Batch.per_call
  while left > 0 do
    local item = take(run, key)
    if not item then
      break
    end
    local seen = Batch.kinds[item[1]](run, item[2], item[3], left, item[4])
    if seen >= left then
      redis.call("LPUSH", key, cjson.encode({ item[1], item[2], item[3] + seen, item[4] }))
      Record.set(run, "batch", "open")
    end
    left = left - math.max(seen, 1)
    run.touched = true
  end
  Batch.put_away(run, key)
end

function Batch.put_away(run, key)
  local before = Record.get(run, "batch")
  local todo = run.todo or {}
  for i = 1, #todo do
    redis.call("RPUSH", key, cjson.encode(todo[i]))
  end
  run.todo = nil
  if before == "add" then
    redis.call("ZADD", Key.of("batches"), "NX", run.now, run.id)
  elseif before == "open" or #todo > 0 then
    local open = redis.call("EXISTS", key) == 1
    Record.set(run, "batch", open and "open" or "")
    if open then
      redis.call("ZADD", Key.of("batches"), "NX", run.now, run.id)
    else
      Batch.close(run)
    end
  end
end

-- Whoever waited for the batch may go on: the run competes for workers again.
function Batch.close(run)
  redis.call("ZREM", Key.of("batches"), run.id)
  Turn.rejoin(run)
end
