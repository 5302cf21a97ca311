-- Owns the grant: what an attempt gets to begin with, and the pages of what does not fit it.
-- Must not decide who gets one (commands/grant_lease.lua).

-- Requirements a page: what fits a grant inline, and what one Lua call may copy.
Reply.page_size = 200

-- A for_each child has its parent's requirements: that is what its input may refer to. A spawned child gets what its
-- maker put into its input and nothing else (SPEC 12).
local function giver(run, task)
  local parent = Record.get(task, "parent") ~= "" and Task.load(run, Record.get(task, "parent"))
  return parent and Task.is(parent, "for_each") and parent or task
end

-- Results of the requirements (`requires` and `any_of`) of one page, as a JSON object text, and the states.
local function results(run, task, page)
  local first = page * Reply.page_size
  local list = Key.of("requires", run.id, giver(run, task).id)
  local names = redis.call("LRANGE", list, first, first + Reply.page_size - 1)
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
  return Reply.object(found), Reply.object(states)
end

function Reply.page(c, run, task)
  local found, states = results(run, task, c.page)
  Reply.answer(c, { kind = "page", page = c.page }, { results = found, states = states })
end

function Reply.grant(c, run, task)
  if c.reply_to == "" then
    return
  end
  local from = giver(run, task)
  local total = Record.int(from, "requires") + Record.int(from, "after") + Record.int(from, "any_total")
  local pages = total > Reply.page_size and math.ceil(total / Reply.page_size) or 0
  local documents = { results = "{}", states = "{}", input = "null", inputs = "null", answer = "null" }
  if total > 0 and pages == 0 then
    documents.results, documents.states = results(run, task, 0)
  end
  if Task.is(task, "has_input") then
    documents.input = redis.call("HGET", Key.of("templates", run.id), task.id) or "null"
  end
  if Task.is(task, "uses_inputs") then
    documents.inputs = redis.call("HGET", Key.of("documents", run.id), "inputs") or "null"
  end
  local answered = Record.get(task, "answer_digest")
  if answered ~= "" then
    documents.answer = redis.call("HGET", Key.of("payloads", run.id), answered)
  end
  Reply.answer(c, {
    kind = "grant", run = run.id, task = task.id, attempt = Record.int(task, "attempt"), lease = c.lease,
    capability = Record.get(task, "capability"), key = Result.key(task),
    heartbeat_ms = Record.int(task, "heartbeat_ms"), timeout_at = Record.int(task, "timeout_at"), now = run.now,
    output_bytes = Record.int(task, "output_bytes"), pages = pages,
  }, documents)
end
