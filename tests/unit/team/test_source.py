"""Reading YAML and JSON: strictness, lines, and files that were made to do harm."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.team.builder import Number
from coordinator.team.source import Source


def faults(text: str, *, is_json: bool) -> list[tuple[str, int]]:
    return [(f"{expected}; {found}", line) for _, expected, found, line in Source(text, is_json).faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: [1, -2, +3, 0x10, 0o17, 007]", {"a": [1, -2, 3, 16, 15, 7]}),
        ("a: [1.5, .5, 2., 1e3, -0.0]", {"a": [1.5, 0.5, 2.0, 1000.0, -0.0]}),
        ("a: [true, False, TRUE, null, ~, ]", {"a": [True, False, True, None, None]}),
        ("a: [yes, no, on, off, y]", {"a": ["yes", "no", "on", "off", "y"]}),
        ("a: [2001-01-01, 12:30:45, 1_000]", {"a": ["2001-01-01", "12:30:45", "1_000"]}),
        ("a: ['1', \"true\", !!str 5]", {"a": ["1", "true", "5"]}),
        ("a: |\n  two\n  lines\nb:\n", {"a": "two\nlines\n", "b": None}),
        ("a: &x {p: 1}\nb: *x\nc: [*x]", {"a": {"p": 1}, "b": {"p": 1}, "c": [{"p": 1}]}),
        ("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}", {"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}}),
        (
            "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc: {<<: [*x, *y], r: 3}",
            {"a": {"p": 1}, "b": {"p": 2, "q": 2}, "c": {"r": 3, "p": 1, "q": 2}},
        ),
        (
            "a: &x {p: 1}\nb: &y {<<: *x, q: 2}\nc: {<<: *y}",
            {"a": {"p": 1}, "b": {"q": 2, "p": 1}, "c": {"q": 2, "p": 1}},
        ),
        ('"<<": 1', {"<<": 1}),
        ("%YAML 1.2\n---\na: 1\n...\n", {"a": 1}),
    ],
)
def test_yaml_is_read_by_the_core_schema(text: str, value: Any) -> None:
    source = Source(text, False)
    assert source.faults == []
    assert source.value == value
    assert json.dumps(source.value) == json.dumps(value)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("a: 1\nb: 2\na: 3", "each key once; it again (first on line 1)", 3),
        ("a:\n  1: x", "a key that is text; the key 1", 2),
        ("null: x", "a key that is text; the key null", 1),
        ("true: x", "a key that is text; the key true", 1),
        ("1.0: x", "a key that is text; the key 1.0", 1),
        ("? [a]\n: b", "a key that is text; a list", 1),
        ("a:\n- .nan", "a finite number; .nan", 2),
        ("a: -.inf", "a finite number; -.inf", 1),
        ("a: NaN", "a finite number; NaN", 1),
        ("a: 1e999", "a finite number; 1e999", 1),
        ("a: 1\n---\nb: 1", "one document; a second one", 2),
        ("a: !!python/object:os.system {}", "no tag; tag:yaml.org,2002:python/object:os.system", 1),
        ("a: !secret x", "no tag; !secret", 1),
        ("a: &x [*x]", "a value that does not hold itself; *x", 1),
        ("a: *nobody", "a known anchor; *nobody", 1),
        ("a: {<<: 5}", "an object, or a list of objects; 5", 1),
        ("a: [1,\n 2", "well-formed YAML", 2),
        ("a: b: c", "well-formed YAML", 1),
        ("a:\n\t- b", "well-formed YAML", 2),
        ("{", "well-formed YAML", 1),
        ("a: 1\nb: \x07", "well-formed YAML", 2),
        ('a: "\\ud800"', "text without lone surrogates", 1),
        ("[" * 65 + "]" * 65, "nesting of at most 64", 1),
        ("a: " + "9" * 5000, "a number of at most 4300 digits", 1),
    ],
)
def test_yaml_faults_have_their_line(text: str, said: str, line: int) -> None:
    found = faults(text, is_json=False)
    assert len(found) == 1
    assert said in found[0][0]
    assert found[0][1] == line


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("{", "a key in double quotes or }; the end of the file", 1),
        ("", "a JSON value; the end of the file", 1),
        ("\n\n", "a JSON value; the end of the file", 3),
        ('{"a":\n 1,\n "a": 2}', "each key once; it again (first on line 1)", 3),
        ('{"a":\n NaN}', "a finite number; NaN", 2),
        ('{"a": -Infinity}', "a finite number; -Infinity", 1),
        ("[1,\n1e999]", "a finite number; 1e999", 2),
        ("[1,\n2,\n]", "a JSON value; ]", 3),
        ('{"a" 1}', "a colon; 1", 1),
        ('{"a": 1 "b": 2}', '"b"', 1),
        ("{a: 1}", "a key in double quotes or }; a", 1),
        ("{'a': 1}", "JSON; 'a'", 1),
        ("[1] 2", "the end of the file; 2", 1),
        ("[01]", ", or ]; 1", 1),
        ('"\\ud800"', "text without lone surrogates", 1),
        ('["a\nb"]', "a string that is not well formed", 1),
        ('["\\x"]', "a string that is not well formed", 1),
        ("[" * 1000 + "]" * 1000, "nesting of at most 64", 1),
        ("[" * 100_000, "nesting of at most 64", 1),
        ("9" * 5000, "a number of at most 4300 digits", 1),
        ("[1}", ", or ]; }", 1),
    ],
)
def test_json_faults_have_their_line(text: str, said: str, line: int) -> None:
    found = faults(text, is_json=True)
    assert len(found) == 1
    assert said in found[0][0]
    assert found[0][1] == line


def test_reading_goes_on_behind_a_fault() -> None:
    text = "a: .nan\nb: 1\nb: 2\n3: x\nc: ok\n"
    source = Source(text, False)
    assert [line for *_, line in source.faults] == [1, 3, 4]
    assert source.value == {"a": None, "b": 1, "c": "ok"}
    assert source.refused == {("a",)}
    as_json = '{"a": NaN,\n"b": 1,\n"b": 2,\n"c": "ok"}'
    assert [line for *_, line in Source(as_json, True).faults] == [1, 3]


@pytest.mark.parametrize("is_json", [False, True])
def test_every_value_knows_its_line(is_json: bool) -> None:
    text = (
        '{"a":\n  {"b": [\n    1,\n    {"c": 2}]},\n"d": 3}'
        if is_json
        else "a:\n  b:\n  - 1\n  - {c: 2}\nd: 3"
    )
    source = Source(text, is_json)
    assert source.line(("a", "b")) == 2
    assert source.line(("a", "b", 0)) == 3
    assert source.line(("a", "b", 1, "c")) == 4
    assert source.line(("a", "b", 9)) == 2
    assert source.line(("d",)) == 5
    assert source.line(("a", "nothing", "here")) == 1
    assert source.line(()) == 1


def test_merged_keys_keep_the_line_on_which_they_were_written() -> None:
    source = Source("x: &x\n  p: 1\ny:\n  <<: *x\n  q: 2\n", False)
    assert source.line(("y", "p")) == 2
    assert source.line(("y", "q")) == 5


def test_a_bomb_of_aliases_is_refused_quickly() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]" for at in range(1, 30)]
    began = time.monotonic()
    assert "aliases for at most" in faults("\n".join(lines), is_json=False)[0][0]
    merges = ["a0: &a0 {k: 1}"] + [
        f"a{at}: &a{at} {{v{at}: [*a{at - 1}, *a{at - 1}]}}" for at in range(1, 40)
    ]
    assert faults("\n".join(merges), is_json=False)
    assert time.monotonic() - began < 5


def test_aliases_cannot_nest_deeper_than_the_text() -> None:
    lines = ["a0: &a0 [1]"] + [f"a{at}: &a{at} [*a{at - 1}]" for at in range(1, 70)]
    assert "nesting of at most 64" in faults("\n".join(lines), is_json=False)[0][0]


def test_numbers_keep_their_text_for_money() -> None:
    for source in (Source("c: 5.00", False), Source('{"c": 5.00}', True)):
        assert isinstance(source.value["c"], Number)
        assert source.value["c"].text == "5.00"
        assert json.dumps(source.value) == '{"c": 5.0}'


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
).filter(lambda value: "\\ud" not in json.dumps(value))


@given(VALUES)
def test_any_json_is_read_alike_by_both_readers(value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=True)
    quick = Source(text, True)
    slow = Source(text, True)
    slow._read(True)
    assert quick.faults == slow.faults == []
    assert json.dumps(quick.value) == json.dumps(slow.value) == json.dumps(value)


@given(st.text(max_size=60) | st.text(alphabet='[]{}:,"-?&*!|>%@`#<\n 1a', max_size=60))
def test_no_text_does_harm(text: str) -> None:
    for is_json in (True, False):
        source = Source(text, is_json)
        json.dumps(source.value)
        assert all(line >= 1 for *_, line in source.faults)
