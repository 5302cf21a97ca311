-- fire_timer: something of a task (or, with an empty task, of the run) may be due; `now` decides (SPEC 3, 7).
-- Applied: queue timeout, start-to-close timeout, lost lease, progress timeout, end of a backoff; for a run: judged.
-- Refused: unknown_run, run_stopped (its timers are taken away), not_due (moved meanwhile).
-- Events: task_failed, attempt_timed_out, attempt_lost; a run's end.

Command[#Command + 1] = {
  name = "fire_timer",
  fields = { "run", "task", "led_since" },
  ints = { led_since = true },
  waits = true,
  without_run = true,
  logged = true,
  apply = function(c, run)
    if not run or Run.is_final(run) then
      redis.call("ZREM", Key.of("timers"), c.run .. "|" .. c.task)
      return "refused", run and "run_stopped" or "unknown_run"
    end
    if c.task == "" then
      run.touched = true
      Record.set(run, "timer_due", "")
      redis.call("ZREM", Key.of("timers"), c.run .. "|")
      return "applied", ""
    end
    local task = Task.load(run, c.task)
    local judge = task and Timer.due[Record.get(task, "state")]
    local done, due_at = false, nil
    if judge then
      done, due_at = judge(run, task, c.led_since)
    end
    if done then
      return "applied", ""
    end
    -- Set right, so that it is not looked at again before it is due.
    if due_at then
      Timer.task(run, task, due_at)
    else
      redis.call("ZREM", Key.of("timers"), c.run .. "|" .. c.task)
    end
    return "refused", "not_due"
  end,
}
