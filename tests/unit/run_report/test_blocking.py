"""Paths of blocks: whole when short, capped when long, never recursive."""

from __future__ import annotations

from coordinator.run_report.build import build_report
from coordinator.run_report.encode import canonical_bytes
from coordinator.run_report.sections.blocking import blocked_paths


def chain(length: int) -> list[dict[str, str]]:
    """A failed task and a chain of blocked ones behind it, given in the worst order."""
    tasks = [{"id": "t0", "state": "failed"}]
    tasks += [{"id": f"t{n}", "state": "blocked", "root": "t0", "via": f"t{n - 1}"} for n in range(1, length)]
    return tasks[::-1]


def test_a_short_path_is_whole() -> None:
    for length in (2, 8, 9, 16):
        expected = {"root": "t0", "path": [f"t{n}" for n in range(length)]}
        assert blocked_paths(chain(length))[f"t{length - 1}"] == expected


def test_a_long_path_keeps_both_ends() -> None:
    shown = blocked_paths(chain(20))["t19"]
    assert shown["path"] == [f"t{n}" for n in (*range(8), *range(12, 20))]
    assert shown["omitted"] == 4


def test_c54_a_chain_of_5000_gives_a_linear_report(new_snapshot: object) -> None:
    snapshot = new_snapshot("critical_failure")  # type: ignore[operator] # a fixture that is a function
    snapshot.tasks = [
        {"index": str(n), "required": "1", **task} for n, task in enumerate(reversed(chain(5000)))
    ]
    assert len(canonical_bytes(build_report(snapshot))) < 5000 * 700


def test_links_that_run_in_a_circle_end() -> None:
    tasks = [
        {"id": "a", "state": "blocked", "root": "r", "via": "b"},
        {"id": "b", "state": "blocked", "root": "r", "via": "a"},
    ]
    assert set(blocked_paths(tasks)) == {"a", "b"}
