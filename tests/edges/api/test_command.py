"""`crewline api` as a process of its own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from coordinator.api.tokens import add_token
from tests.edges.conftest import Call


def test_it_serves_until_it_is_told_to_end(redis_url: str, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    secret = add_token(tokens, "anna", ["read"])
    command = [sys.executable, "-m", "coordinator.cli.main", "api", "--port", "0", "--tokens", str(tokens)]
    with subprocess.Popen([*command, "--redis", redis_url], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found
            answer = httpx.get(f"{found[0]}/api/v1/runs", headers={"Authorization": f"Bearer {secret}"})
            assert answer.json() == {"runs": [], "next_offset": None}
            assert "server" not in answer.headers
            assert httpx.get(f"{found[0]}/", follow_redirects=True).url.path == "/login"
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) in (0, -signal.SIGTERM)
            assert secret not in process.stderr.read()
        finally:
            process.kill()


def test_what_it_cannot_serve_with(call: Call, redis_url: str, tmp_path: Path) -> None:
    missing = call("api", "--tokens", tmp_path / "none", "--redis", redis_url)
    assert (missing.code, "none: cannot be read" in missing.err) == (2, True)
    tokens = tmp_path / "tokens"
    add_token(tokens, "anna", ["read"])
    assert call("api", "--tokens", tokens).code == 2
    assert call("api", "--tokens", tokens, "--redis", "redis://127.0.0.1:1").code == 3
    key = tmp_path / "key"
    key.write_bytes(b"short")
    assert call("api", "--tokens", tokens, "--redis", redis_url, "--session-key", key).code == 2
    assert call("api", "--tokens", tokens, "--redis", redis_url, "--host", "203.0.113.9").code == 2
