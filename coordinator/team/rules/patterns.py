"""Owns pattern matching in linear time, for `matches` in rules and `pattern` in schemas (SPEC 4).

A Team is untrusted and results come from agents, so nothing here may take exponential time: a pattern becomes a
position automaton (Glushkov) that is walked with bit sets, one step for each character, whatever the pattern. What an
automaton cannot do (look-around, back references, flags) is refused. Characters classes mean what they mean in Python's
`re`. `^` and `$` may stand at the ends of the pattern or of its outermost alternatives.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

MAX_PATTERN = 200
"""Longest pattern, in characters (SPEC 4)."""
MAX_TEXT = 4096
"""Longest text that can match, in bytes of UTF-8; a longer one matches nothing (SPEC 4)."""
MAX_POSITIONS = 500
"""Largest automaton: counted repetitions are written out."""
_MAX_GROUPS = 20
_MAX_PIECES = 5000
_MAX_CACHE = 2_000

Test = Callable[[str], bool]


class BadPattern(ValueError):
    """The pattern cannot be used; the message says why."""


@dataclass(slots=True)
class _Part:
    """A piece of the automaton: the positions that it can begin and end with, and whether it can match nothing."""

    first: int = 0
    last: int = 0
    empty: bool = True


@dataclass(slots=True)
class _Automaton:
    tests: list[Test] = field(default_factory=list)
    follow: list[int] = field(default_factory=list)

    def position(self, test: Test) -> _Part:
        if len(self.tests) >= MAX_POSITIONS:
            raise BadPattern(f"a pattern with at most {MAX_POSITIONS} positions, repetitions written out")
        self.tests.append(test)
        self.follow.append(0)
        bit = 1 << (len(self.tests) - 1)
        return _Part(bit, bit, False)

    def then(self, one: _Part, two: _Part) -> _Part:
        self._link(one.last, two.first)
        return _Part(
            one.first | (two.first if one.empty else 0),
            two.last | (one.last if two.empty else 0),
            one.empty and two.empty,
        )

    def loop(self, part: _Part) -> _Part:
        self._link(part.last, part.first)
        return part

    def _link(self, ends: int, begins: int) -> None:
        while ends:
            low = ends & -ends
            self.follow[low.bit_length() - 1] |= begins
            ends ^= low


class Pattern:
    """A compiled pattern. search: it may match anywhere (as in JSON Schema), else only the whole text."""

    def __init__(self, text: str, *, search: bool = False) -> None:
        """Raises BadPattern."""
        if len(text) > MAX_PATTERN:
            raise BadPattern(f"a pattern of at most {MAX_PATTERN} characters")
        self._automaton = _Automaton()
        self._whole = _Parser(text, self._automaton, search).parse()
        self._steps: dict[tuple[int, str], int] = {}
        self._accepts: dict[str, int] = {}

    def matches(self, text: str) -> bool:
        """Whether the text matches; never one of more than 4 KiB."""
        if len(text) > MAX_TEXT or len(text.encode(errors="surrogatepass")) > MAX_TEXT:
            return False
        if not text:
            return self._whole.empty
        current = self._whole.first & self._accepting(text[0])
        for character in text[1:]:
            if not current:
                return False
            current = self._step(current, character)
        return bool(current & self._whole.last)

    def _step(self, current: int, character: str) -> int:
        key = (current, character)
        known = self._steps.get(key)
        if known is None:
            reached, rest = 0, current
            while rest:
                low = rest & -rest
                reached |= self._automaton.follow[low.bit_length() - 1]
                rest ^= low
            known = reached & self._accepting(character)
            if len(self._steps) >= _MAX_CACHE:
                self._steps.clear()
            self._steps[key] = known
        return known

    def _accepting(self, character: str) -> int:
        known = self._accepts.get(character)
        if known is None:
            known = sum(1 << index for index, test in enumerate(self._automaton.tests) if test(character))
            if len(self._accepts) >= _MAX_CACHE:
                self._accepts.clear()
            self._accepts[character] = known
        return known


@lru_cache(maxsize=128)
def compile_pattern(text: str, search: bool = False) -> Pattern:
    """A pattern, compiled once; raises BadPattern."""
    return Pattern(text, search=search)


_CLASSES: dict[str, Test] = {
    "d": str.isdecimal,
    "w": lambda character: character.isalnum() or character == "_",
    "s": str.isspace,
    "D": lambda character: not character.isdecimal(),
    "W": lambda character: not (character.isalnum() or character == "_"),
    "S": lambda character: not character.isspace(),
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_COUNT = re.compile(r"\{([0-9]{1,4})?(,)?([0-9]{1,4})?\}", re.ASCII)


def _any(_: str) -> bool:
    return True


def _dot(character: str) -> bool:
    return character != "\n"


class _Parser:
    """Reads a pattern by recursive descent (it has at most 200 characters) and builds the automaton."""

    def __init__(self, text: str, automaton: _Automaton, search: bool) -> None:
        self._text = text
        self._at = 0
        self._automaton = automaton
        self._search = search
        self._pieces = 0
        self._groups = 0

    def parse(self) -> _Part:
        whole = self._alternatives(outermost=True)
        if self._at < len(self._text):
            raise BadPattern("a pattern whose parentheses are balanced")
        return whole

    def _alternatives(self, outermost: bool = False) -> _Part:
        found = _Part(empty=False)
        while True:
            branch = self._outer_branch() if outermost else self._branch()
            found = _Part(found.first | branch.first, found.last | branch.last, found.empty or branch.empty)
            if not self._take("|"):
                return found

    def _outer_branch(self) -> _Part:
        """A branch of the whole pattern: it may be anchored, and a search may begin and end anywhere else."""
        anchored = self._take("^")
        part = self._branch()
        if self._search and not anchored:
            part = self._automaton.then(self._anything(), part)
        anchored = self._take("$")
        return self._automaton.then(part, self._anything()) if self._search and not anchored else part

    def _anything(self) -> _Part:
        part = self._automaton.loop(self._automaton.position(_any))
        return _Part(part.first, part.last, True)

    def _branch(self) -> _Part:
        part = _Part()
        while self._at < len(self._text) and self._text[self._at] not in "|)$":
            part = self._automaton.then(part, self._repeated())
        if self._peek() == "$" and self._text[self._at + 1 : self._at + 2] not in ("", "|"):
            raise BadPattern("`$` only at the end of the pattern or of an outermost alternative")
        return part

    def _repeated(self) -> _Part:
        start = self._at
        part = self._atom()
        after_atom = self._at
        least, most = self._count()
        if (least, most) == (1, 1):
            return part
        end = self._at
        if most is None and least <= 1:
            part = self._automaton.loop(part)
            return _Part(part.first, part.last, part.empty or least == 0)
        if most == 0:
            return _Part()
        copies = [part]
        for _ in range(max(least, most or 0) - 1):
            self._at = start
            copies.append(self._atom())
            assert self._at == after_atom
        self._at = end
        if most is None:
            copies[-1] = self._automaton.loop(copies[-1])
        whole = _Part()
        for index, copy in enumerate(copies):
            optional = index >= least
            whole = self._automaton.then(whole, _Part(copy.first, copy.last, copy.empty or optional))
        return whole

    def _count(self) -> tuple[int, int | None]:
        found: tuple[int, int | None] = (1, 1)
        if self._take("*"):
            found = (0, None)
        elif self._take("+"):
            found = (1, None)
        elif self._take("?"):
            found = (0, 1)
        elif match := _COUNT.match(self._text, self._at):
            if match[1] is None and match[3] is None:
                return found
            least = int(match[1] or 0)
            found = (least, (int(match[3]) if match[3] else None) if match[2] else least)
            if found[1] is not None and found[1] < least:
                raise BadPattern("a repetition whose most is not below its least")
            self._at = match.end()
        else:
            return found
        self._take("?")
        if self._peek() in ("*", "+", "?") or self._takes_count():
            raise BadPattern("one repetition after another only around a group")
        return found

    def _takes_count(self) -> bool:
        match = _COUNT.match(self._text, self._at)
        return match is not None and (match[1] is not None or match[3] is not None)

    def _atom(self) -> _Part:
        character = self._text[self._at]
        self._pieces += 1
        if self._pieces > _MAX_PIECES:
            raise BadPattern(f"a pattern with at most {MAX_POSITIONS} positions, repetitions written out")
        if character in "*+?" or self._takes_count():
            raise BadPattern(f"something before `{character}`")
        self._at += 1
        if character == "(":
            return self._group()
        if character == "^":
            raise BadPattern("`^` only at the beginning of the pattern or of an outermost alternative")
        if character == ".":
            return self._automaton.position(_dot)
        if character == "[":
            return self._automaton.position(self._class())
        if character == "\\":
            escaped = self._escape()
            return self._automaton.position(escaped if callable(escaped) else escaped.__eq__)
        return self._automaton.position(character.__eq__)

    def _group(self) -> _Part:
        if self._take("?") and not self._take(":"):
            raise BadPattern("a pattern without look-around, named groups or flags")
        self._groups += 1
        if self._groups > _MAX_GROUPS:
            raise BadPattern(f"groups nested at most {_MAX_GROUPS} deep")
        part = self._alternatives()
        self._groups -= 1
        if not self._take(")"):
            raise BadPattern("a pattern whose parentheses are balanced")
        return part

    def _class(self) -> Test:
        negated = self._take("^")
        tests: list[Test] = []
        begin = self._at
        while self._peek() != "]" or self._at == begin:
            low = self._class_member()
            if callable(low):
                tests.append(low)
            elif self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._class_member()
                if callable(high) or high < low:
                    raise BadPattern("a character range from a lower to a higher character")
                tests.append(_range(low, high))
            else:
                tests.append(low.__eq__)
        self._at += 1
        return lambda character: any(test(character) is True for test in tests) is not negated

    def _class_member(self) -> str | Test:
        character = self._peek()
        if not character:
            raise BadPattern("a pattern whose brackets are balanced")
        self._at += 1
        return self._escape() if character == "\\" else character

    def _escape(self) -> str | Test:
        character = self._peek()
        self._at += 1
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _CONTROLS and not (character == "0" and self._peek().isdigit()):
            return _CONTROLS[character]
        if character in ("x", "u"):
            width = 2 if character == "x" else 4
            digits = self._text[self._at : self._at + width]
            if not re.fullmatch(r"[0-9a-fA-F]+", digits) or len(digits) < width:
                raise BadPattern(f"{width} hex digits after \\{character}")
            self._at += width
            return chr(int(digits, 16))
        if not character or character.isalnum():
            raise BadPattern(f"a known escape instead of \\{character}")
        return character

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> bool:
        if self._peek() != character:
            return False
        self._at += 1
        return True


def _range(low: str, high: str) -> Test:
    return lambda character: low <= character <= high
