-- Owns the spelling of keys and numbers. keys.py has the map of all keys. Must not read or write.

-- Integers as text: Lua's own conversion turns 1e15 into a float's spelling.
function Num.text(value)
  return string.format("%.0f", value)
end

-- `ns:KIND`, `ns:KIND:RUN`, and so on; keys.py has the map. Written out, because it is called for every key touched.
function Key.of(kind, a, b, c)
  if not a then
    return Gate.ns .. ":" .. kind
  elseif not b then
    return Gate.ns .. ":" .. kind .. ":" .. a
  elseif not c then
    return Gate.ns .. ":" .. kind .. ":" .. a .. ":" .. b
  end
  return Gate.ns .. ":" .. kind .. ":" .. a .. ":" .. b .. ":" .. c
end
