-- Registers every command and read under its name and the library's hash (filled in by library.py), so that two
-- versions can stand side by side on one server (DESIGN 2).

for i = 1, #Command do
  local spec = Command[i]
  redis.register_function({
    function_name = "@PREFIX@" .. spec.name,
    callback = function(keys, args)
      return Gate.run(spec, keys, args)
    end,
  })
end

for i = 1, #Read do
  local spec = Read[i]
  redis.register_function({
    function_name = "@PREFIX@" .. spec.name,
    callback = function(keys, args)
      return Gate.read(spec, keys, args)
    end,
    flags = { "no-writes" },
  })
end
