"""What a user sees when something is wrong: one clear line on the standard error, and the exit code of SPEC
9.
"""

from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError

from coordinator.cli.main import tell
from coordinator.wire.errors import InputFault, MachineFault, Refused, Unreachable
from tests.support.command import crewline

NOWHERE = "redis://127.0.0.1:1"


def test_an_unreachable_redis_is_one_line_and_exit_3() -> None:
    done = crewline("status", "X", "--redis", NOWHERE)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [done.stderr.strip()]
    assert "cannot reach Redis at 127.0.0.1:1" in done.stderr


def test_a_password_is_never_shown() -> None:
    done = crewline("list", "--redis", "redis://me:secret@127.0.0.1:1")
    assert done.returncode == 3
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    "command", [("list",), ("status", "X"), ("events", "X"), ("report", "X"), ("explain", "X")]
)
def test_without_a_redis_it_says_what_is_missing(command: tuple[str, ...]) -> None:
    done = crewline(*command)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--redis" in done.stderr
    assert "CREWLINE_REDIS_URL" in done.stderr


def test_the_address_may_stand_in_the_environment() -> None:
    assert crewline("list", env={"CREWLINE_REDIS_URL": NOWHERE}).returncode == 3


@pytest.mark.parametrize(
    "words", [("status",), ("status", "X", "--nothing"), ("nothing",), ("events", "X", "--after", "-1")]
)
def test_wrong_usage_exits_2(words: tuple[str, ...]) -> None:
    done = crewline(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (InputFault(["a: one", "b: two"]), 2, ["crewline: a: one", "crewline: b: two"]),
        (Unreachable("gone"), 3, ["crewline: gone"]),
        (Refused(word="task_ended"), 1, ["crewline: task ended"]),
        (MachineFault("broken", file="x.lua", line=3), 1, ["crewline: x.lua:3: broken"]),
        (ConnectionError("no\x1b[2Jroute"), 3, ["crewline: Redis cannot be reached: no [2Jroute"]),
    ],
)
def test_every_error_becomes_lines_and_its_exit_code(
    error: Exception, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert tell(error) == code
    assert capsys.readouterr().err.splitlines() == lines


def test_a_fault_of_ours_shows_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell(KeyError("x")) == 1
    assert "CREWLINE_TRACEBACK" in capsys.readouterr().err
