-- read_tasks: a page of the run's tasks in file order, each flat; `state` is what people see, `was` what is stored.

Read[#Read + 1] = {
  name = "read_tasks",
  fields = { "run", "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    local run = Run.load(q.run)
    if not run then
      return {}
    end
    local names = redis.call("ZRANGE", Key.of("tasks", q.run), q.offset, q.offset + q.limit - 1)
    local pages = {}
    for i = 1, #names do
      local flat = redis.call("HGETALL", Key.of("task", q.run, names[i]))
      local stored
      for j = 1, #flat, 2 do
        if flat[j] == "state" then
          stored = flat[j + 1]
          if Task.unfinished[stored] and Run.is_final(run) then
            flat[j + 1] = "canceled"
          end
        end
      end
      flat[#flat + 1] = "was"
      flat[#flat + 1] = stored
      pages[i] = flat
    end
    return pages
  end,
}
