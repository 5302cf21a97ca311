-- Owns records: hashes in memory for one call. Must not know what a field means.

-- A record is a hash read once, changed in memory and written once, at the end of the call. A missing field reads "".
local missing = { __index = function() return "" end }

function Record.load(key)
  local flat = redis.call("HGETALL", key)
  if #flat == 0 then
    return nil
  end
  local fields = {}
  for i = 1, #flat, 2 do
    fields[flat[i]] = flat[i + 1]
  end
  return Record.new(key, setmetatable(fields, missing))
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
