"""The proxy of chaos runs does to one process' connections what its faults say, and nothing to the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from redis import Redis
from redis.exceptions import ConnectionError, TimeoutError

from coordinator.wire.connection import connect
from ops.chaos.checker.journal import read_journal
from ops.chaos.proxy import Commands, Gate, Proxy, words

SHORT_S = 1.0


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(unquote(urlsplit(redis_url).path)) as one:
        yield one


@pytest.fixture
def two(proxy: Proxy) -> Iterator[tuple[Redis, Redis]]:
    """Clients of two listeners."""
    clients = [connect(proxy.url(name), socket_timeout=SHORT_S) for name in ("a", "b")]
    for client in clients:
        client.ping()
    yield clients[0], clients[1]
    for client in clients:
        client.close()


def test_commands_are_cut_out_of_any_chunks() -> None:
    sent = b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n*1\r\n\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n"
    for size in range(1, len(sent) + 1):
        commands, found = Commands(), []
        for at in range(0, len(sent), size):
            found += commands.feed(sent[at : at + size])
        assert [words(command) for command in found] == [[b"PING"], [b"SET", b"k", b"*1\r\n"], [b"GET", b""]]
        assert b"".join(found) == sent


def test_a_silent_connection_says_nothing_and_a_new_one_works(proxy: Proxy, two: tuple[Redis, Redis]) -> None:
    proxy.swallow("a")
    with pytest.raises(TimeoutError):
        two[0].ping()
    assert two[1].ping()
    assert two[0].ping()  # it has connected again


def test_a_deaf_listener_takes_new_connections_and_says_nothing_until_it_is_healed(
    proxy: Proxy, two: tuple[Redis, Redis]
) -> None:
    proxy.swallow("a", deaf=True)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            two[0].ping()
    proxy.heal("a")
    assert two[0].ping()


def test_a_lost_reply_is_lost_after_the_command_was_done(
    proxy: Proxy, two: tuple[Redis, Redis], redis: Redis
) -> None:
    proxy.lose_reply("a")
    with pytest.raises(ConnectionError):
        two[0].incr("crewline:n")
    assert redis.get("crewline:n") == b"1"
    assert two[0].incr("crewline:n") == 2


def test_a_cut_ends_the_connections_of_one_process(proxy: Proxy, two: tuple[Redis, Redis]) -> None:
    before = [client.client_id() for client in two]
    proxy.cut("a")
    after = [
        client.client_id() for client in two
    ]  # an idle connection that was reset is replaced at its next use
    assert (before[0] == after[0], before[1] == after[1]) == (False, True)


@pytest.mark.parametrize(("gate", "done"), [(Gate.HOLD, None), (Gate.LOSE_REPLY, b"1")])
def test_a_judged_command_is_held_or_done_without_a_word(
    proxy: Proxy, two: tuple[Redis, Redis], redis: Redis, gate: Gate, done: bytes | None
) -> None:
    proxy.judge("a", lambda command: gate if words(command)[0] == b"INCRBY" else Gate.PASS)
    two[0].set("crewline:other", "1")
    with pytest.raises(TimeoutError):
        two[0].incr("crewline:n")
    assert redis.get("crewline:n") == done


def test_a_journal_that_was_cut_off_is_read_to_where_it_was_cut(tmp_path: Path) -> None:
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "a.manifest").write_text("file a.base.rdb seq 1 type b\nfile a.incr.aof seq 1 type i\n")
    entry = b"*5\r\n$4\r\nXADD\r\n$18\r\ncrewline:inbox:one\r\n$3\r\n1-0\r\n$4\r\nkind\r\n$3\r\nend\r\n"
    taken = b"*3\r\n$4\r\nXDEL\r\n$18\r\ncrewline:inbox:one\r\n$3\r\n1-0\r\n"
    record = b"*3\r\n$5\r\nRPUSH\r\n$19\r\ncrewline:commands:r\r\n$1\r\nx\r\n"
    together = b"*1\r\n$5\r\nMULTI\r\n" + taken + record + b"*1\r\n$4\r\nEXEC\r\n"
    for cut, applied in ((0, [["commands:r"]]), (3, []), (len(together) - 3, [])):
        data = entry + together
        (folder / "a.incr.aof").write_bytes(data[: len(data) - cut])
        [letter] = read_journal(tmp_path, "crewline")
        assert letter.said == {"kind": "end"}
        assert [one.recorded for one in letter.applied] == applied
