"""The digest of SPEC 6: which JSON values are the same, and what is no JSON at all."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.wire.digest import (
    MAX_DEPTH,
    InvalidPayload,
    canonical,
    depth,
    digest,
    digest_of_text,
    encode,
    parse_json,
    same,
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)


def test_the_digest_is_sha_256_of_the_canonical_text() -> None:
    text = '{"a":[1,2.5,"é"],"b":null}'
    assert canonical(parse_json('{ "b": null, "a": [1, 2.50, "\\u00e9"] }')) == text
    assert digest_of_text(text) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1", "1.0", False),
        ("1", "true", False),
        ("1.0", "true", False),
        ("0", "0.0", False),
        ("0", "-0.0", False),
        ("0.0", "-0.0", False),
        ("0", "-0", True),
        ("0", "false", False),
        ("1000000", "1e6", False),
        ("1000000.0", "1e6", True),
        ("1", "1e0", False),
        ("1.0", "1e0", True),
        ("0.1", "0.10", True),
        ("1.0101010101010102", "1.0101010101010101010", True),
        ('"1"', "1", False),
        ("null", "false", False),
        ("{}", "[]", False),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ("[1, 2]", "[2, 1]", False),
        ('"\\u00e9"', '"é"', True),
        ('"\\ud83d\\ude00"', '"😀"', True),
        ('{"v": [1]}', '{"v": [true]}', False),
    ],
)
def test_C_31_pinned_table_of_equal_and_different(one: str, other: str, equal: bool) -> None:
    assert (digest_of_text(one) == digest_of_text(other)) is equal
    assert same(parse_json(one), parse_json(other)) is equal


@pytest.mark.parametrize(
    "text",
    [
        '{"id":15947634569000323}',
        '{"id":9223372036854775807}',
        '{"id":-9007199254740993}',
        '{"n":18446744073709551616}',
        "1" + "0" * 4000,
    ],
)
def test_C_29_integers_of_any_size_stand_as_they_are(text: str) -> None:
    assert canonical(parse_json(text)) == text
    last = text.rstrip("}")[-1]
    assert digest_of_text(text) != digest_of_text(text.replace(last, str((int(last) + 1) % 10), 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"x": NaN}', "NaN"),
        ('{"x": Infinity}', "Infinity"),
        ('{"x": -Infinity}', "-Infinity"),
        ('{"x": 1e999}', "beyond binary64"),
        ('{"x": -1e999}', "beyond binary64"),
        ('{"a": 1, "a": 1}', 'the key "a" stands twice'),
        ('[{"b": {"c": 1, "d": 2, "c": 3}}]', 'the key "c" stands twice'),
        ('"\\ud800"', "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
        ('"\ud800"', "surrogate"),
        ("9" * 4301, "4300 digits"),
        ("[" * 65 + "]" * 65, "deeper than 64"),
        ("[" * 100_000, "deeper than 64"),
        ('{"a":' * 1000 + "1" + "}" * 1000, "deeper than 64"),
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1,]", "not JSON"),
        ("{1: 2}", "not JSON"),
        ("nul", "not JSON"),
        ("01", "not JSON"),
        ("1 2", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("'a'", "not JSON"),
        ('"\x01"', "not JSON"),
    ],
)
def test_C_30_what_is_no_json_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidPayload, match=reason):
        parse_json(text)


def test_bytes_are_read_as_utf_8() -> None:
    assert parse_json('{"é": 1}'.encode()) == {"é": 1}
    with pytest.raises(InvalidPayload, match="UTF-8"):
        parse_json(b'"\xff"')


def test_depth_64_is_allowed_and_brackets_in_strings_do_not_count() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert depth(parse_json(deep)) == MAX_DEPTH
    flat = json.dumps(["[" * 500, '"{' * 500, "\\" * 99])
    assert parse_json(flat) == json.loads(flat)


def test_an_unended_string_of_many_quotes_is_refused_quickly() -> None:
    with pytest.raises(InvalidPayload):
        parse_json("[" * 70 + '"' + '\\"' * 500_000)


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", 2: "b", 10: "c"},
        {1: "x", "1": "y"},
        {True: "x"},
        {None: "x"},
        {1.0: "x"},
        [{"a": {2: 3}}],
        {("a",): 1},
    ],
)
def test_C_28_non_string_keys_are_refused_at_the_edge(value: Any) -> None:
    with pytest.raises(InvalidPayload, match="is no string"):
        encode(value)


def test_C_28_the_digest_is_that_of_the_wire_form() -> None:
    sent = encode({"1": "a", "2": "b", "10": "c"})
    assert sent == '{"1":"a","10":"c","2":"b"}'
    assert digest_of_text(sent) == digest_of_text('{"1": "a", "10": "c", "2": "b"}')


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "no JSON number"),
        ([1, {"x": math.inf}], "/1/x: inf is no JSON number"),
        ({"x": -math.inf}, "no JSON number"),
        ({"a": object()}, "/a: an object of type object"),
        ({1, 2}, "type set"),
        (b"x", "type bytes"),
        ("\ud800", "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        (10**4300, "4300 digits"),
        (-(10**5000), "4300 digits"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isprintable() else type(value).__name__,
)
def test_what_is_no_json_is_refused_at_the_edge_with_its_place(value: Any, reason: str) -> None:
    with pytest.raises(InvalidPayload, match=reason):
        encode(value)


def test_cycles_and_deep_objects_are_refused_at_the_edge() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(InvalidPayload, match="deeper than 64"):
            encode(value)


def test_tuples_are_arrays() -> None:
    assert encode({"a": (1, (2,))}) == '{"a":[1,[2]]}'


@given(VALUES)
def test_what_is_encoded_reads_back_the_same(value: Any) -> None:
    text = encode(value)
    assert canonical(parse_json(text)) == text
    assert digest_of_text(text) == digest(value)


@given(VALUES)
def test_spelling_does_not_change_the_digest(value: Any) -> None:
    spelled = json.dumps(value, ensure_ascii=True, indent=2)
    assert digest_of_text(spelled) == digest(value)


@given(st.dictionaries(st.text(max_size=5).filter(str.isascii), st.integers(), min_size=2, max_size=6))
def test_key_order_does_not_change_the_digest(value: dict[str, int]) -> None:
    assert digest(dict(reversed(value.items()))) == digest(value)


@given(VALUES, VALUES)
def test_different_values_differ(one: Any, other: Any) -> None:
    def typed(value: Any) -> Any:
        if isinstance(value, list):
            return [typed(item) for item in value]
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        return (type(value).__name__, repr(value))

    assert (digest(one) == digest(other)) is (typed(one) == typed(other))
