"""A person at the pages: logs in, watches a run, decides a conflict, and sees the run go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.support.api_server import Served
from tests.support.waiting import until
from tests.support.wire_worker import WORK, Worker

pytestmark = pytest.mark.browser

Picture = Callable[..., None]


def outside(*requires: str, **more: Any) -> dict[str, Any]:
    """A task that the test does."""
    return {"external": True, "requires": list(requires), **more}


REFUND: dict[str, Any] = {
    "team": "refund-review",
    "tasks": {
        "order": outside(idempotency_key="order", reserve={"tokens": 800}),
        "customer": outside(reserve={"tokens": 800}),
        "survey": outside(required=False, reserve={"tokens": 100}),
        "policy": outside("order", reserve={"tokens": 2000}),
        "fraud_check": outside("order", "customer", reserve={"tokens": 2000}),
        "survey_digest": outside("survey", required=False, reserve={"tokens": 100}),
        "decision": outside("policy", "fraud_check", reserve={"tokens": 2000}),
        "letter": outside("decision", required=False, after=["survey"], reserve={"tokens": 900}),
        "newsletter": outside("survey_digest", required=False, reserve={"tokens": 100}),
        "payment": outside("decision", reserve={"tokens": 100}),
    },
    "limits": {"step_budget": 14, "max_steps": 40, "tokens": 12000},
}
RECEIPT = {
    "order_id": "A-1001",
    "customer": {"name": "M. Okafor", "since": 2019},
    "items": [{"sku": "tea-pot", "price": "38.00"}, {"sku": "cups", "price": "21.50"}],
    "paid": "59.50",
    "currency": "EUR",
    "returned_at": "2026-11-18",
}


class Outside:
    """The outside systems, which report by the API."""

    def __init__(self, served: Served) -> None:
        self.client = httpx.Client(
            base_url=f"{served.url}/api/v1",
            headers={"Authorization": f"Bearer {served.secrets['all']}"},
            timeout=30,
        )

    def submit(self, team: dict[str, Any], run: str) -> str:
        """Makes a run of the id."""
        answer = self.client.post("/runs", json={"team": team, "run": run})
        assert answer.status_code == 201, answer.text
        return run

    def say(self, run: str, task: str, state: str = "completed", payload: Any = None, **more: Any) -> str:
        """Reports; gives the verdict, or the run's status."""
        body = {"state": state, **({"payload": payload} if state == "completed" else {}), **more}
        answer = self.client.post(f"/runs/{run}/tasks/{task}/reports", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["word"] or answer.json()["run_status"])


@pytest.fixture
def systems(served: Served) -> Iterator[Outside]:
    systems = Outside(served)
    yield systems
    systems.client.close()


def node(page: Page, task: str) -> Any:
    """The task's box in the graph."""
    return page.locator(f"svg.graph a.node:has(title:text('{task}:'))")


