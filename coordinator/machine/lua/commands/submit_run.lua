-- submit_run: creates a run with the first part of its tasks; the last part opens it.
-- Applied: the run is `running`. Repeated: the same id with the same content. Refused: run_exists.
-- Events: run_submitted, then those of the tasks that become ready, denied or skipped.

Command[#Command + 1] = {
  name = "submit_run",
  fields = { "run", "digest", "library", "header", "items", "more", "team", "inputs" },
  ints = { more = true },
  documents = { team = true, inputs = true },
  without_run = true,
  logged = true,
  apply = function(c, existing)
    if existing then
      local same = Record.get(existing, "digest") == c.digest
      if same then
        c.detail = "same_run"
        return "repeated", ""
      end
      return Gate.refuse(nil, "run_exists")
    end
    local run = Record.new(Key.of("run", c.run), setmetatable({}, { __index = function() return "" end }))
    Run.adopt(run, c.run)
    Run.clock(run, c.now)
    Record.set(run, "run", c.run)
    Record.set(run, "status", "running")
    Record.set(run, "digest", c.digest)
    Record.set(run, "library", c.library)
    Record.set(run, "created_at", run.now)
    local header = Plan.header(run, c.header)
    Record.set(run, "tasks", header.tasks)
    redis.call("HSET", Key.of("documents", c.run), "team", c.team, "inputs", c.inputs)
    redis.call("ZADD", Key.of("runs"), redis.call("HINCRBY", Key.of("serials"), "run", 1), c.run)
    redis.call("SADD", Key.of("runs_by", "running"), c.run)
    Run.progress(run)
    History.status(run, "run_submitted", "", "running", { reason = "submitted" })
    run.touched = true
    Plan.add(run, c.items, c.more)
    return "applied", ""
  end,
}
