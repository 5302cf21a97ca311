-- Owns what is pushed to the asker in the same call: grants, pages of results, plain answers.
-- Must not decide. JSON is put together by text, because payloads are JSON text that is never opened here.

-- Lists that nobody reads any more go away; this lifetime decides nothing.
Reply.keep_ms = 3600000

function Reply.push(list, text)
  redis.call("RPUSH", list, text)
  redis.call("PEXPIRE", list, Reply.keep_ms)
end

function Reply.send(c, status, word, run_status)
  if c.reply_to == "" or c.answered then
    return
  end
  Reply.push(c.reply_to, cjson.encode({
    v = 1, kind = "reply", request = c.request, status = status, word = word or "",
    run = c.run or "", run_status = run_status, detail = c.detail or "",
  }))
end

-- `documents` is a table of name -> JSON text; names are sorted so that the same run gives the same bytes.
local function object(documents)
  local names = {}
  for name in pairs(documents) do
    names[#names + 1] = name
  end
  table.sort(names)
  local parts = {}
  for i = 1, #names do
    parts[i] = cjson.encode(names[i]) .. ":" .. documents[names[i]]
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function answer(c, head, documents)
  head.v, head.request = 1, c.request
  local text = cjson.encode(head)
  local tail = object(documents)
  if tail ~= "{}" then
    text = string.sub(text, 1, -2) .. "," .. string.sub(tail, 2)
  end
  c.answered = true
  Reply.push(c.reply_to, text)
end

-- Requirements a page: what fits a grant inline, and what one Lua call may copy.
Reply.page_size = 200

-- Results of the requirements (`requires` and `any_of`) from `first`, as a JSON object text, and the states.
local function results(run, task, page)
  local first = page * Reply.page_size
  local names = redis.call("LRANGE", Key.of("requires", run.id, task.id), first, first + Reply.page_size - 1)
  local found, states = {}, {}
  for i = 1, #names do
    local id = string.sub(names[i], 3)
    local other = Task.load(run, id)
    states[id] = cjson.encode(Task.state(run, other))
    local digest = Record.get(other, "digest")
    if digest ~= "" and string.sub(names[i], 1, 1) ~= "a" then
      found[id] = redis.call("HGET", Key.of("payloads", run.id), digest)
    end
  end
  return object(found), object(states)
end

function Reply.page(c, run, task)
  local found, states = results(run, task, c.page)
  answer(c, { kind = "page", page = c.page }, { results = found, states = states })
end

function Reply.grant(c, run, task)
  if c.reply_to == "" then
    return
  end
  local total = redis.call("LLEN", Key.of("requires", run.id, task.id))
  local pages = total > Reply.page_size and math.ceil(total / Reply.page_size) or 0
  local documents = { results = "{}", states = "{}", input = "null", inputs = "null" }
  if total > 0 and pages == 0 then
    documents.results, documents.states = results(run, task, 0)
  end
  documents.input = redis.call("HGET", Key.of("templates", run.id), task.id) or "null"
  if Task.is(task, "uses_inputs") then
    documents.inputs = redis.call("HGET", Key.of("documents", run.id), "inputs") or "null"
  end
  answer(c, {
    kind = "grant", run = run.id, task = task.id, attempt = Record.int(task, "attempt"), lease = c.lease,
    capability = Record.get(task, "capability"), key = Result.key(task),
    heartbeat_ms = Record.int(task, "heartbeat_ms"), timeout_at = Record.int(task, "timeout_at"), now = run.now,
    output_bytes = Record.int(task, "output_bytes"), pages = pages,
  }, documents)
end

-- Tells a worker, while it works, that its attempt is to end.
function Reply.cancel(run, task, reason)
  local worker = Record.get(task, "worker")
  if worker == "" or Task.is(task, "external") then
    return
  end
  Reply.push(Key.of("control", Record.get(task, "role"), worker), cjson.encode({
    v = 1, kind = "cancel", run = run.id, task = task.id, attempt = Record.int(task, "attempt"),
    lease = Record.get(task, "lease"), reason = reason,
  }))
end
