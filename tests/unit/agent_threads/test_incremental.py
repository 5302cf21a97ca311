"""Only what has changed is rendered anew."""

from __future__ import annotations

import pytest

from coordinator.agent_threads.incremental import Freshness, Listed, freshness


@pytest.mark.parametrize(
    ("last_updated", "rendered", "fresh"),
    [
        ("2", {}, Freshness.NEW),
        ("2", {"t": "2"}, Freshness.UNCHANGED),
        ("3", {"t": "2"}, Freshness.CHANGED),
        ("1", {"t": "2"}, Freshness.CHANGED),
        ("", {"t": ""}, Freshness.CHANGED),
        ("2", {"t": ""}, Freshness.CHANGED),
        ("2", {"u": "2"}, Freshness.NEW),
    ],
)
def test_freshness(last_updated: str, rendered: dict[str, str], fresh: Freshness) -> None:
    assert freshness(Listed("t", last_updated), rendered) is fresh
