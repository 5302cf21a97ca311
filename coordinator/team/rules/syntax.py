"""Owns how rules are written in a Team file: `any`, `all`, `not` and the facts of SPEC 4, read into plain objects.

A rule is an object with one key. Must not know a team's tasks (`checks.py` looks at the names) and must not evaluate
anything (Lua does; `compile.py` makes its form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from coordinator.team.faults import FaultBook, Path, listed
from coordinator.team.rules.amounts import EXPECTED_MONEY, EXPECTED_SPAN, money_micros, span_ms
from coordinator.team.rules.patterns import MAX_TEXT, BadPattern, compile_pattern
from coordinator.wire import digest
from coordinator.wire.bindings import Unresolved, at_pointer, is_pointer
from coordinator.wire.names import TaskState

MAX_PARTS = 1000
"""Most parts that one rule may have."""
ALL = -1
"""Count of `succeeded`: all of them."""


@dataclass(frozen=True, slots=True)
class Test:
    """What a value is held against: `equals` (by canonical JSON, never Python's ==) or `matches`."""

    kind: str
    operand: str
    """The canonical form of the value, or the pattern."""

    def holds(self, document: Any, pointer: str) -> bool:
        """Whether it holds for what stands at the pointer; never when nothing stands there."""
        try:
            value = at_pointer(document, pointer)
        except Unresolved:
            return False
        if self.kind == "equals":
            return digest.canonical(value) == self.operand
        return (
            isinstance(value, str) and len(value) <= MAX_TEXT and compile_pattern(self.operand).matches(value)
        )


@dataclass(frozen=True, slots=True)
class Const:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class Group:
    """`all` or `any` of some rules."""

    word: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a rule."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number of the run has reached n: counts, tokens, cost in micro-units, elapsed and idle in ms."""

    fact: str
    n: int


@dataclass(frozen=True, slots=True)
class Succeeded:
    """count tasks (ALL: every one) of `tasks` (empty: of the team) have succeeded."""

    count: int
    tasks: tuple[str, ...]
    path: Path


@dataclass(frozen=True, slots=True)
class StateOf:
    """A task is in a state."""

    task: str
    state: str
    path: Path


@dataclass(frozen=True, slots=True)
class ReporterRole:
    """The report that is being judged came from this role."""

    role: str
    path: Path


@dataclass(frozen=True, slots=True)
class SignalGiven:
    """An operator has given this signal."""

    name: str


@dataclass(frozen=True, slots=True)
class InputIs:
    """A run input passes a test."""

    name: str
    at: str
    test: Test
    path: Path


@dataclass(frozen=True, slots=True)
class ResultIs:
    """A task's result passes a test."""

    task: str
    at: str
    test: Test
    path: Path


Rule = Const | Group | Not | AtLeast | Succeeded | StateOf | ReporterRole | SignalGiven | InputIs | ResultIs

_COUNTS = ("attempts_started", "reports_accepted", "tokens")
_SPANS = ("elapsed", "idle")
_WORDS = [
    "all", "any", "not", *_COUNTS, "cost", *_SPANS, "succeeded", "state", "reporter_role", "signal", "input", "result",
]  # fmt: skip


def parts(rule: Rule) -> Iterator[Rule]:
    """The rule and every rule in it."""
    stack = [rule]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, Group):
            stack.extend(reversed(item.rules))
        elif isinstance(item, Not):
            stack.append(item.rule)


def read_rule(value: Any, path: Path, book: FaultBook) -> Rule | None:
    """Reads a rule; faults go to the book, and `false` stands for what is faulty, so that the rest is checked too.

    None when it is too large. Nesting is bounded by the file's own (64).
    """
    reader = _RuleReader(book)
    rule = reader.rule(value, path)
    if reader.parts > MAX_PARTS:
        book.say(path, f"a rule of at most {MAX_PARTS} parts", f"one of {reader.parts}")
        return None
    return rule


