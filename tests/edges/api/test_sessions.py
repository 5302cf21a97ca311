"""The pages' sessions and forms against whoever would like to use another person's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.edges.api.test_people import conflict
from tests.support.api_server import Served

CROSS = {"Sec-Fetch-Site": "cross-site"}


def log_in(served: Served) -> httpx.Client:
    client = httpx.Client(base_url=served.url, timeout=30)
    answer = client.post("/login", data={"token": served.secrets["all"], "next": "/reviews"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/reviews")
    return client


@pytest.fixture
def person(served: Served) -> Iterator[httpx.Client]:
    """A client that is logged in."""
    with closing(log_in(served)) as client:
        yield client


def form_key(page: httpx.Response) -> str:
    found = re.search(r'name="form_key" value="([0-9a-f]+)"', page.text)
    assert found
    return found[1]


def test_the_cookie_is_out_of_reach(served: Served) -> None:
    answer = httpx.post(f"{served.url}/login", data={"token": served.secrets["all"]})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert served.secrets["all"] not in cookie


@pytest.mark.parametrize("scope", ["submit", "operate"])
def test_pages_need_the_scope_read(served: Served, scope: str) -> None:
    answer = httpx.post(f"{served.url}/login", data={"token": served.secrets[scope]})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_cookie_that_is_not_ours_opens_nothing(served: Served, person: httpx.Client) -> None:
    good = person.cookies["crewline_session"]
    digest, issued, rest = good.split(".", 2)
    for cookie in (
        "",
        "x",
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        f"{digest}.{int(issued) + 9}.{rest}",
    ):
        answer = httpx.get(f"{served.url}/", cookies={"crewline_session": cookie})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2F")
    assert httpx.get(f"{served.url}/", cookies={"crewline_session": good}).status_code == 200


def test_a_session_ends_with_its_token(served: Served, person: httpx.Client) -> None:
    assert person.get("/").status_code == 200
    lines = [line for line in served.tokens.read_text().splitlines() if '"anna"' not in line]
    served.tokens.write_text("\n".join(lines))
    assert person.get("/").status_code == 303
    assert person.get("/", params={"part": 1}).status_code == 401


def test_a_form_of_another_site_does_nothing(served: Served, person: httpx.Client, api: httpx.Client) -> None:
    run, review = conflict(api)
    path = f"/runs/{run}/reviews/{review['id']}"
    fields = {"decision": "reject", "reason": "r", "version": str(review["state_version"]), "tainted": "keep"}
    key = form_key(person.get(path))
    with closing(log_in(served)) as other:
        stolen = form_key(other.get(path))
    assert person.post(path, data=fields).status_code == 403
    assert person.post(path, data={**fields, "form_key": stolen}).status_code == 403
    assert person.post(path, data={**fields, "form_key": key}, headers=CROSS).status_code == 403
    assert api.get("/reviews").json()["reviews"], "nothing was decided"
    stale = person.post(path, data={**fields, "form_key": key, "version": "1"})
    assert stale.status_code == 409
    assert "stale version" in stale.text
    assert person.post(path, data={**fields, "form_key": key}).status_code == 303
    assert api.get("/reviews").json()["reviews"] == []


def test_what_a_team_wrote_is_shown_and_never_obeyed(person: httpx.Client, api: httpx.Client) -> None:
    evil = "<script>alert(1)</script>"
    team = {"team": evil, "tasks": {"a": {"external": True}}}
    run = api.post("/runs", json={"team": team}).json()["run"]
    api.post(f"/runs/{run}/tasks/a/reports", json={"state": "completed", "payload": {evil: evil}})
    for path in ("/", f"/runs/{run}"):
        text = person.get(path).text
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)" in text


def test_pages_that_do_not_exist(person: httpx.Client) -> None:
    for path in (
        "/nothing",
        "/runs/nobody",
        "/runs/nobody/reviews/x",
        "/static/other.css",
        "/runs/nobody/late",
    ):
        answer = person.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"].startswith("text/html")
    assert person.get("/runs/a--b").status_code == 422
