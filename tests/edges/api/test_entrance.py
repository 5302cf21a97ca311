"""Who may come in: tokens and scopes, rates, sizes, the headers of every answer."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from coordinator.api.gate import Settings
from coordinator.api.limits import Flights, Rates
from coordinator.api.problems import InFlight, TooManyRequests
from coordinator.api.tokens import TokenFile, add_token
from coordinator.wire.errors import InputFault
from tests.edges.api.conftest import Open
from tests.edges.conftest import Call, Done
from tests.support.api_server import Served, running_api

NEEDS = {
    ("GET", "/runs"): {"read"},
    ("GET", "/runs/r"): {"read"},
    ("GET", "/runs/r/actions"): {"read"},
    ("POST", "/runs"): {"submit"},
    ("POST", "/runs/r/cancel"): {"operate"},
    ("POST", "/runs/r/signals"): {"operate"},
    ("POST", "/runs/r/actions/decision"): {"operate"},
    ("GET", "/reviews"): {"operate", "review"},
    ("GET", "/runs/r/late"): {"operate", "review"},
    ("POST", "/runs/r/reviews/x/decision"): {"review"},
}


@pytest.mark.parametrize(("method", "path"), NEEDS)
def test_each_route_has_its_scope(open_client: Open, method: str, path: str) -> None:
    for scope in ("", "read", "submit", "operate", "review"):
        answer = open_client(scope).request(method, path)
        if not scope:
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        else:
            assert (answer.status_code != 403) == (scope in NEEDS[method, path]), (scope, answer.text)


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer nonsense", "Basic abc", "Bearer crw_", "Bearer é"])
def test_what_is_no_token(served: Served, given: str) -> None:
    answer = httpx.get(f"{served.url}/api/v1/runs", headers=[(b"Authorization", given.encode())])
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_token_in_a_cookie_or_a_query_is_none(served: Served) -> None:
    secret = served.secrets["all"]
    with httpx.Client(base_url=served.url, cookies={"crewline_session": secret}) as client:
        assert client.get("/api/v1/runs").status_code == 401
        assert client.get("/api/v1/runs", params={"access_token": secret}).status_code == 401


def test_a_token_that_is_taken_back_is_out_at_once(served: Served, open_client: Open) -> None:
    client = open_client("read")
    assert client.get("/runs").status_code == 200
    lines = [line for line in served.tokens.read_text().splitlines() if "only-read" not in line]
    served.tokens.write_text("\n".join(lines) + "\n")
    assert client.get("/runs").status_code == 401
    assert open_client("all").get("/runs").status_code == 200
    served.tokens.unlink()
    assert open_client("all").get("/runs").status_code == 401


def test_health_and_the_openapi_document_need_no_token(open_client: Open) -> None:
    assert open_client("").get("/health").json() == {"redis": True, "leader": True}
    document = open_client("").get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert all("summary" in operation for path in document["paths"].values() for operation in path.values())


def test_every_answer_has_its_headers(served: Served) -> None:
    for path in ("/login", "/api/v1/runs", "/nothing", "/static/crewline.css"):
        headers = httpx.get(f"{served.url}{path}").headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert httpx.get(f"{served.url}/api/v1/health").headers["cache-control"] == "no-store"


@pytest.fixture
def bounded(redis_url: str, tmp_path: Path) -> Iterator[Served]:
    """An API with tight bounds; no coordinator."""
    settings = Settings(rate=0.001, burst=3, failures=2, body_bytes=2000)
    with running_api(redis_url, tmp_path, settings) as served:
        yield served


def test_too_many_requests(bounded: Served) -> None:
    def ask(secret: str) -> httpx.Response:
        return httpx.get(f"{bounded.url}/api/v1/runs", headers={"Authorization": f"Bearer {secret}"})

    statuses = [ask(bounded.secrets["all"]).status_code for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    answer = ask(bounded.secrets["all"])
    assert int(answer.headers["retry-after"]) > 0
    assert answer.headers["content-type"] == "application/problem+json"
    assert ask(bounded.secrets["read"]).status_code == 200, "each token has its own rate"
    assert [ask("wrong").status_code for _ in range(3)] == [401, 401, 429]


def test_too_large_requests(bounded: Served) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1000

    headers = {
        "Authorization": f"Bearer {bounded.secrets['submit']}",
        "Content-Type": "application/json",
    }
    url = f"{bounded.url}/api/v1/runs"
    told = httpx.post(url, content=b" " * 3000, headers=headers)
    untold = httpx.post(url, content=pieces(), headers=headers)
    assert [told.status_code, untold.status_code] == [413, 413]
    assert {told.headers["content-type"], untold.headers["content-type"]} == {"application/problem+json"}


def test_rates_refill_and_forget() -> None:
    now = [0.0]
    rates = Rates(rate=2, burst=2, clock=lambda: now[0])
    for _ in range(2):
        rates.take("a")
    with pytest.raises(TooManyRequests) as caught:
        rates.take("a")
    assert caught.value.seconds == pytest.approx(0.5)
    rates.take("b")
    now[0] = 0.5
    rates.take("a")
    with pytest.raises(TooManyRequests):
        rates.check("a")


def test_a_key_is_held_once() -> None:
    flights = Flights()
    with flights.hold("k"):
        with pytest.raises(InFlight), flights.hold("k"):
            pass
        with flights.hold("other"):
            pass
    with flights.hold("k"):
        pass


def test_the_command_makes_tokens(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "tokens"

    def new(*words: str) -> Done:
        return call("api-token", "new", "--tokens", file, *words)

    made = new("--scope", "read,submit", "--scope", "review", "--name", "anna", "--days", "30")
    assert made.code == 0
    secret = made.out.strip()
    assert secret not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = TokenFile(file).find(secret)
    assert token is not None
    assert (token.name, token.scopes) == ("anna", {"read", "submit", "review"})
    for words in (
        ("--scope", "read", "--name", "anna"),
        ("--scope", "all", "--name", "b"),
        ("--scope", "read", "--name", "a b"),
    ):
        assert new(*words).code == 2


def test_expired_and_unreadable_tokens(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    old, good = add_token(file, "old", ["read"]), add_token(file, "good", ["read"])
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["expires_at"] = 1
    file.write_text("\n".join(map(json.dumps, lines)) + "\n# a remark\n\n")
    tokens = TokenFile(file)
    assert tokens.find(old) is None
    assert tokens.find(good)
    file.write_text(file.read_text() + "nonsense\n")
    assert tokens.find(good), "a line that means nothing lets nobody in, and nobody out"
    with pytest.raises(InputFault, match="tokens:5"):
        TokenFile(file)
    with pytest.raises(InputFault):
        TokenFile(tmp_path / "missing")
