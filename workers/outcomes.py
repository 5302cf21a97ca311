"""Owns how an attempt can end as the worker sees it: the exceptions that handlers raise, and the Outcome made of them.

A handler says what kind of failure it had by the exception's class; everything else it may raise, BaseException
included, is `permanent` (SPEC 3). Must not know Redis or RQ, and must not decide what follows from an outcome: that is
the coordinator's. Texts of errors are cut here, so that no error can be too large to report.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from coordinator.wire.digest import InvalidPayload, encode
from coordinator.wire.names import FailureClass
from coordinator.wire.reports import CANCELED, CHILDREN, MAX_RETRY_AFTER_MS, SUCCEEDED

OVER = "over"
"""Outcome of an attempt that the coordinator knows to be over already: nothing is reported of it."""
MAX_MESSAGE = 4_000
"""Longest error message in characters; the rest is cut, with a mark."""
MAX_TRACEBACK = 16_000
"""Longest traceback in characters; its middle is cut, with a mark."""
MAX_FRAMES = 40
"""Frames of a traceback that are kept, the innermost ones."""
MAX_QUESTION = 64 * 1024
"""Largest question of a MissingInput, in bytes of JSON."""


_Answer = TypeVar("_Answer")
_OURS = str(Path(__file__).parent)


class HandlerFailure(Exception):
    """The handler failed."""

    failure_class: ClassVar[FailureClass] = FailureClass.PERMANENT

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class Transient(HandlerFailure):
    """It may work at another time: retried within max_attempts and budget."""

    failure_class = FailureClass.TRANSIENT

    def __init__(self, message: str = "", *, retry_after: float | timedelta | None = None) -> None:
        """retry_after: how long the provider asks to wait (seconds, or a timedelta); a floor for the backoff."""
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def retry_after_ms(self) -> int:
        """The floor in ms, 0 when none was given; at most 30 days."""
        wait = self.retry_after
        seconds = wait.total_seconds() if isinstance(wait, timedelta) else (wait or 0)
        return max(0, min(int(seconds * 1000), MAX_RETRY_AFTER_MS)) if seconds == seconds else 0


class MissingInput(HandlerFailure):
    """Something is missing that a person can answer: the task waits with its question."""

    failure_class = FailureClass.MISSING_INPUT

    def __init__(self, question: Any = "", message: str = "") -> None:
        """question: any JSON value, kept for who answers; message: for logs, the question itself if it is text."""
        super().__init__(message or (question if isinstance(question, str) else ""))
        self.question = question if question != "" else str(self)


class PermissionDenied(HandlerFailure):
    """The handler was refused permission: the task is denied, never retried, never given to another role."""

    failure_class = FailureClass.PERMISSION


class Permanent(HandlerFailure):
    """It will not work at another time either: the task fails."""


class InvalidOutput(HandlerFailure):
    """The result breaks its contract: the task fails, or is retried with `retry_invalid`."""

    failure_class = FailureClass.INVALID_OUTPUT


class AttemptCanceled(BaseException):
    """The attempt was canceled; a BaseException, so that `except Exception` in a handler does not swallow it."""


class AttemptLeft(BaseException):
    """Leaves a handler that is not to go on now: it waits for its children, or a person has to decide (SPEC 7, 8)."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome

    @classmethod
    def for_children(cls) -> AttemptLeft:
        """The attempt ends; another one begins when the children have ended."""
        return cls(CHILDREN)

    @classmethod
    def over(cls) -> AttemptLeft:
        """The attempt has ended already."""
        return cls(OVER)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended. outcome: `succeeded`, `canceled`, `children`, `over` or a FailureClass.

    payload, error: JSON text.
    """

    outcome: str
    payload: str = ""
    error: str = ""
    retry_after_ms: int = 0


def succeeded(payload: str) -> Outcome:
    """The outcome of a result, given as JSON text."""
    return Outcome(SUCCEEDED, payload)


def failed(failure_class: FailureClass, kind: str, message: str, where: str = "") -> Outcome:
    """A failure that no handler raised; kind: its `error.type`, such as `ProcessExited`."""
    return Outcome(failure_class.value, error=error_text(failure_class.value, kind, message, where))


def canceled(reason: str) -> Outcome:
    """The attempt was stopped because it had been canceled; confirms the cancel (SPEC 7)."""
    return Outcome(CANCELED, error=error_text(CANCELED, "AttemptCanceled", reason))


def failure_of(error: BaseException, *, was_canceled: bool = False) -> Outcome:
    """The outcome of what a handler raised; never raises itself, whatever the exception is like.

    was_canceled: a cancel had been asked for, so AttemptCanceled and CancelledError confirm it.
    """
    left = _left(error)
    if was_canceled and (left or type(error).__name__ in ("AttemptCanceled", "CancelledError")):
        return canceled("the handler stopped")
    if left:
        return Outcome(left)
    failure_class = error.failure_class if isinstance(error, HandlerFailure) else FailureClass.PERMANENT
    payload, message = "", _safely(lambda: str(error), "")
    if isinstance(error, MissingInput):
        try:
            payload = encode(error.question)
        except InvalidPayload as fault:
            return failed(FailureClass.PERMANENT, "QuestionInvalid", f"the question is no JSON: {fault}")
        if len(payload.encode()) > MAX_QUESTION:
            return failed(
                FailureClass.PERMANENT, "QuestionInvalid", f"the question is over {MAX_QUESTION} bytes"
            )
    wait = _safely(lambda: error.retry_after_ms, 0) if isinstance(error, Transient) else 0
    text = error_text(
        failure_class.value,
        type(error).__name__,
        message or type(error).__name__,
        where=_safely(lambda: _where(error.__traceback__), ""),
        trace=_safely(lambda: _trace(error), ""),
    )
    return Outcome(failure_class.value, payload, text, wait)


def _left(error: BaseException) -> str:
    """The outcome of an AttemptLeft, also when it comes out of a task group; empty for anything else."""
    if isinstance(error, BaseExceptionGroup):
        leaving, others = error.split(AttemptLeft)
        if leaving is None or others is not None:
            return ""
        error = leaving.exceptions[0]
        return _left(error)
    return error.outcome if isinstance(error, AttemptLeft) else ""


def error_text(failure_class: str, kind: str, message: str, where: str = "", trace: str = "") -> str:
    """The error document {class, type, message, where, traceback} as JSON text, every part cut to its bound."""
    return encode(
        {
            "class": failure_class,
            "type": shorten(kind, 200),
            "message": shorten(message, MAX_MESSAGE),
            "where": shorten(where, 500),
            "traceback": shorten_middle(trace, MAX_TRACEBACK),
        }
    )


def shorten(text: str, limit: int) -> str:
    """The text, cut to about `limit` characters with a mark that says how long it was; fit for UTF-8."""
    if len(text) > limit:
        text = f"{text[:limit]} … [cut: {len(text)} characters]"
    return text.encode("utf-8", "backslashreplace").decode()


def shorten_middle(text: str, limit: int) -> str:
    """Like `shorten`, but keeps both ends: a traceback says most in its first and last lines."""
    if len(text) > limit:
        half = limit // 2
        text = f"{text[:half]}\n… [cut: {len(text)} characters]\n{text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode()


def _trace(error: BaseException) -> str:
    """The traceback as Python prints it, without the worker's own frames above the handler's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and _is_ours(trace):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace, limit=-MAX_FRAMES))


def _where(trace: TracebackType | None) -> str:
    """The innermost place in the handler's code, or in what it called; not in what it called of ours."""
    innermost = trace
    while trace is not None:
        if innermost is not None and (_is_ours(innermost) or not _is_ours(trace)):
            innermost = trace
        trace = trace.tb_next
    frames = traceback.extract_tb(innermost, limit=1)
    return f"{frames[0].filename}:{frames[0].lineno} in {frames[0].name}" if frames else ""


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OURS)


def _safely(ask: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
    """What `ask` says, or `otherwise`: an exception's own __str__ may raise anything."""
    try:
        return ask()
    except Exception:
        return otherwise
