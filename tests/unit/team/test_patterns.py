"""Patterns match as Python's `re` does, in linear time."""

from __future__ import annotations

import re
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.team.rules.patterns import MAX_TEXT, BadPattern, Pattern

PIECES = [
    "a", "b", "0", "_", " ", ".", "-", r"\d", r"\w", r"\s", r"\S", "[ab]", "[^a]", "[a-c0]", "[]a]", "(", "(?:",
    "|", ")", "*", "+", "?", "*?", "{2}", "{1,3}", "{2,}", "{0}", "{,2}", "^", "$", "{", "}", r"\.", "é",
]  # fmt: skip


@settings(max_examples=500)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join),
    st.lists(st.text(alphabet="ab01_ .-{}\n]é", max_size=6), min_size=1, max_size=5),
)
def test_a_pattern_that_is_accepted_means_what_it_means_to_python(text: str, subjects: list[str]) -> None:
    try:
        whole, anywhere = Pattern(text), Pattern(text, search=True)
    except BadPattern:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference, searching = re.compile(text), re.compile(text.replace("$", r"\Z"))
    for subject in subjects:
        assert whole.matches(subject) is (reference.fullmatch(subject) is not None)
        assert anywhere.matches(subject) is (searching.search(subject) is not None)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("TERMINATE", ["TERMINATE"], ["please TERMINATE", "TERMINATE now", "terminate", ""]),
        ("", [""], ["a"]),
        ("[A-Z]-[0-9]{4}", ["A-1001"], ["A-101", "a-1001", "A-1001\n"]),
        ("(yes|no)( please)?", ["yes", "no please"], ["yes  please", "maybe"]),
        (".*", ["", "a b"], ["a\nb"]),
        (r"\x41\u00e9\\\/\-", ["Aé\\/-"], ["A"]),
        ("^a|b$", ["a", "b"], ["ab"]),
        ("(?:ab){2,3}", ["abab", "ababab"], ["ab", "abababab"]),
    ],
)
def test_the_whole_text_must_match(text: str, yes: list[str], no: list[str]) -> None:
    pattern = Pattern(text)
    assert [subject for subject in yes if not pattern.matches(subject)] == []
    assert [subject for subject in no if pattern.matches(subject)] == []


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "[a", "a{3,2}", "*a", "a**", "a*+", "(?=a)", "(?!a)", "(?<=a)b", "(?P<x>a)", r"(a)\1", "(?i)a", r"\b",
        r"\q", "a\\", "[z-a]", r"[a-\d]", "x" * 201, "a{600}", "((){1,999}){1,999}", "(" * 60 + ")" * 60, "a^", "a$b",
        r"\x4", r"\u12g4",
    ],
)  # fmt: skip
def test_what_cannot_run_in_linear_time_is_refused(text: str) -> None:
    with pytest.raises(BadPattern):
        Pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        "(a*)*b",
        "(a|aa)+b",
        "(a|a)*b",
        "a*a*a*a*a*a*b",
        "(.*)(.*)(.*)(.*)b",
        f"{'a?' * 60}{'a{60}'}b",
        "(.{0,120}x){4}",
    ],
)
def test_no_pattern_takes_exponential_time(text: str) -> None:
    began = time.monotonic()
    assert not Pattern(text).matches("a" * (MAX_TEXT - 1) + "!")
    assert time.monotonic() - began < 2


def test_texts_over_4_kib_never_match() -> None:
    pattern = Pattern(".*")
    assert pattern.matches("a" * MAX_TEXT)
    assert not pattern.matches("a" * (MAX_TEXT + 1))
    assert pattern.matches("é" * (MAX_TEXT // 2))
    assert not pattern.matches("é" * (MAX_TEXT // 2 + 1))
