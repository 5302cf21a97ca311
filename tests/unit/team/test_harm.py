"""Whatever stands in a Team, the loader answers with a Team that compiles or with faults, and nothing else."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.team.compile import compile_plan, content_digest, document_text
from coordinator.team.loader import examine_text, make_team, parse_team
from coordinator.team.payloads import check_inputs
from coordinator.team.source import Source
from coordinator.wire.errors import InputFault
from tests.unit.team.test_loader import FULL

WORDS = [
    "style", "policy", "nobody", "clerk", "inputs.lines", "tasks.style.result", "item", "from", "", "all", "10m", "x-a",
    "[", "stop", "/a", "lines[0]",
]  # fmt: skip
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.just(2**70) | st.just(0.5) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WORDS, "task", "at"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    found = []
    stack = [value]
    while stack:
        item = stack.pop()
        for key in list(item) if isinstance(item, dict) else range(len(item)):
            found.append((item, key))
            if isinstance(item[key], (dict, list)):
                stack.append(item[key])
    return found


@settings(max_examples=200)
@given(st.data())
def test_no_change_to_a_team_does_harm(data: st.DataObject) -> None:
    document = copy.deepcopy(json.loads(json.dumps(Source(FULL, False).value)))
    for _ in range(data.draw(st.integers(1, 3))):
        container, key = data.draw(st.sampled_from(places(document)))
        change = data.draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "remove":
            del container[key]
        elif change == "add" and isinstance(container, dict):
            container[data.draw(st.sampled_from([*WORDS, "when", "for_each", "owner", "limits"]))] = (
                data.draw(ODD)
            )
        else:
            container[key] = data.draw(ODD)
        if not places(document):
            return
    text = json.dumps(document, indent=1)
    team, faults = examine_text(text, "team.json", is_json=True)
    if team is None:
        lines = text.count("\n") + 1
        assert faults
        assert all(1 <= fault.line <= lines for fault in faults)
        assert all(fault.expected and fault.found and "\n" not in str(fault) for fault in faults)
        return
    assert faults == []
    again = parse_team(document_text(team))
    try:
        inputs = check_inputs(team, {"order_id": "A"})
    except InputFault:
        return
    plan = compile_plan(team, inputs)
    assert json.loads(json.dumps(plan.items)) == plan.items
    assert plan == compile_plan(again, inputs) == compile_plan(make_team(document), inputs)
    assert content_digest(team, inputs) == content_digest(again, inputs)
