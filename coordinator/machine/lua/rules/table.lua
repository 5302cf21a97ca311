-- Generated from transitions.py by `make generate`. Do not edit.

Table.rows = {
  dispatch_task = {
    pending = { queued = "task_queued" },
  },
  deny = {
    pending = { denied = "task_denied" },
  },
  skip = {
    pending = { skipped = "task_skipped" },
  },
  reuse = {
    pending = { succeeded = "task_reused" },
  },
  block = {
    pending = { blocked = "task_blocked" },
    queued = { blocked = "task_blocked" },
  },
  grant_lease = {
    queued = { running = "attempt_started" },
  },
  never_start = {
    queued = { pending = "attempt_never_started", failed = "task_failed" },
    running = { pending = "attempt_never_started", failed = "task_failed" },
  },
  queue_timeout = {
    queued = { failed = "task_failed" },
  },
  end_attempt = {
    running = { succeeded = "task_succeeded", failed = "task_failed", denied = "task_denied", awaiting = "task_awaiting", pending = "attempt_failed" },
  },
  expire_lease = {
    running = { pending = "attempt_lost", failed = "task_failed" },
  },
  time_out = {
    running = { pending = "attempt_timed_out", failed = "task_failed" },
  },
  report_external = {
    queued = { running = "attempt_started" },
    running = { succeeded = "task_succeeded", failed = "task_failed" },
  },
  spawn_tasks = {
    queued = { running = "task_spawning" },
    running = { awaiting = "task_awaiting" },
  },
  children_ended = {
    awaiting = { pending = "task_resumed" },
  },
  collect_task = {
    queued = { running = "task_collecting" },
    running = { succeeded = "task_succeeded", failed = "task_failed" },
  },
  cancel = {
    pending = { canceled = "task_canceled" },
    queued = { canceled = "task_canceled" },
    running = { canceled = "task_canceled" },
    awaiting = { canceled = "task_canceled" },
  },
  answer_task = {
    awaiting = { pending = "task_resumed" },
  },
  conflict = {
    running = { needs_review = "task_conflicted" },
    succeeded = { needs_review = "task_conflicted" },
  },
  doubt_action = {
    running = { needs_review = "task_in_doubt" },
  },
  accept_result = {
    needs_review = { succeeded = "review_accepted" },
  },
  reject_result = {
    needs_review = { failed = "review_rejected" },
  },
  rerun = {
    needs_review = { pending = "task_rerun" },
    succeeded = { pending = "task_rerun" },
    failed = { pending = "task_rerun" },
  },
  unblock = {
    blocked = { pending = "task_unblocked" },
  },
}
