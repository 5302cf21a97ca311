-- Owns the evaluation of rules as data, for `when` and `stop_when` (SPEC 4).
-- Must not read payloads: what a rule says of a result comes in as a fact with the report that brought it.

local facts = {
  attempts_started = function(run) return Record.int(run, "used_step_budget") end,
  reports_accepted = function(run) return Record.int(run, "reports") end,
  tokens = function(run) return Record.int(run, "used_tokens") end,
  cost = function(run) return Record.int(run, "used_cost") end,
  elapsed = function(run) return run.now - Record.int(run, "created_at") end,
  idle = function(run) return run.now - Record.int(run, "progress_at") end,
}

local kinds = {}

function kinds.all(run, rule)
  for i = 2, #rule do
    if not Rule.holds(run, rule[i]) then
      return false
    end
  end
  return true
end

function kinds.any(run, rule)
  for i = 2, #rule do
    if Rule.holds(run, rule[i]) then
      return true
    end
  end
  return false
end

kinds["not"] = function(run, rule)
  return not Rule.holds(run, rule[2])
end

function kinds.ge(run, rule)
  return facts[rule[2]](run) >= rule[3]
end

-- ["succeeded", n, tasks]: n of the named tasks, or of all; n = -1 means each of them.
function kinds.succeeded(run, rule)
  local names = rule[3] or {}
  if #names == 0 then
    local wanted = rule[2] < 0 and Record.int(run, "tasks") or rule[2]
    return Record.int(run, "n_succeeded") >= wanted
  end
  local wanted = rule[2] < 0 and #names or rule[2]
  local have = 0
  for i = 1, #names do
    local task = Task.load(run, names[i])
    if task and Record.get(task, "state") == "succeeded" then
      have = have + 1
    end
  end
  return have >= wanted
end

function kinds.state(run, rule)
  local task = Task.load(run, rule[2])
  return task ~= nil and Record.get(task, "state") == rule[3]
end

-- The role whose report is being judged in this call.
function kinds.role(run, rule)
  return run.reporter == rule[2]
end

function kinds.signal(run, rule)
  return redis.call("SISMEMBER", Key.of("signals", run.id), rule[2]) == 1
end

function kinds.fact(run, rule)
  return redis.call("SISMEMBER", Key.of("facts", run.id), rule[2]) == 1
end

function kinds.const(_, rule)
  return rule[2] == 1
end

function Rule.holds(run, rule)
  return kinds[rule[1]](run, rule)
end
