"""Owns what submits the work of one system and waits for its end; each file runs in an environment of its own.

Must not import `ops.bench`: the Celery driver runs where Crewline is not installed. The words between the benchmark
and a driver are JSON lines: `{"shape", "count"}` in, `{"seconds", "submit_seconds", "tasks"}` out.
"""
