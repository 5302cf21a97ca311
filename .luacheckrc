-- coordinator/machine/lua is joined into one Redis Functions library: the tables that prelude.lua declares as locals are
-- seen by all files after it (machine/library.py). Each file is checked alone, with those tables as known names.
std = "lua51"
max_line_length = 120
read_globals = { "redis", "cjson" }
globals = {}
for line in io.lines("coordinator/machine/lua/prelude.lua") do
  for name in (line:match("^local ([%u][%w, ]+) = {}") or ""):gmatch("%w+") do
    globals[#globals + 1] = name
  end
end
-- What prelude.lua declares is used by the other files.
files["coordinator/machine/lua/prelude.lua"] = { ignore = { "211", "241", "431" } }
files["coordinator/machine/lua/rules/table.lua"] = { max_line_length = false } -- generated
