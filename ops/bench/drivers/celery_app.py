"""Owns the Celery application that worker and driver share. Must not leave what Celery's manual advises for Redis."""

from __future__ import annotations

import os

from celery import Celery

app = Celery("bench", broker=os.environ["BENCH_REDIS_URL"], backend=os.environ["BENCH_REDIS_URL"])
app.conf.update(
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    broker_connection_retry_on_startup=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


@app.task(name="noop")
def noop() -> None:
    """Does nothing."""
