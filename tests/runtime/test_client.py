"""Clients: submit and ask, wait for an answer, and know what it means when none comes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from coordinator.client import Client, Unanswered, new_run_id
from coordinator.machine.machine import Machine
from coordinator.machine.reads import ReadDocuments
from coordinator.runtime.service import Service, Settings
from coordinator.team.loader import make_team
from coordinator.wire import channels
from coordinator.wire.connection import connect
from coordinator.wire.errors import InputFault, Unreachable
from tests.runtime.harness import NAMESPACE, team

EXTERNAL = team({"x": {"external": True}, "y": {"external": True, "required": False}})


@pytest.fixture
def coordinator(redis_url: str) -> Iterator[None]:
    """A coordinator that works in a thread."""
    service = Service(redis_url, Settings(idle_ms=50))
    leads = threading.Event()
    thread = threading.Thread(target=lambda: service.run(signals=False, ready=leads.set))
    thread.start()
    assert leads.wait(30)
    yield
    service.stop()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def client(redis: Redis) -> Client:
    return Client(redis, NAMESPACE)


@pytest.mark.usefixtures("coordinator")
def test_submit_and_report(client: Client) -> None:
    answer = client.submit(EXTERNAL)
    assert (answer.status, answer.run_status) == ("applied", "running")
    assert client.report(answer.run, "x", "working").run_status == "running"
    assert client.report(answer.run, "x", "completed", payload='{"n": 1}').run_status == "completed"
    assert client.report(answer.run, "y", "completed").word == "late_ignored"
    assert client.signal(answer.run, "go").status in ("applied", "refused")


@pytest.mark.usefixtures("coordinator")
def test_a_team_comes_as_object_team_or_file(client: Client, tmp_path: Path, redis: Redis) -> None:
    file = tmp_path / "team.yaml"
    file.write_text("team: t\ntasks: {b: {external: true}, a: {external: true}}\n")
    for form in (EXTERNAL, make_team(EXTERNAL), file):
        answer = client.submit(form)
        assert answer.status == "applied"
    documents = Machine(redis, NAMESPACE).read(ReadDocuments(run=answer.run))
    assert documents["team"].index('"b"') < documents["team"].index('"a"')


@pytest.mark.usefixtures("coordinator")
def test_an_id_of_ones_own_names_one_run(client: Client) -> None:
    assert client.submit(EXTERNAL, run="mine").run == "mine"
    assert client.submit(EXTERNAL, run="mine").status == "repeated"
    other = client.submit(team({"z": {"external": True}}), run="mine")
    assert (other.status, other.word) == ("refused", "run_exists")


def test_faults_are_found_before_anything_is_sent(client: Client, redis: Redis) -> None:
    with pytest.raises(InputFault) as caught:
        client.submit({"team": "t", "tasks": {"a": {"colour": "red", "requires": ["b"]}}})
    assert len(caught.value.faults) >= 2
    with pytest.raises(InputFault):
        client.submit(EXTERNAL, {"unknown": 1})
    assert redis.keys("*") == []


@pytest.mark.parametrize("run", ["", "a--b", "a b", "-a", "a-", "x" * 129, "a:b", "a\n"])
def test_an_id_must_fit_a_job_id(client: Client, run: str) -> None:
    with pytest.raises(InputFault):
        client.submit(EXTERNAL, run=run)


def test_without_a_coordinator_it_is_stored_and_applied_later(redis: Redis, redis_url: str) -> None:
    with pytest.raises(Unanswered, match="stored, will be applied") as caught:
        Client(redis, NAMESPACE, answer_seconds=0.05).submit(EXTERNAL, run="later")
    assert (caught.value.exit_code, caught.value.run) == (3, "later")
    assert redis.xlen(channels.scope_inbox(NAMESPACE, "submit")) == 1
    service = Service(redis_url, Settings(idle_ms=50))
    leads = threading.Event()
    thread = threading.Thread(target=lambda: service.run(signals=False, ready=leads.set))
    thread.start()
    assert leads.wait(30)
    assert Client(redis, NAMESPACE).submit(EXTERNAL, run="later").status == "repeated"
    service.stop()
    thread.join(30)


def test_without_redis_it_is_unreachable() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
        Client(connect("redis://127.0.0.1:1", socket_timeout=0.5)).signal("r", "go")


@pytest.mark.parametrize("name", ["Refund review!", "-- --", "ünïcode", "a" * 100, "x_y-z", ""])
def test_run_ids_are_readable_and_fit(name: str) -> None:
    found = {new_run_id(name) for _ in range(50)}
    assert len(found) == 50
    for run in found:
        assert re.fullmatch(channels.ROLE_PATTERN, run)
        assert len(run) < 80
    assert new_run_id("Refund review!").startswith("refund-review-20")
