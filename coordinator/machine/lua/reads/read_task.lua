-- read_task: one task's record, flat; empty for an unknown task.

Read[#Read + 1] = {
  name = "read_task",
  fields = { "run", "task" },
  read = function(q)
    return redis.call("HGETALL", Key.of("task", q.run, q.task))
  end,
}