class _RuleReader:
    def __init__(self, book: FaultBook) -> None:
        self._book = book
        self.parts = 0

    def rule(self, value: Any, path: Path) -> Rule:
        self.parts += 1
        if isinstance(value, bool):
            return Const(value)
        if not isinstance(value, dict) or len(value) != 1:
            return self._fault(path, "a rule: an object with one key", value)
        word, operand = next(iter(value.items()))
        path = (*path, word)
        if word in ("all", "any"):
            if not isinstance(operand, list) or not operand:
                return self._fault(path, "a list of rules", operand)
            return Group(word, tuple(self.rule(item, (*path, at)) for at, item in enumerate(operand)))
        if word == "not":
            return Not(self.rule(operand, path))
        if word in _COUNTS or word == "cost" or word in _SPANS:
            return self._number(word, operand, path)
        reader: Callable[[Any, Path], Rule] | None = {
            "succeeded": self._succeeded,
            "state": self._state,
            "reporter_role": self._role,
            "signal": self._signal,
            "input": self._input,
            "result": self._result,
        }.get(word)
        if reader is None:
            return self._fault(path, f"a rule: {', '.join(_WORDS)}", word)
        return reader(operand, path)

    def _fault(self, path: Path, expected: str, found: Any) -> Const:
        self._book.add(path, expected, found)
        return Const(False)

    def _number(self, word: str, operand: Any, path: Path) -> Rule:
        if word == "cost":
            n, expected = money_micros(operand), EXPECTED_MONEY
        elif word in _SPANS:
            n, expected = span_ms(operand), EXPECTED_SPAN
        else:
            n, expected = (operand if _is_count(operand) else None), "a whole number of at least 0"
        return self._fault(path, expected, operand) if n is None else AtLeast(word, n)

    def _succeeded(self, operand: Any, path: Path) -> Rule:
        count, tasks = operand, list[Any]()
        if isinstance(operand, dict):
            if not operand.keys() <= {"count", "of"} or "of" not in operand:
                return self._fault(path, "a count, all, or {count: n, of: [tasks]}", operand)
            count, tasks = operand.get("count", "all"), operand["of"]
            if not isinstance(tasks, list) or not tasks or not all(isinstance(task, str) for task in tasks):
                return self._fault((*path, "of"), "a list of tasks", tasks)
            if len(set(tasks)) != len(tasks):
                return self._fault((*path, "of"), "each task once", tasks)
        if count == "all" and isinstance(count, str):
            count = ALL
        elif not _is_count(count):
            return self._fault(path, "a count, all, or {count: n, of: [tasks]}", count)
        if tasks and count > len(tasks):
            return self._fault((*path, "count"), f"at most {len(tasks)}, as many as `of` names", count)
        return Succeeded(count, tuple(tasks), path)

    def _state(self, operand: Any, path: Path) -> Rule:
        if not isinstance(operand, dict) or operand.keys() != {"task", "is"}:
            return self._fault(path, "{task: NAME, is: STATE}", operand)
        task, state = operand["task"], operand["is"]
        if not isinstance(task, str):
            return self._fault((*path, "task"), "a task", task)
        if not isinstance(state, str) or state not in set(TaskState):
            self._fault((*path, "is"), listed(list(TaskState)), state)
            state = TaskState.PENDING
        return StateOf(task, state, path)

    def _role(self, operand: Any, path: Path) -> Rule:
        return (
            ReporterRole(operand, path) if isinstance(operand, str) else self._fault(path, "a role", operand)
        )

    def _signal(self, operand: Any, path: Path) -> Rule:
        if not isinstance(operand, str) or not 0 < len(operand) <= 128:
            return self._fault(path, "the name of a signal, of at most 128 characters", operand)
        return SignalGiven(operand)

    def _input(self, operand: Any, path: Path) -> Rule:
        found = self._tested(operand, path, "name")
        return Const(False) if found is None else InputIs(*found, path)

    def _result(self, operand: Any, path: Path) -> Rule:
        found = self._tested(operand, path, "task")
        return Const(False) if found is None else ResultIs(*found, path)

    def _tested(self, operand: Any, path: Path, subject: str) -> tuple[str, str, Test] | None:
        """Reads `{SUBJECT, at, equals | matches}`."""
        expected = f"{{{subject}: NAME, at: /pointer, and either equals: value or matches: pattern}}"
        if not isinstance(operand, dict) or not operand.keys() <= {subject, "at", "equals", "matches"}:
            self._fault(path, expected, operand)
            return None
        if subject not in operand or ("equals" in operand) == ("matches" in operand):
            self._fault(path, expected, operand)
            return None
        name, at = operand[subject], operand.get("at", "")
        if not isinstance(name, str):
            self._fault((*path, subject), "a name", name)
            return None
        if not isinstance(at, str) or not is_pointer(at):
            self._fault((*path, "at"), "a JSON pointer such as /lines/0", at)
            return None
        if "equals" in operand:
            return name, at, Test("equals", digest.canonical(operand["equals"]))
        pattern = operand["matches"]
        if not isinstance(pattern, str):
            self._fault((*path, "matches"), "a pattern", pattern)
            return None
        try:
            compile_pattern(pattern)
        except BadPattern as fault:
            self._fault((*path, "matches"), str(fault), pattern)
            return None
        return name, at, Test("matches", pattern)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
