"""Connecting: what is said when Redis cannot be used, and which servers are refused."""

from __future__ import annotations

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from coordinator.embedded import EmbeddedRedis
from coordinator.wire.connection import address, check_server, connect, guard, server_faults
from coordinator.wire.errors import CrewlineError, InputFault, MachineFault, Refused, Unreachable
from tests.support.server import start_server


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("redis://127.0.0.1:1", "127.0.0.1:1"),
        ("redis://user:secret@host:7000/2", "host:7000/2"),
        ("rediss://:secret@host/0?password=secret", "host"),
        ("unix:///tmp/a%20b.sock?password=secret", "/tmp/a b.sock"),
    ],
)
def test_an_address_shows_the_place_and_no_secret(url: str, place: str) -> None:
    assert address(url) == place
    client = connect(url)
    assert "secret" not in address(client)
    assert address(client) == ("host:6379" if place == "host" else place)
    client.close()


@pytest.mark.parametrize("url", ["", "localhost:6379", "http://host", "redis://user:secret@host:port"])
def test_what_is_no_address_is_an_input_fault_without_its_secret(url: str) -> None:
    with pytest.raises(InputFault, match="not a Redis address") as caught:
        connect(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["redis://:secret@127.0.0.1:1", "unix:///nowhere/redis.sock?password=secret"])
def test_a_server_that_is_not_there_is_unreachable_in_one_line(url: str) -> None:
    client = connect(url)
    with pytest.raises(Unreachable) as caught:
        check_server(client)
    assert str(caught.value).startswith(f"cannot reach Redis at {address(url)}: ")
    assert len(str(caught.value).splitlines()) == 1
    assert "secret" not in str(caught.value)
    client.close()


def test_a_server_that_cannot_serve_now_is_unreachable_and_a_wrong_command_is_not() -> None:
    with start_server() as server:
        client = connect(server.url)
        client.config_set("maxmemory", "1")
        with pytest.raises(Unreachable, match="cannot serve now: OOM"), guard(client):
            client.set("key", "value")
        client.config_set("maxmemory", "0")
        client.replicaof("127.0.0.1", "1")
        with pytest.raises(Unreachable, match="cannot serve now: READONLY"), guard(client):
            client.set("key", "value")
        with pytest.raises(ResponseError), guard(client):
            client.execute_command("NOSUCH")
        client.close()


def test_an_answer_that_does_not_come_is_unreachable(redis: Redis, redis_server: EmbeddedRedis) -> None:
    hasty = connect(redis_server.url, socket_timeout=0.05)
    with pytest.raises(Unreachable, match="did not answer in time"), guard(hasty):
        hasty.blpop(["nothing"], timeout=1)
    hasty.close()
    patient = connect(redis_server.url, socket_timeout=0.05, blocking=True)
    assert patient.blpop(["nothing"], timeout=0.2) is None
    patient.close()


def test_wrong_credentials_are_named_as_such() -> None:
    with start_server() as server:
        admin = connect(server.url)
        admin.config_set("requirepass", "right")
        client = connect(f"{server.url}?password=wrong")
        with pytest.raises(Unreachable, match="refused the credentials") as caught:
            check_server(client)
        assert "wrong" not in str(caught.value).replace("wrong number", "")
        client.close()
        admin.close()


def test_a_server_that_may_lose_keys_is_refused(redis: Redis) -> None:
    check_server(redis)
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(InputFault, match="maxmemory-policy is allkeys-lru"):
            check_server(redis)
    finally:
        redis.config_set("maxmemory-policy", "noeviction")


def test_a_user_without_config_can_be_checked_and_one_without_info_is_told() -> None:
    with start_server() as server:
        admin = connect(server.url)
        admin.execute_command("ACL", "SETUSER", "limited", "on", ">pw", "+info", "+ping", "+hello", "+auth")
        admin.execute_command("ACL", "SETUSER", "blind", "on", ">pw", "+ping", "+hello", "+auth")
        limited = connect(f"{server.url}?username=limited&password=pw")
        check_server(limited)
        blind = connect(f"{server.url}?username=blind&password=pw")
        with pytest.raises(InputFault, match="may not run INFO"):
            check_server(blind)
        for client in (limited, blind, admin):
            client.close()


@pytest.mark.parametrize(
    ("info", "faults"),
    [
        ({"redis_version": "7.0.0"}, 0),
        ({"redis_version": "6.2.14"}, 1),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, 0),
        ({"redis_version": "7.2.4", "valkey_version": "7.1.0"}, 1),
        ({"redis_version": "6.0.16", "maxmemory_policy": "volatile-ttl"}, 2),
    ],
)
def test_every_reason_against_a_server_is_given_at_once(info: dict[str, str], faults: int) -> None:
    assert len(server_faults(info, "host:6379")) == faults


def test_errors_carry_what_the_edges_need() -> None:
    assert str(Unreachable()) == "Redis, or another part that is needed, cannot be reached."
    fault = InputFault(["one", "two"])
    assert (fault.exit_code, fault.faults, str(fault)) == (2, ("one", "two"), "one\ntwo")
    assert (InputFault("one").faults, Unreachable().exit_code, Refused().exit_code) == (("one",), 3, 1)
    assert str(Refused(word="task_ended")) == "task ended"
    assert str(MachineFault("boom", file="rules/stop.lua", line=7)) == "rules/stop.lua:7: boom"
    assert all(isinstance(e, CrewlineError) for e in (fault, Refused(), MachineFault()))
