-- Owns the run's history (what happened) and its command log (what was asked for, for `verify`).
-- Must not change state. History ids are the run-local sequence, so a gap shows (SPEC 3).

local function add(run, kind, task, attempt, from, to, note)
  local seq = Record.int(run, "seq") + 1
  Record.set(run, "seq", seq)
  local entry = {
    "at", run.now, "kind", kind, "task_id", task, "attempt", attempt,
    "state_version", Record.get(run, "state_version"), "from", from, "to", to, "reason", note.reason or "",
  }
  for i = 1, #History.extras do
    local name = History.extras[i]
    if note[name] and note[name] ~= "" then
      entry[#entry + 1] = name
      entry[#entry + 1] = tostring(note[name])
    end
  end
  redis.call("XADD", Key.of("history", run.id), Num.text(seq) .. "-0", unpack(entry))
end

-- Fields that only some events carry.
History.extras = { "worker", "error", "digest", "detail", "root", "via", "lease", "due_at", "used" }

-- A moved task, at the version that the move made.
function History.event(run, kind, task, from, to, note)
  add(run, kind, task.id, Record.get(task, "attempt"), from, to, note)
end

-- A status of the run, likewise a version of its own.
function History.status(run, kind, from, to, note)
  Record.add(run, "state_version", 1)
  add(run, kind, note.task or "", note.attempt or "", from, to, note)
end

-- Something that changed no state: a duplicate, a late or refused report, a signal. No new version.
function History.note(run, kind, task, reason, note)
  note = note or {}
  note.reason = reason
  add(run, kind, task, note.attempt or Gate.call.attempt or "", "", "", note)
end

-- Documents that the run keeps elsewhere (by digest, or as its Team and inputs) are not logged a second time.
function History.log(run, spec, c)
  local entry = { spec.name, Num.text(run.now) }
  for i = 1, #spec.fields do
    local name = spec.fields[i]
    local value = c[name]
    local kept = (name == "payload" and (c.digest or "") ~= "") or (spec.documents and spec.documents[name])
    if kept then
      value = ""
    end
    entry[#entry + 1] = type(value) == "number" and Num.text(value) or value
  end
  redis.call("RPUSH", Key.of("commands", run.id), cjson.encode(entry))
end
