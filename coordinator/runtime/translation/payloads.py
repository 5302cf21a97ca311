"""Owns what the coordinator makes of documents: is it JSON, does it fit its contract, its digest, the facts in it.

Payloads are read here, once and strictly; Lua never opens them (SPEC 3, 6). Must not judge a run's state.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from coordinator.runtime.teams import Teams
from coordinator.team.payloads import judge_child_result, judge_result
from coordinator.wire.digest import InvalidPayload, digest, parse_json
from coordinator.wire.names import FailureClass

LONGEST_TEXT = 16_384
"""Characters of a message or traceback that are kept; the rest is cut with a mark."""
ERROR_TEXTS = ("class", "type", "message", "where", "traceback")
CUT = " […]"


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a payload: digest and facts, or why it is no result."""

    payload: str = ""
    digest: str = ""
    facts: str = "[]"
    fault: str = ""


def judge(teams: Teams, run: str, task: str, payload: str) -> Judged:
    """Holds a result against its task's contract. A task or run that is not known has none; the machine refuses what
    is said of it."""
    team = teams.of_run(run)
    if team is None:
        return Judged()
    contract = teams.contract_of_child(run, task) if "[" in task and team.task_of(task) is None else None
    judgement = (
        judge_result(team, task, payload) if contract is None else judge_child_result(*contract, payload)
    )
    if judgement.fault or not judgement.digest:
        return Judged(fault=judgement.fault)
    facts = json.dumps(judgement.facts) if judgement.facts else "[]"
    return Judged(payload=payload, digest=judgement.digest, facts=facts)


def document(text: str, name: str) -> Judged:
    """A document that has no contract but to be JSON: a question, an answer, a receipt. name: for the fault."""
    try:
        return Judged(payload=text, digest=digest(parse_json(text)))
    except InvalidPayload as fault:
        return Judged(fault=f"{name}: {fault}")


def size(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def error_document(failure: str, kind: str, message: str) -> str:
    """An error as it is kept with an attempt: {class, type, message, where, traceback}."""
    return _dump({"class": failure, "type": kind, "message": cut(message), "where": "", "traceback": ""})


def invalid_output(fault: str) -> str:
    """The error of a result that broke its contract."""
    return error_document(FailureClass.INVALID_OUTPUT, "InvalidOutput", fault)


def sent_error(outcome: str, text: str) -> str:
    """The sender's error document with the known fields alone, each of bounded length; the class is the outcome's."""
    try:
        given: Any = parse_json(text) if text else {}
    except InvalidPayload:
        given = {"message": text}
    if not isinstance(given, dict):
        given = {"message": json.dumps(given, ensure_ascii=False)}
    fields = {name: cut(str(given.get(name) or "")) for name in ERROR_TEXTS}
    fields["class"] = outcome
    return _dump(fields)


def cut(text: str) -> str:
    """The text, at most LONGEST_TEXT of it."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - len(CUT)] + CUT


def _dump(fields: dict[str, str]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
