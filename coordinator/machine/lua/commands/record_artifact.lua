-- record_artifact: a running attempt has put a named output outside Redis; digest, size and place are kept (SPEC 8).
-- Applied: recorded; a digest that the run did not have yet is progress (SPEC 4). Repeated: it is recorded so already.
-- Another digest under the same name is another record: what lies there never changes.
-- Refused: unknown_run, run_stopped, unknown_task, wrong_role, stale_lease.
-- Events: artifact_recorded | refused.

Command[#Command + 1] = {
  name = "record_artifact",
  fields = { "run", "task", "attempt", "role", "worker", "lease", "artifact", "digest", "size", "url" },
  ints = { attempt = true, size = true },
  waits = true,
  logged = true,
  apply = function(c, run)
    local task, why = Lease.holder(c, run)
    if why then
      return Gate.refuse(run, why)
    end
    local record = cjson.encode({
      name = c.artifact, task = task.id, attempt = c.attempt, digest = c.digest, size = c.size, url = c.url,
      at = run.now, worker = c.worker,
    })
    local field = c.digest .. " " .. task.id .. " " .. c.artifact
    if redis.call("HSETNX", Key.of("artifacts", run.id), field, record) == 0 then
      return "repeated", ""
    end
    if redis.call("SADD", Key.of("artifact_digests", run.id), c.digest) == 1 then
      Run.progress(run)
    end
    History.note(run, "artifact_recorded", task.id, c.artifact, { digest = c.digest, worker = c.worker })
    return "applied", ""
  end,
}
