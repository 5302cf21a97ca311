-- Owns what each task adds to its run's counters; judging reads only those. Must not change a state (task.lua).

local function one(holds)
  return holds and 1 or 0
end

-- What one task adds to the run's counters besides its state. Judging reads the counters, so a transition costs O(1).
local function weights(task)
  local state = task.fields.state
  local open = one(not Task.ended[state])
  local ready = one(task.fields.ready == "1")
  local in_flight = one(state == "queued" or state == "running" or task.fields.waiting == "1")
  if task.fields.required ~= "1" then
    return open, ready, in_flight, 0, 0, 0, 0
  end
  local cause = state == "blocked" and task.fields.root_state or state
  local wanted = one(state ~= "succeeded" and state ~= "skipped")
  local tainted = one(task.fields.tainted == "1")
  return open, ready, in_flight, wanted, one(Task.failing[cause]), one(Task.dead[cause]), tainted
end

local weighed = {
  "open_tasks", "ready", "in_flight", "required_open", "required_failed", "required_dead", "required_tainted",
}

-- A new task enters the counters.
function Task.enter(run, task)
  Record.add(run, "n_" .. task.fields.state, 1)
  local now = { weights(task) }
  for i = 1, #weighed do
    Record.add(run, weighed[i], now[i])
  end
end

-- Changes fields that the counters look at (state is changed by Task.move alone).
function Task.mark(run, task, changes)
  local state = task.fields.state
  local a1, a2, a3, a4, a5, a6, a7 = weights(task)
  for field, value in pairs(changes) do
    Record.set(task, field, value)
  end
  local b1, b2, b3, b4, b5, b6, b7 = weights(task)
  local changed = { b1 - a1, b2 - a2, b3 - a3, b4 - a4, b5 - a5, b6 - a6, b7 - a7 }
  for i = 1, #weighed do
    if changed[i] ~= 0 then
      Record.add(run, weighed[i], changed[i])
    end
  end
  if task.fields.state ~= state then
    Record.add(run, "n_" .. state, -1)
    Record.add(run, "n_" .. task.fields.state, 1)
  end
end
