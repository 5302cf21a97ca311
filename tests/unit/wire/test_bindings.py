"""Input templates (SPEC 2): references, pointers, and that data can refer to nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wire.bindings import (
    BadReference,
    Reference,
    SourceKind,
    Unresolved,
    as_literal,
    at_pointer,
    bind_item,
    escape_key,
    parse_reference,
    references,
    resolve,
)

INPUTS = {"order": {"id": "A-1", "a/b": [10, {"~": "tilde"}]}, "n": 3}
RESULTS = {"read": {"lines": [{"sku": "x"}, {"sku": "y"}]}, "a.b": 7, "none": None}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        (None, None),
        ({"a": [1, "x"]}, {"a": [1, "x"]}),
        ({"from": "inputs.n"}, 3),
        ({"from": "inputs.order.id"}, "A-1"),
        ({"from": "inputs.order", "at": "/a~1b/0"}, 10),
        ({"from": "inputs.order.a/b", "at": "/1/~0"}, "tilde"),
        ({"from": "tasks.read.result", "at": "/lines/1/sku"}, "y"),
        ({"from": "tasks.a.b.result"}, 7),
        ({"from": "tasks.none.result"}, None),
        ({"x": [{"from": "inputs.n"}, {"deep": {"from": "inputs.order.id"}}]}, {"x": [3, {"deep": "A-1"}]}),
        ({"from": "inputs.n", "to": "me"}, {"from": "inputs.n", "to": "me"}),
        ({"from": "literal", "value": {"from": "inputs.n"}}, {"from": "inputs.n"}),
    ],
)
def test_references_are_replaced_by_their_values(template: Any, value: Any) -> None:
    before = json.dumps(template)
    assert resolve(template, INPUTS, RESULTS) == value
    assert json.dumps(template) == before


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ({"from": "inputs.nope"}, "inputs.nope"),
        ({"from": "inputs.order.nope"}, "nothing stands at /nope"),
        ({"from": "tasks.other.result"}, "tasks.other.result"),
        ({"from": "tasks.read.result", "at": "/lines/2"}, "/lines/2"),
        ({"from": "tasks.read.result", "at": "/lines/-1"}, "/lines/-1"),
        ({"from": "tasks.read.result", "at": "/lines/01"}, "/lines/01"),
        ({"from": "tasks.read.result", "at": "/lines/0/sku/0"}, "nothing"),
        ({"from": "item"}, "no such value"),
        ({"from": "elsewhere"}, "inputs.NAME"),
        ({"from": 5}, "inputs.NAME"),
    ],
)
def test_a_missing_value_is_told_with_its_reference(template: Any, reason: str) -> None:
    with pytest.raises(Unresolved, match=reason):
        resolve({"x": [template]}, INPUTS, RESULTS)
    with pytest.raises(Unresolved):
        resolve(template, None, None)


@pytest.mark.parametrize(
    "value",
    [
        {"from": "inputs."},
        {"from": "inputs.a..b"},
        {"from": "tasks.a"},
        {"from": "tasks..result"},
        {"from": "inputs.a", "at": "no-slash"},
        {"from": "inputs.a", "at": "/~2"},
        {"from": "index", "at": "/a"},
        {"from": "inputs.a", "value": 1},
        {"from": "literal"},
        {"from": "literal", "value": 1, "at": ""},
        {"from": None},
    ],
)
def test_bad_references_are_told_from_literals(value: Any) -> None:
    with pytest.raises(BadReference):
        parse_reference(value)
    assert isinstance(next(iter(references([value])))[1], BadReference)


def test_all_references_are_found_with_their_places_in_order() -> None:
    template = {
        "a": {"from": "inputs.n"},
        "b": [1, {"from": "tasks.read.result", "at": "/x"}],
        "c": {"from": "item"},
    }
    assert list(references(template)) == [
        (("a",), Reference(SourceKind.INPUT, "n")),
        (("b", 1), Reference(SourceKind.RESULT, "read", "/x")),
        (("c",), Reference(SourceKind.ITEM)),
    ]


def test_values_that_were_put_in_are_never_searched_again() -> None:
    results = {"read": {"from": "inputs.secret"}}
    assert resolve({"from": "tasks.read.result"}, {"secret": 1}, results) == {"from": "inputs.secret"}


def test_items_become_literals_and_the_rest_stays() -> None:
    template = {
        "i": {"from": "index"},
        "sku": {"from": "item", "at": "/sku"},
        "n": {"from": "inputs.n"},
        "k": [1],
    }
    bound = bind_item(template, {"sku": "x"}, 4)
    assert bound == {"i": 4, "sku": "x", "n": {"from": "inputs.n"}, "k": [1]}
    assert resolve(bound, INPUTS, {}) == {"i": 4, "sku": "x", "n": 3, "k": [1]}
    with pytest.raises(Unresolved, match="item at /nope"):
        bind_item({"from": "item", "at": "/nope"}, {"sku": "x"}, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["inputs.n", "item", "literal"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["from", "at", "value", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_element_survives_the_way_through_a_template(element: Any) -> None:
    assert resolve(as_literal(element), INPUTS, RESULTS) == element
    assert resolve(bind_item({"from": "item"}, element, 0), INPUTS, RESULTS) == element
    assert not [
        found for _, found in references(as_literal(element)) if getattr(found, "kind", None) != "literal"
    ]


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4))
def test_any_key_can_be_pointed_at(keys: list[str]) -> None:
    value: Any = "found"
    for key in reversed(keys):
        value = {key: value}
    assert at_pointer(value, "".join(f"/{escape_key(key)}" for key in keys)) == "found"
