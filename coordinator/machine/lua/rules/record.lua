-- Owns records: hashes in memory for one call. Must not know what a field means.

-- A record is a hash in memory for one call: its hot fields are read at once, others when they are asked for, and what
-- changed is written once, at the end. The first hot field is one that every such record has.
function Record.load(key, hot)
  local values = redis.call("HMGET", key, unpack(hot))
  if not values[1] then
    return nil
  end
  local fields = {}
  for i = 1, #hot do
    fields[hot[i]] = values[i] or ""
  end
  return Record.new(key, setmetatable(fields, {
    __index = function(_, field)
      local value = redis.call("HGET", key, field) or ""
      fields[field] = value
      return value
    end,
  }))
end

function Record.new(key, fields)
  return { key = key, fields = fields, dirty = {} }
end

function Record.get(record, field)
  local value = record.fields[field]
  if type(value) == "number" then
    return Num.text(value)
  end
  return value or ""
end

-- A field that was read as a number stays one in memory: most are added to several times a call.
function Record.int(record, field)
  local value = record.fields[field]
  if type(value) == "number" then
    return value
  end
  return tonumber(value or "") or 0
end

function Record.set(record, field, value)
  if rawget(record.fields, field) ~= value then
    record.fields[field] = value
    record.dirty[field] = true
  end
end

function Record.add(record, field, amount)
  if amount ~= 0 then
    record.fields[field] = Record.int(record, field) + amount
    record.dirty[field] = true
  end
end

function Record.save(record)
  local args, n = {}, 0
  for field in pairs(record.dirty) do
    -- Redis itself writes a number argument out in full.
    args[n + 1] = field
    args[n + 2] = record.fields[field]
    n = n + 2
  end
  if n > 0 then
    redis.call("HSET", record.key, unpack(args, 1, n))
    record.dirty = {}
  end
end
