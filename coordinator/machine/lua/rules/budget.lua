-- Owns the team's budget: what is reserved at dispatch, settled at the end, released when an attempt never started.
-- Must not stop a run (stop.lua). Invariant (SPEC 5): no reservation is granted that would make used + reserved exceed
-- a limit. Money is whole micro-units; all numbers stay below 2^53.

local kinds = {
  { limit = "limit_tokens", used = "used_tokens", reserved = "reserved_tokens", need = "tokens", held = "held_tokens",
    said = "said_tokens", name = "tokens" },
  { limit = "limit_cost", used = "used_cost", reserved = "reserved_cost", need = "cost_micros",
    held = "held_cost_micros", said = "said_cost_micros", name = "cost" },
}

local function room(run, limit, used, reserved)
  local value = run.fields[limit]
  if value == "" then
    return nil
  end
  return tonumber(value) - Record.int(run, used) - Record.int(run, reserved)
end

-- The first limit that a start with these reserves would break, or nil.
function Budget.refusal(run, tokens, micros)
  if run.fields.bounded ~= "1" then
    return nil
  end
  local steps = room(run, "limit_step_budget", "used_step_budget", "reserved_step_budget")
  if steps and steps < 1 then
    return "step_budget"
  end
  local needs = { tokens, micros }
  for i = 1, #kinds do
    local left = room(run, kinds[i].limit, kinds[i].used, kinds[i].reserved)
    -- An overrun leaves less than nothing; then not even a reserve of 0 starts (SPEC 5).
    if left and (left < needs[i] or left < 0) then
      return kinds[i].name
    end
  end
  return nil
end

function Budget.fits(run, tokens, micros)
  return Budget.refusal(run, tokens, micros) == nil
end

function Budget.reserve(run, task)
  Record.add(run, "reserved_step_budget", 1)
  for i = 1, #kinds do
    local need = Record.int(task, kinds[i].need)
    Record.add(run, kinds[i].reserved, need)
    Record.set(task, kinds[i].held, need)
    Record.set(task, kinds[i].said, 0)
  end
  Record.set(task, "reserved", "1")
end

-- The attempt began: its step is spent whatever follows.
function Budget.start(run)
  Record.add(run, "reserved_step_budget", -1)
  Record.add(run, "used_step_budget", 1)
end

-- The attempt never started: everything goes back. `granted`: its step was already moved from reserved to used.
function Budget.release(run, task, granted)
  if not Task.is(task, "reserved") then
    return
  end
  run.budget_freed = true
  Record.add(run, granted and "used_step_budget" or "reserved_step_budget", -1)
  for i = 1, #kinds do
    Record.add(run, kinds[i].reserved, -Record.int(task, kinds[i].held))
  end
  Record.set(task, "reserved", "0")
end

-- Books what was used in full and frees the rest. What the attempt said while it ran is the least it used.
function Budget.settle(run, task, tokens, micros)
  if not Task.is(task, "reserved") then
    return
  end
  run.budget_freed = true
  local spent = { tokens, micros }
  for i = 1, #kinds do
    local kind = kinds[i]
    local used = math.max(spent[i], Record.int(task, kind.said))
    local reserve = Record.int(task, kind.held)
    Record.add(run, kind.reserved, -reserve)
    Record.add(run, kind.used, used)
    Record.add(task, "used_" .. kind.need, used)
    if used > reserve and Record.get(run, kind.limit) ~= "" then
      Record.set(run, "overrun_" .. kind.name, "1")
      Metrics.add("budget_overruns:" .. kind.name, 1)
      History.note(run, "budget_overrun", task.id, kind.name, { used = Num.text(used) })
    end
  end
  Record.set(task, "reserved", "0")
end

-- Nobody can say what a lost attempt used: its reservation counts as used, and is marked unknown (SPEC 5).
function Budget.settle_unknown(run, task)
  Budget.settle(run, task, Record.int(task, "held_tokens"), Record.int(task, "held_cost_micros"))
  Record.add(task, "usage_unknown", 1)
end

-- An attempt says what it used so far, in totals. What goes beyond its reservation is reserved too, if the limit has
-- room for it; true if all of it is covered.
function Budget.say(run, task, tokens, micros)
  local said = { tokens, micros }
  local excess, covered = {}, true
  for i = 1, #kinds do
    local kind = kinds[i]
    Record.set(task, kind.said, math.max(said[i], Record.int(task, kind.said)))
    excess[i] = math.max(0, said[i] - Record.int(task, kind.held))
    local left = room(run, kind.limit, kind.used, kind.reserved)
    covered = covered and not (left and excess[i] > 0 and left < excess[i])
  end
  for i = 1, covered and #kinds or 0 do
    Record.add(run, kinds[i].reserved, excess[i])
    Record.add(task, kinds[i].held, excess[i])
  end
  return covered
end
