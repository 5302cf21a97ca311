-- Owns the tables that every other file fills, and the gate before every command.
-- Must not know any rule of SPEC: those stand in rules/, what a command does in commands/.
-- While a library loads neither string nor redis.call exist, so nothing at file level calls them (DESIGN 2).

local Table, Key, Num, Record, Gate, Command, Read = {}, {}, {}, {}, {}, {}, {}
local Run, Task, Ended, Readiness, Blocking, Lease, Budget, Retry = {}, {}, {}, {}, {}, {}, {}, {}
local Conflict, Result, Stop, Rule, Timer, History, Outbox, Reply, Batch = {}, {}, {}, {}, {}, {}, {}, {}, {}
local Children, Metrics, Turn, Plan, Cancellation, Action, Review = {}, {}, {}, {}, {}, {}, {}
local External, Outcome, Integrity = {}, {}, {}

-- The gate. Header arguments: epoch, now, inbox, entry, reply_to, request; then the command's fields by name.
Gate.header = 6

function Gate.bind(spec, keys, args)
  local c = {
    now = tonumber(args[2]),
    inbox = args[3],
    entry = args[4],
    reply_to = args[5],
    request = args[6],
  }
  for i = 1, #spec.fields do
    local name = spec.fields[i]
    local value = args[Gate.header + i]
    if value == nil then
      error("missing argument " .. name)
    end
    c[name] = value
    if spec.ints and spec.ints[name] then
      c[name] = tonumber(value)
    end
  end
  Gate.ns = keys[1]
  Gate.call = c
  Gate.spec = spec
  Gate.runs = {}
  Gate.order = {}
  Gate.window = nil
  Metrics.pending = {}
  return c
end

-- Guards in their order, each before anything is written: epoch, open batch, inbox entry, and that the run is there
-- (a command that has something to do without it says `without_run`). Then the command, then for each run that it
-- touched: the bounded batch, the judgement, the write; last the one reply.
function Gate.run(spec, keys, args)
  local c = Gate.bind(spec, keys, args)
  if not spec.leaderless and args[1] ~= (redis.call("GET", Key.of("epoch")) or "0") then
    redis.call("HINCRBY", Key.of("metrics"), "fenced_writes", 1)
    return { "refused", "old_epoch", "" }
  end
  local run = c.run and Run.load(c.run)
  if run and spec.waits and Record.get(run, "batch") ~= "" then
    return { "waiting", "", Record.get(run, "status") }
  end
  if c.entry ~= "" and redis.call("XDEL", c.inbox, c.entry) == 0 then
    return { "repeated", "", run and Record.get(run, "status") or "" }
  end
  if run and spec.logged then
    Run.clock(run, c.now)
  end
  local status, word, data
  if c.run and not run and not spec.without_run then
    status, word = "refused", "unknown_run"
  else
    status, word, data = spec.apply(c, run)
  end
  run = run or (c.run and Gate.runs[c.run])
  if run and status == "repeated" then
    -- Nothing happened, nothing is logged: not even the run's clock may move (verify).
    run.now = nil
  elseif run and spec.logged then
    History.log(run, spec, c)
  end
  Gate.finish()
  local run_status = run and Record.get(run, "status") or ""
  Reply.send(c, status, word, run_status)
  return { status, word or "", run_status, data or "" }
end

-- Ends the call for every run whose clock it set; others were only looked at. Order of SPEC 3: move, block, judge,
-- cancel.
function Gate.finish()
  for i = 1, #Gate.order do
    local run = Gate.order[i]
    if run.now then
      Run.settle(run)
      Run.save(run)
    end
  end
  Metrics.write()
end

-- A refusal is recorded with the run, at its current version, and answered. It changes nothing else.
function Gate.refuse(run, word, task)
  if run then
    History.note(run, "refused", task or Gate.call.task or "", word)
  end
  return "refused", word
end

-- Reads change nothing (the server enforces it) and need no leader.
function Gate.read(spec, keys, args)
  Gate.ns = keys[1]
  Gate.runs, Gate.order = {}, {}
  local q = {}
  for i = 1, #spec.fields do
    q[spec.fields[i]] = args[i]
    if spec.ints and spec.ints[spec.fields[i]] then
      q[spec.fields[i]] = tonumber(args[i])
    end
  end
  return spec.read(q)
end
