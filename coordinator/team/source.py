"""Owns the reading of YAML and JSON text into plain values, with the line of every value (SPEC 2).

Both readers are strict and iterative: duplicate and non-string keys, NaN, Infinity, numbers beyond binary64, tags,
several documents, nesting over 64 and YAML bombs are faults, each with its line, and reading goes on where it can. Must
not know what a Team is. JSON is read by the C decoder; the slow reader, which knows lines, is run only when there is a
fault to place.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from coordinator.team.builder import MERGE, Builder, Number, Stop
from coordinator.team.faults import Path
from coordinator.wire.digest import MAX_DEPTH, MAX_DIGITS, depth

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_JSON_TOKEN = re.compile(
    r'[ \t\r\n]*(?:(?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>[A-Za-z]+|-Infinity)|(?P<mark>[\[\]{}:,])|(?P<end>\Z))"
)
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|NaN|[-+]?Infinity")
_WORDS: dict[str, Any] = {"": None, "~": None} | {
    spelled: value
    for word, value in (("null", None), ("true", True), ("false", False))
    for spelled in (word, word.capitalize(), word.upper())
}
_JSON_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}
_STRING_TAGS = ("!", "tag:yaml.org,2002:str")


class Source:
    """A text that was read. value: what stands in it. faults: what is wrong with it as YAML or JSON."""

    def __init__(self, text: str, is_json: bool) -> None:
        self._text = text
        self._builder: Builder | None = None
        self.value: Any = None
        self.faults: list[tuple[Path, str, str, int]] = []
        self.refused: set[Path] = set()
        """Where a value was refused and null stands in its place."""
        if is_json and (found := _read_json_quickly(text)) is not None:
            self.value = found[0]
        else:
            self._read(is_json)

    def line(self, path: Path) -> int:
        """The line of what stands at a path, or of the nearest thing around it that is there."""
        if self._builder is None:
            kept = self.value
            self._read(True)
            self.value = kept
        assert self._builder is not None
        return self._builder.line(path)

    def _read(self, is_json: bool) -> None:
        self._builder = builder = Builder()
        try:
            if is_json:
                _read_json(self._text, builder)
            else:
                _read_yaml(self._text, builder)
        except Stop:
            pass
        self.faults, self.refused = builder.faults, builder.refused
        self.value = builder.root


# -- JSON -----------------------------------------------------------------------------------------------


class _NotPlain(ValueError):
    """The quick reader met something that the slow one has to explain."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _NotPlain
    return members


def _finite(text: str) -> float:
    number = Number.read(text)
    if math.isinf(number):
        raise _NotPlain
    return number


def _no_constant(_: str) -> None:
    raise _NotPlain


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)


def _read_json_quickly(text: str) -> tuple[Any] | None:
    if _SURROGATE.search(text):
        return None
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
    return (value,) if depth(value) <= MAX_DEPTH else None


def _read_json(text: str, builder: Builder) -> None:
    """Reads JSON token by token. The state says what may come next: value, key, colon, comma, or an end."""
    state, stack = "value", list[str]()
    for kind, token, line in _json_tokens(text, builder):
        if kind in ("string", "number", "word") and state in ("value", "value or ]"):
            builder.scalar(_json_scalar(kind, token, line, builder), line)
            state = "comma" if stack else "end"
        elif kind == "string" and state in ("key", "key or }"):
            builder.key(json.loads(token), line)
            state = "colon"
        elif token == ":" and state == "colon":
            state = "value"
        elif token in ("{", "[") and state in ("value", "value or ]"):
            stack.append(token)
            builder.begin(token == "{", line)
            state = "key or }" if token == "{" else "value or ]"
        elif token in ("}", "]") and stack and stack[-1] + token in ("{}", "[]") and state in _CLOSING[token]:
            stack.pop()
            builder.end()
            state = "comma" if stack else "end"
        elif token == "," and state == "comma":
            state = "key" if stack[-1] == "{" else "value"
        elif kind == "end" and state == "end":
            return
        else:
            expected = (
                (f", or {'}' if stack[-1] == '{' else ']'}") if state == "comma" else _SAID.get(state, state)
            )
            builder.stop(expected, "the end of the file" if kind == "end" else token[:40], line)


