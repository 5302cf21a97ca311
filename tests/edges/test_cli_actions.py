"""`crewline actions` and `crewline late`: side effects of which nobody knows, and what came too late."""

from __future__ import annotations

import json
from typing import Any

import pytest
from redis import Redis

from coordinator.wire import channels, reports
from coordinator.wire.grants import parse_message
from tests.edges.conftest import Call
from tests.edges.desk import Desk
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("coordinator")

NS, ROLE, WORKER = channels.DEFAULT_NAMESPACE, "clerk", "w1"
NO_WAIT = {"max_attempts": 3, "backoff": 0}


class FakeWorker:
    """Speaks as a worker does, word by word, so that it can stop between an effect and its report."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._list = channels.reply(NS, ROLE, WORKER)

    def ask(self, entry: reports.RoleEntry) -> Any:
        """Says something and waits for the answer."""
        addressed = entry.model_copy(update={"reply_to": self._list, "request": "q"})
        fields: dict[Any, Any] = dict(addressed.fields())
        self._redis.xadd(channels.inbox(NS, ROLE), fields)
        found: Any = self._redis.blpop([self._list], timeout=20)
        return parse_message(found[1])

    def begin(self, task: str, attempt: int) -> dict[str, Any]:
        """Begins an attempt as soon as it is queued; gives what every later word must name."""
        who = {"run": "r1", "task": task, "attempt": attempt, "worker": WORKER}

        def granted() -> Any:
            answer = self.ask(reports.Start(**who))
            return answer if answer.kind == "grant" else None

        return {**who, "lease": until(granted, "the attempt is queued").lease}

    def act(self, who: dict[str, Any], key: str) -> str:
        """Is about to do something."""
        return str(self.ask(reports.ActionStart(**who, key=key, payload='{"amount":5}')).word)

    def end(self, who: dict[str, Any], outcome: str = "succeeded") -> str:
        """Ends the attempt."""
        return str(
            self.ask(reports.End(**who, outcome=outcome, payload="1" if outcome == "succeeded" else "")).word
        )


@pytest.fixture
def fake(redis: Redis) -> FakeWorker:
    return FakeWorker(redis)


def doubtful(call: Call, desk: Desk, fake: FakeWorker) -> None:
    """Task `quick` began to pay, failed, and cannot tell at its second attempt whether it had paid."""
    call("submit", desk.team(quick=NO_WAIT, order={"external": True}), "--id", "r1")
    first = fake.begin("quick", 1)
    assert fake.act(first, "pay") == "action_started"
    fake.end(first, "transient")
    second = fake.begin("quick", 2)
    assert fake.act(second, "pay") == "action_unknown"
    assert fake.ask(reports.ActionDoubt(**second, key="pay")).status == "applied"


def test_an_action_that_nobody_knows_is_confirmed_with_its_receipt(
    call: Call, desk: Desk, fake: FakeWorker
) -> None:
    doubtful(call, desk, fake)
    [action] = call("actions", "list", "r1", "--json").json
    assert (action["task"], action["key"], action["state"]) == ("quick", "pay", "unknown")
    assert action["details"] == {"amount": 5}
    assert "unknown" in call("actions", "list", "-").out
    shown = call("review", "show", "r1").out
    assert "crewline actions confirm r1 quick pay --receipt FILE" in shown
    assert "unknown_action" in shown
    (desk.folder / "receipt").write_text('{"n": 7}')
    done = call(
        "actions", "confirm", "r1", "quick", "pay", "--receipt", desk.folder / "receipt", "--reason", "seen"
    )
    assert (done.code, done.out) == (0, "running\n"), done.err
    third = fake.begin("quick", 3)
    assert fake.act(third, "pay") == "action_confirmed"
    assert fake.end(third) == ""
    report = call("report", "r1", "--json").json
    assert report["actions"][0]["receipt"] == {"n": 7}
    assert (report["reviews"][0]["status"], report["reviews"][0]["decision"]) == ("decided", "confirmed")
    twice = call("actions", "fail", "r1", "quick", "pay", "--reason", "no")
    assert (twice.code, "no action pay that is open" in twice.err) == (2, True)


def test_an_action_that_was_not_done_may_be_done_again(call: Call, desk: Desk, fake: FakeWorker) -> None:
    doubtful(call, desk, fake)
    assert call("actions", "fail", "r1", "quick", "pay", "--reason", "not in the ledger").out == "running\n"
    assert fake.act(fake.begin("quick", 3), "pay") == "action_started"


def test_a_reviewer_may_take_the_task_out_of_doubt_otherwise(
    call: Call, desk: Desk, fake: FakeWorker
) -> None:
    doubtful(call, desk, fake)
    (desk.folder / "result").write_text('{"paid": true}')
    assert call("review", "supply", "r1", desk.folder / "result").out == "running\n"
    assert call("report", "r1", "--json").json["tasks"]["quick"]["result"] == {"paid": True}


def test_what_does_not_exist_cannot_be_decided(call: Call, desk: Desk, fake: FakeWorker) -> None:
    call("submit", desk.team(order={"external": True}), "--id", "r1")
    assert call("actions", "list", "r1", "--json").json == []
    assert call("actions", "confirm", "r1", "order", "pay").code == 2
    assert call("actions", "confirm", "r1", "nobody", "pay").code == 2
    assert call("actions", "list", "zz").code == 2


def test_late_lists_what_came_after_the_stop(call: Call, desk: Desk, fake: FakeWorker) -> None:
    call("submit", desk.team(quick={}, order={"external": True}), "--id", "r1")
    who = fake.begin("quick", 1)
    assert call("report-task", "r1", "order", "failed").out == "critical_failure\n"
    assert fake.end(who) == "late_ignored"
    [entry] = call("late", "r1", "--json").json
    assert (entry["task"], entry["source"], entry["payload"], entry["would_change"]) == (
        "quick",
        WORKER,
        1,
        True,
    )
    listed = call("late", "-").out
    assert "run_stopped" in listed
    assert json.loads(listed.splitlines()[1].split()[-1]) == 1
