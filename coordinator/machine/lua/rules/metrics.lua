-- Owns the installation's counters: raised inside the transitions, written once a call (SPEC 11).
-- Must not carry a run, task, worker or team name: labels come from closed sets only.

function Metrics.add(name, amount)
  Metrics.pending[name] = (Metrics.pending[name] or 0) + amount
end

-- Bounds in seconds, the same as the exporter's (runtime/metrics.py reads them from the field names).
Metrics.bounds = { 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800 }

-- One observation of a histogram, from milliseconds.
function Metrics.observe(name, ms)
  local seconds = ms / 1000
  local bucket = "inf"
  for i = 1, #Metrics.bounds do
    if seconds <= Metrics.bounds[i] then
      bucket = tostring(Metrics.bounds[i])
      break
    end
  end
  Metrics.add(name .. ":le:" .. bucket, 1)
  Metrics.add(name .. ":sum_ms", ms)
end

function Metrics.write()
  local key = Key.of("metrics")
  for name, amount in pairs(Metrics.pending) do
    if amount ~= 0 then
      redis.call("HINCRBY", key, name, amount)
    end
  end
  Metrics.pending = {}
end
