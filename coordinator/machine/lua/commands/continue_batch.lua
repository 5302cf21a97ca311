-- continue_batch: the next bounded piece of a run's open batch; the work itself is done by the gate (Batch.work).
-- Applied: a piece was done. Refused: unknown_run. Repeated: no batch is open.
-- Events: those of the tasks that the batch moves, and of the run when it is judged.

Command[#Command + 1] = {
  name = "continue_batch",
  fields = { "run" },
  without_run = true,
  logged = true,
  apply = function(c, run)
    if not run then
      redis.call("ZREM", Key.of("batches"), c.run)
      return "refused", "unknown_run"
    end
    if Record.get(run, "batch") ~= "open" then
      return "repeated", ""
    end
    run.touched = true
    return "applied", ""
  end,
}
