-- Owns what is pushed to the asker in the same call: grants, pages of results, plain answers.
-- Must not decide. JSON is put together by text, because payloads are JSON text that is never opened here.

-- Lists that nobody reads any more go away; this lifetime decides nothing.
Reply.keep_ms = 3600000

-- The name comes from outside: a key of another type must not stop what was already done.
function Reply.push(list, text)
  redis.pcall("RPUSH", list, text)
  redis.pcall("PEXPIRE", list, Reply.keep_ms)
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
function Reply.object(documents)
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

function Reply.answer(c, head, documents)
  head.v, head.request = 1, c.request
  local text = cjson.encode(head)
  local tail = Reply.object(documents)
  if tail ~= "{}" then
    text = string.sub(text, 1, -2) .. "," .. string.sub(tail, 2)
  end
  c.answered = true
  Reply.push(c.reply_to, text)
end

-- What an attempt that wants to perform a side effect is told, with the receipt of a confirmed one.
function Reply.action(c, run, word, record)
  if c.reply_to == "" then
    return
  end
  local documents = { receipt = "null", details = "null" }
  if record.receipt ~= "" then
    documents.receipt = redis.call("HGET", Key.of("payloads", run.id), record.receipt)
  end
  if record.details ~= "" then
    documents.details = redis.call("HGET", Key.of("payloads", run.id), record.details)
  end
  Reply.answer(c, { kind = "reply", status = "applied", word = word, run = run.id, run_status = "running" }, documents)
end

-- What a parent is told of a child that it spawned.
function Reply.child(c, run, child)
  if c.reply_to == "" then
    return
  end
  local documents = { result = "null", error = "null" }
  local digest = Record.get(child, "digest")
  if digest ~= "" then
    documents.result = redis.call("HGET", Key.of("payloads", run.id), digest)
  end
  if Record.get(child, "error") ~= "" then
    documents.error = Record.get(child, "error")
  end
  Reply.answer(c, {
    kind = "child", status = "applied", word = "", run = run.id, child = child.id, state = Task.state(run, child),
    reason = Record.get(child, "reason"),
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
