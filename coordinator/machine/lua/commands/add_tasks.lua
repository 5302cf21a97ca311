-- add_tasks: the next part of a large run's tasks and edges.
-- Applied: added; the last part opens the run. Refused: unknown_run, stale_version (another call added this part).
-- Events: none of its own.

Command[#Command + 1] = {
  name = "add_tasks",
  fields = { "run", "cursor", "items", "more" },
  ints = { cursor = true, more = true },
  logged = true,
  apply = function(c, run)
    if Record.get(run, "batch") ~= "add" or Record.int(run, "items") ~= c.cursor then
      return "refused", "stale_version"
    end
    Plan.add(run, c.items, c.more)
    return "applied", ""
  end,
}