def log_in(page: Page, secret: str, picture: Picture) -> None:
    """By the keyboard, after a token that is none."""
    expect(page).to_have_title(re.compile("Log in"))
    picture(page, "login")
    page.keyboard.type("crw_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("No valid token.")
    page.keyboard.type(secret)
    page.keyboard.press("Enter")


def decide_by_keyboard(page: Page, reason: str, button: str) -> None:
    """A decision without a mouse."""
    page.get_by_label("Reason").focus()
    page.keyboard.type(reason)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == button:
            break
    page.keyboard.press("Enter")


def test_watch_a_run_decide_its_conflict_and_see_it_go_on(
    served: Served, systems: Outside, visit: Visit, picture: Picture
) -> None:
    run = systems.submit(REFUND, "refund-a1001")
    page = visit(f"/runs/{run}")
    log_in(page, served.secrets["all"], picture)
    page.wait_for_url(f"**/runs/{run}")

    expect(page.locator("[data-stream].live")).to_be_visible()
    page.evaluate("window.sameDocument = true")
    systems.say(run, "order", "working")
    expect(node(page, "order")).to_have_class(re.compile("s-running"))
    systems.say(run, "order", payload=RECEIPT, tokens=640)
    systems.say(run, "customer", payload={"name": "M. Okafor", "standing": "good"}, tokens=410)
    systems.say(run, "survey", "failed", error={"message": "the survey service answered 410 Gone"})
    systems.say(run, "policy", "working")
    expect(node(page, "policy")).to_have_class(re.compile("s-running"))
    expect(node(page, "newsletter")).to_have_class(re.compile("s-blocked"))
    expect(page.locator("path.edge.blocking")).to_have_count(2)
    expect(page.locator("#tasks")).to_contain_text("survey → survey_digest → newsletter")
    picture(page, "run")

    other = {**RECEIPT, "items": RECEIPT["items"][:1], "paid": "38.00"}
    assert systems.say(run, "order", payload=other) == "result_conflict_detected"
    link = page.get_by_role("link", name="Review conflict of order")
    expect(link).to_be_visible()
    assert page.evaluate("window.sameDocument"), "the page was kept fresh without loading it again"
    link.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Conflict: order")).to_be_visible()
    expect(page.locator(".changes")).to_contain_text('/paid: "59.50" → "38.00"')
    expect(page.locator(".difference mark").first).to_be_visible()
    picture(page, "review")

    decide_by_keyboard(page, "the shop confirmed both items", "Accept result A")
    page.wait_for_url(re.compile(f"/runs/{run}"))
    expect(node(page, "order")).to_have_class(re.compile("s-succeeded"))
    systems.say(run, "policy", payload={"refund": "full"}, tokens=1800)
    systems.say(run, "fraud_check", payload={"risk": 0.02}, tokens=1500)
    systems.say(run, "decision", payload={"refund": "59.50"}, tokens=1200)
    expect(node(page, "decision")).to_have_class(re.compile("s-succeeded"))
    assert systems.say(run, "payment", payload={"receipt": 7}) == "completed"
    expect(page.locator("#state .headline")).to_contain_text("completed")
    expect(page.locator("#announce")).to_have_text("Status: completed")
    expect(page.locator("#state")).to_contain_text("Every required task succeeded.")
    picture(page, "run-completed")


def test_forms_of_an_operator(served: Served, systems: Outside, visit: Visit) -> None:
    run = systems.submit({**REFUND, "limits": {"max_steps": 1}, "on_limit": "pause"}, "parked")
    systems.say(run, "customer", "working")
    page = visit(f"/runs/{run}", served.secrets["all"])
    resume = page.locator("form[action$='/resume']")
    resume.get_by_label("max steps").fill("some")
    resume.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_contain_text("max_steps: expected a whole number")
    resume.get_by_label("max steps").fill("+20")
    resume.get_by_role("button").click()
    expect(page.locator("#state .headline")).to_contain_text("running")
    expect(page.locator("#budgets")).to_contain_text("1 of 21")
    form = page.locator("form[action$='/report']")
    form.get_by_label("Task").select_option("order")
    form.get_by_label("State").select_option("completed")
    form.get_by_label("Result").fill('{"n": 1}')
    form.get_by_role("button").click()
    expect(node(page, "order")).to_have_class(re.compile("s-succeeded"))
    cancel = page.locator("form[action$='/cancel']")
    cancel.get_by_label("Reason").fill("enough")
    cancel.get_by_role("button").click()
    expect(page.locator("#state .headline")).to_contain_text("canceled")
    assert systems.say(run, "customer", payload={"late": True}) == "late_ignored"
    page.goto(f"/runs/{run}/late")
    expect(page.locator("tbody")).to_contain_text("customer")


def test_actions_questions_and_the_late_ledger(
    served: Served, systems: Outside, visit: Visit, picture: Picture
) -> None:
    run = systems.submit(WORK, "pay-77")
    worker = Worker(served.place.redis)
    lease = worker.start(run)
    worker.act(run, lease, "payment")
    worker.end(run, lease, "missing_input", payload='"Which account is it?"')
    page = visit(f"/runs/{run}/actions", served.secrets["all"])
    picture(page, "actions")
    form = page.locator("form[action$='/action']")
    form.get_by_label("Receipt").fill('{"transfer": 881}')
    form.get_by_label("Reason").fill("the bank's list has it")
    form.get_by_role("button", name="It was done").click()
    expect(page.locator("tbody")).to_contain_text("confirmed")
    page.goto(f"/runs/{run}")
    answer = page.locator("form[action$='/answer']")
    expect(answer).to_contain_text("Which account is it?")
    answer.get_by_label("Answer").fill("the old one")
    answer.get_by_role("button").click()
    expect(page.locator("#state .headline")).to_contain_text("running")
    systems.client.post(f"/runs/{run}/cancel", json={"reason": "enough"})
    systems.say(run, "mail", payload={"sent": True})
    page.goto(f"/runs/{run}/late")
    expect(page.locator("tbody")).to_contain_text("run stopped")
    picture(page, "late")


def test_lists_phones_and_the_dark(served: Served, systems: Outside, visit: Visit, picture: Picture) -> None:
    for number in range(4):
        systems.submit(REFUND, f"refund-b{number}")
    systems.say("refund-b0", "order", "failed", error={"message": "no such order"})
    systems.client.post("/runs/refund-b1/cancel", json={"reason": "a test"})
    systems.say("refund-b2", "order", payload=RECEIPT)
    systems.say("refund-b2", "order", payload={**RECEIPT, "paid": "38.00", "note": "second parcel"})
    page = visit("/", served.secrets["all"])
    expect(page.locator("#runs")).to_contain_text("critical failure")
    picture(page, "runs")
    page.get_by_label("Status").select_option("critical_failure")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#runs tbody tr")).to_have_count(1)
    page.goto("/reviews")
    expect(page.locator("tbody")).to_contain_text("conflict")
    picture(page, "reviews")
    phone = visit(
        "/runs/refund-b0",
        served.secrets["all"],
        viewport={"width": 390, "height": 844},
        color_scheme="dark",
        has_touch=True,
    )
    expect(phone.locator("#state")).to_contain_text("no such order")
    for path, name in (
        ("/runs/refund-b0", "run-phone-dark"),
        ("/runs/refund-b2/reviews/order.1", "review-phone-dark"),
        ("/", "runs-phone-dark"),
    ):
        phone.goto(path)
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is too wide"
        picture(phone, name)


def test_a_large_graph_is_folded(served: Served, systems: Outside, visit: Visit, picture: Picture) -> None:
    tasks: dict[str, Any] = {"begin": outside()}
    for number in range(150):
        tasks[f"read_{number}"] = outside("begin")
        tasks[f"check_{number}"] = outside(f"read_{number}")
    tasks["sum_up"] = outside(*(f"check_{number}" for number in range(150)))
    run = systems.submit({"team": "large", "tasks": tasks, "on_required_failure": "drain"}, "large-1")
    systems.say(run, "begin")
    for number in range(40):
        systems.say(run, f"read_{number}", "working")
    for number in range(25):
        systems.say(run, f"read_{number}")
    systems.say(run, "read_30", "failed", error={"message": "unreadable"})
    page = visit(f"/runs/{run}", served.secrets["all"])
    expect(page.locator("#graph")).to_contain_text("302 tasks, drawn as")
    assert page.locator("svg.graph a.node").count() < 60
    expect(page.locator("svg.graph .node.s-failed")).to_have_count(1)
    picture(page, "run-large", whole=False)


def test_it_works_without_javascript(served: Served, systems: Outside, visit: Visit) -> None:
    run = systems.submit(REFUND, "plain")
    systems.say(run, "order", payload=1)
    systems.say(run, "order", payload=2)
    page = visit(f"/runs/{run}/reviews/order.1", served.secrets["all"], java_script_enabled=False)
    page.get_by_text("Supply another result").click()
    page.get_by_label("The result, as JSON").fill("{nonsense")
    page.get_by_label("Reason").fill("neither is right")
    page.get_by_role("button", name="Supply this result").click()
    expect(page.get_by_role("alert")).to_contain_text("not JSON")
    page.get_by_label("The result, as JSON").fill("3")
    page.get_by_role("button", name="Supply this result").click()
    expect(page.locator("#state .headline")).to_contain_text("running")
    found = systems.client.get(f"/runs/{run}/report").json()
    assert found["tasks"]["order"]["result"] == 3


def test_who_may_see_and_do_what(served: Served, systems: Outside, visit: Visit) -> None:
    run = systems.submit(REFUND, "seen")
    systems.say(run, "order", payload=1)
    systems.say(run, "order", payload=2)
    page = visit(f"/runs/{run}", served.secrets["read"])
    expect(page.locator("form")).to_have_count(1)
    expect(page.get_by_text("order waits for a reviewer")).to_be_visible()
    until(lambda: page.request.get(f"/runs/{run}/reviews/order.1").status == 403, "evidence is for reviewers")
    form = {"form_key": "guess", "reason": "r", "task": ""}
    assert page.request.post(f"/runs/{run}/say/cancel", form=form).status == 403
    page.get_by_role("button", name="Log out").click()
    page.goto(f"/runs/{run}")
    expect(page).to_have_title(re.compile("Log in"))
    for target in ("//evil.example/", "https://evil.example/", "/\\evil.example"):
        page.goto(f"/login?next={target}")
        expect(page.locator("input[name=next]")).to_have_value("/")
