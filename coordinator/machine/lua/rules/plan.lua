-- Owns the making of tasks and edges from a compiled plan (team/compile.py), for submit_run, add_tasks, spawn_tasks.
-- Must not judge the plan: it was checked before it came here.

-- Fields whose value is a document or a rule keep their own place; 0 and "" are what a missing field means.
function Plan.task(run, definition)
  local fields = { "state", "pending" }
  for name, value in pairs(definition) do
    if name == "when" then
      value = cjson.encode(value)
    end
    if name ~= "input" and value ~= "" and value ~= 0 then
      fields[#fields + 1] = name
      fields[#fields + 1] = type(value) == "number" and Num.text(value) or value
    end
  end
  local id = definition.id
  redis.call("HSET", Key.of("task", run.id, id), unpack(fields))
  redis.call("ZADD", Key.of("tasks", run.id), definition.index, id)
  if (definition.input or "") ~= "" then
    redis.call("HSET", Key.of("templates", run.id), id, definition.input)
    redis.call("HSET", Key.of("task", run.id, id), "has_input", "1")
  end
  local task = Task.load(run, id)
  Task.enter(run, task)
  Turn.count(run, Readiness.role(task), 1)
  Metrics.add("tasks:pending", 1)
end

local kind_of = { requires = "r", after = "a", any_of = "o" }

-- An edge is kept on both sides: whom to tell, and whose results to hand over. Loading the tasks is not needed.
function Plan.edge(run, name, from, to)
  local kind = kind_of[name]
  redis.call("RPUSH", Key.of("edges", run.id, from), kind .. ":" .. to)
  redis.call("RPUSH", Key.of("requires", run.id, to), kind .. ":" .. from)
  if run.last_source ~= from then
    redis.call("HSET", Key.of("task", run.id, from), "has_edges", "1")
    run.last_source = from
    if run.tasks[from] then
      run.tasks[from].fields.has_edges = "1"
    end
  end
  if kind == "o" then
    redis.call("SADD", Key.of("any", run.id, to), from)
  else
    redis.call("SADD", Key.of("unmet", run.id, to), kind .. ":" .. from)
  end
end

-- The next part of a run. The last one opens it: readiness is judged task by task in the batch.
function Plan.add(run, text, more)
  local items = cjson.decode(text)
  for i = 1, #items do
    local item = items[i]
    if item[1] == "task" then
      Plan.task(run, item[2])
    else
      Plan.edge(run, item[2], item[3], item[4])
    end
  end
  Record.add(run, "items", #items)
  if more == 1 then
    Record.set(run, "batch", "add")
  else
    -- Still an open batch until every task was looked at; a small run is done in this very call.
    Record.set(run, "batch", "open")
    Batch.push(run, { "open", "", 0 })
  end
end

-- `bounded` says whether judging has to look at limits or rules at all.
local function limit(run, field, value)
  if value then
    Record.set(run, field, value)
    Record.set(run, "bounded", "1")
  end
end

-- The header's part of the run record; a limit that is not there stays empty.
function Plan.header(run, text)
  local header = cjson.decode(text)
  for _, name in ipairs({ "team", "seed", "on_required_failure", "on_completion", "on_limit" }) do
    Record.set(run, name, header[name])
  end
  local limits = header.limits or {}
  limit(run, "limit_step_budget", limits.step_budget)
  limit(run, "limit_max_steps", limits.max_steps)
  limit(run, "limit_tokens", limits.tokens)
  limit(run, "limit_cost", limits.cost_micros)
  limit(run, "limit_deadline_ms", limits.deadline_ms)
  limit(run, "limit_no_progress_ms", limits.no_progress_ms)
  limit(run, "limit_no_progress_steps", limits.no_progress_steps)
  Record.set(run, "parent_run", header.parent_run or "")
  limit(run, "deadline_at", limits.deadline_ms and run.now + limits.deadline_ms)
  if header.rules and #header.rules > 0 then
    Record.set(run, "rules", cjson.encode(header.rules))
    Record.set(run, "bounded", "1")
  end
  if #(header.elapsed or {}) + #(header.idle or {}) > 0 then
    local times = { elapsed = header.elapsed, idle = header.idle }
    Record.set(run, "rule_times", cjson.encode(times))
  end
  for role, capabilities in pairs(header.roles or {}) do
    redis.call("ZADD", Key.of("roles"), 0, role)
    for i = 1, #capabilities do
      redis.call("SADD", Key.of("capabilities", run.id), role .. " " .. capabilities[i])
    end
  end
  return header
end
