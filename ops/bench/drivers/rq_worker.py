"""Owns one of RQ's own SimpleWorkers, logging errors alone. Usage: rq_worker.py URL. Must not change the worker."""

from __future__ import annotations

import sys
from pathlib import Path

from redis import Redis
from rq import SimpleWorker

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    SimpleWorker(["bench"], connection=Redis.from_url(sys.argv[1])).work(logging_level="ERROR")