_CLOSING = {"}": ("key or }", "comma"), "]": ("value or ]", "comma")}
_SAID = {
    "value": "a JSON value",
    "key": "a key in double quotes",
    "key or }": "a key in double quotes or }",
    "colon": "a colon",
    "end": "the end of the file",
}


def _json_tokens(text: str, builder: Builder) -> Iterator[tuple[str, str, int]]:
    position, line = 0, 1
    while True:
        match = _JSON_TOKEN.match(text, position)
        if match is None:
            blank = re.compile(r"[ \t\r\n]*").match(text, position)
            start = blank.end() if blank else position
            found = "a string that is not well formed" if text[start] == '"' else text[start : start + 20]
            builder.stop("JSON", found, line + text.count("\n", position, start))
        kind = str(match.lastgroup)
        line += text.count("\n", position, match.end())
        yield kind, match[kind], line
        position = match.end()


def _json_scalar(kind: str, token: str, line: int, builder: Builder) -> Any:
    if kind == "string":
        return json.loads(token)
    if kind == "number":
        return _number(token, line, builder, set(".eE") & set(token) != set())
    if token in _JSON_WORDS:
        return _JSON_WORDS[token]
    if token in ("NaN", "Infinity", "-Infinity"):
        return builder.refuse("a finite number", token, line)
    return builder.stop("a JSON value", token[:40], line)


def _number(text: str, line: int, builder: Builder, is_float: bool) -> Any:
    if is_float:
        number = Number.read(text)
        return number if math.isfinite(number) else builder.refuse("a finite number", text[:40], line)
    if len(text) > MAX_DIGITS:
        return builder.refuse(f"a number of at most {MAX_DIGITS} digits", text[:40] + "...", line)
    return int(text)


# -- YAML -----------------------------------------------------------------------------------------------


def _read_yaml(text: str, builder: Builder) -> None:
    documents = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(io.StringIO(text)):
            line = event.start_mark.line + 1
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    builder.stop("one document", "a second one", line)
            elif isinstance(event, ScalarEvent):
                _yaml_scalar(event, line, builder)
            elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
                _refuse_tag(event.tag, line, builder)
                builder.begin(isinstance(event, MappingStartEvent), line, event.anchor)
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                builder.end()
            elif isinstance(event, AliasEvent):
                builder.alias(str(event.anchor), line)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        builder.stop("well-formed YAML", problem, mark.line + 1 if mark else 1)
    except YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        builder.stop("well-formed YAML", " ".join(str(error).split())[:120], line)
    except (ValueError, AttributeError, TypeError, IndexError) as error:  # the parser's own, on hostile input
        builder.stop("well-formed YAML", f"{error!s:.120}", 1)


def _refuse_tag(tag: Any, line: int, builder: Builder) -> None:
    if tag is not None and str(tag) not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
        builder.refuse("no tag", str(tag)[:60], line)


def _yaml_scalar(event: Any, line: int, builder: Builder) -> None:
    text = str(event.value)
    tag = None if event.tag is None else str(event.tag)
    if tag is not None and tag not in _STRING_TAGS:
        builder.scalar(builder.refuse("no tag", tag[:60], line), line, event.anchor)
    elif tag is not None or event.style is not None:
        builder.scalar(text, line, event.anchor)
    elif text == "<<" and builder.wants_key():
        builder.key(MERGE, line)
    else:
        builder.scalar(_plain(text, line, builder), line, event.anchor)


def _plain(text: str, line: int, builder: Builder) -> Any:
    """What a plain scalar means by the YAML 1.2 core schema (`no` and `on` are text)."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if text[:2] in ("0o", "0x"):
            return int(text, 0)
        return _number(text, line, builder, False)
    if _FLOAT.fullmatch(text):
        return _number(text, line, builder, True)
    if _NOT_FINITE.fullmatch(text):
        return builder.refuse("a finite number", text, line)
    return text
