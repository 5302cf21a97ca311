"""The short form of the chaos run that CI does; `make chaos SEED=1 MINUTES=3` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.chaos.session import Session

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240)]

SECONDS = 30.0


def test_nothing_is_lost_and_nothing_is_done_twice(tmp_path: Path) -> None:
    session = Session(tmp_path, seed=1, open_runs=10)
    violations = session.run(SECONDS)
    print(session.told())
    assert [str(violation) for violation in violations] == []
    assert len(session.faults) >= 8, session.told()
    assert len(session.evidence.runs) >= 20, session.told()
