"""Owns how programs and the command line speak to a coordinator: an entry in the inbox of a scope, and its answer.

What is sent is stored at once and applied by whoever leads, now or later, so an answer that does not come is no loss
(`Unanswered`). Must not write state, and must not know the machine: it needs no more rights than XADD to one inbox and
BLPOP of its own answers.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from redis import Redis
from redis.exceptions import NoPermissionError

from coordinator.team.compile import document_text
from coordinator.team.loader import load_team, make_team
from coordinator.team.models import Team
from coordinator.team.payloads import check_inputs
from coordinator.wire import channels
from coordinator.wire.connection import guard
from coordinator.wire.errors import InputFault, Unreachable
from coordinator.wire.grants import Answer, parse_message
from coordinator.wire.reports import (
    ActionDecide,
    AnswerQuestion,
    Cancel,
    Decide,
    Entry,
    ExternalReport,
    Resume,
    Signal,
    Submit,
)

ANSWER_SECONDS = 10.0
"""How long an answer is waited for."""
SLICE_SECONDS = 2.0
"""A blocking pop is asked again so often, so that it never waits longer than a socket does."""
LONGEST_RUN_ID = 128
LONGEST_SLUG = 40
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Of random endings: nothing that reads like something else."""


class Unanswered(Unreachable):
    """No coordinator answered: stored, will be applied."""

    def __init__(self, run: str, seconds: float) -> None:
        """run: the one that was spoken of."""
        self.run = run
        super().__init__(f"no coordinator answered within {seconds:g} s: stored, will be applied (run {run})")


class Client:
    """Submits runs, reports and signals. answer_seconds: how long to wait for each answer."""

    def __init__(
        self,
        redis: Redis,
        namespace: str = channels.DEFAULT_NAMESPACE,
        *,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._redis = redis
        self._namespace = namespace
        self._answer_seconds = answer_seconds

    def submit(
        self,
        team: Team | Mapping[str, Any] | Path,
        inputs: Mapping[str, Any] | None = None,
        run: str | None = None,
    ) -> Answer:
        """Makes a run of a Team (checked, a Python object, or a file); the answer names it.

        run: an id of the caller's choice: the same id with the same content is the same run, with other content the
        answer is `refused`, `run_exists`. Raises InputFault with every fault of the Team and its inputs, before
        anything is sent; Unanswered, Unreachable.
        """
        checked = _team(team)
        values = check_inputs(checked, dict(inputs or {}))
        entry = Submit(
            run=_run_id(run) if run is not None else new_run_id(checked.team),
            team=document_text(checked),
            inputs=json.dumps(values, ensure_ascii=False, separators=(",", ":")),
        )
        return self.ask("submit", entry)

    def report(
        self,
        run: str,
        task: str,
        state: str,
        *,
        payload: str = "",
        error: str = "",
        key: str = "",
        source: str = "",
        tokens: int = 0,
        cost_micros: int = 0,
    ) -> Answer:
        """Reports on an external task (SPEC 3). payload, error: JSON texts. source: who says so.

        Raises Unanswered, Unreachable.
        """
        entry = ExternalReport(
            run=run,
            task=task,
            state=state,
            payload=payload,
            error=error,
            key=key,
            source=source,
            tokens=tokens,
            cost_micros=cost_micros,
        )
        return self.ask("operate", entry)

    def signal(self, run: str, name: str, *, source: str = "") -> Answer:
        """Gives a run a named signal (SPEC 4). Raises Unanswered, Unreachable."""
        return self.ask("operate", Signal(run=run, signal=name, source=source))

    def cancel(
        self, run: str, *, task: str = "", reason: str = "", ask: str | None = None, source: str = ""
    ) -> Answer:
        """Cancels a run, or one task of it (SPEC 7); `applied` when it is done, `repeated` for the same `ask` again.

        ask: an id of the caller's choice that makes repeats harmless; None: a new one. Raises Unanswered, Unreachable.
        """
        entry = Cancel(run=run, task=task, ask=ask or secrets.token_hex(8), reason=reason, source=source)
        return self.ask("operate", entry)

    def resume(self, run: str, raises: Sequence[tuple[str, int, bool]] = (), *, source: str = "") -> Answer:
        """Lets a parked run go on (SPEC 5). raises: (limit field of the run, value, whether it is added).

        Raises Unanswered, Unreachable.
        """
        listed = json.dumps([[field, value, int(is_added)] for field, value, is_added in raises])
        return self.ask("operate", Resume(run=run, raises=listed, source=source))

    def answer(self, run: str, task: str, payload: str, *, question: str = "", source: str = "") -> Answer:
        """Answers a task's question. payload: JSON text; question: its digest, empty for the one that is open.

        Raises Unanswered, Unreachable.
        """
        entry = AnswerQuestion(run=run, task=task, question=question, payload=payload, source=source)
        return self.ask("operate", entry)

    def decide_action(
        self,
        run: str,
        task: str,
        key: str,
        state: Literal["confirmed", "failed"],
        *,
        payload: str = "",
        reason: str = "",
        source: str = "",
    ) -> Answer:
        """Says how an action ended of which nobody knew. payload: the receipt, JSON. Raises Unanswered, Unreachable."""
        entry = ActionDecide(
            run=run, task=task, key=key, state=state, payload=payload, reason=reason, source=source
        )
        return self.ask("operate", entry)

    def decide(self, decision: Decide) -> Answer:
        """Closes a review (SPEC 6). Raises Unanswered, Unreachable."""
        return self.ask("review", decision)

    def user(self) -> str:
        """Who we are to Redis: the name that decisions are recorded under; empty when it may not be asked."""
        with guard(self._redis):
            try:
                name: Any = self._redis.acl_whoami()
            except NoPermissionError:
                return ""
        return name.decode() if isinstance(name, bytes) else str(name)

    def ask(self, scope: str, entry: Entry) -> Answer:
        """Puts an entry into the inbox of a scope and waits for its answer. Raises Unanswered, Unreachable."""
        request = secrets.token_hex(16)
        reply_to = channels.client_reply(self._namespace, request)
        addressed = entry.model_copy(update={"request": request, "reply_to": reply_to})
        with guard(self._redis):
            self._redis.xadd(channels.scope_inbox(self._namespace, scope), dict(addressed.fields().items()))
            raw = self._await(reply_to)
        if raw is None:
            raise Unanswered(str(getattr(entry, "run", "")), self._answer_seconds)
        message = parse_message(raw)
        if not isinstance(message, Answer):
            raise TypeError(f"the answer is a {message.kind}")
        return message

    def _await(self, reply_to: str) -> bytes | None:
        end = time.monotonic() + self._answer_seconds
        while (left := end - time.monotonic()) > 0:
            found = self._redis.blpop([reply_to], timeout=max(min(left, SLICE_SECONDS), 0.01))
            if found is not None:
                return found[1] if isinstance(found[1], bytes) else found[1].encode()
        return None


def new_run_id(team: str) -> str:
    """A new id that a person can read: the team's name, the second, and a random ending."""
    slug = re.sub(r"[^A-Za-z0-9_]+", "-", team)[:LONGEST_SLUG].strip("-").lower() or "run"
    ending = "".join(secrets.choice(ALPHABET) for _ in range(6))
    return f"{slug}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{ending}"


def _team(team: Team | Mapping[str, Any] | Path) -> Team:
    if isinstance(team, Team):
        return team
    return load_team(team) if isinstance(team, Path) else make_team(dict(team))


def _run_id(run: str) -> str:
    if not re.fullmatch(channels.ROLE_PATTERN, run) or len(run) > LONGEST_RUN_ID:
        raise InputFault(
            f"{run[:80]!r} is no run id: expected at most {LONGEST_RUN_ID} letters, digits, `_` and single `-`"
        )
    return run
