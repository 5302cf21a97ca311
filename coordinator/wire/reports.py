"""Owns the inbox entries: what workers, clients and outside systems say, as flat stream fields (all strings).

Senders build a model and write `entry.fields()`; the coordinator reads one back with `parse_role`, `parse_submit`,
`parse_operate` or `parse_review`. Every field is bounded, so that what cannot be read is known here and goes to the
ledger (SPEC 6). Must not judge anything about a run: whether a report is stale, late or over budget is decided by the
machine. Must not trust what a sender says about itself: the role follows from the inbox, answers go to the sender's
own list only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from coordinator.wire import channels
from coordinator.wire.names import FailureClass

MAX_NUMBER = 2**53 - 1
"""Largest number that passes through Lua unharmed."""
MAX_PAYLOAD = 64 * 2**20
"""Longest payload (characters) that an entry may carry; a task's own `output_bytes` is usually far less."""
MAX_DOCUMENT = 64 * 2**20
"""Longest Team or inputs document of a submit."""
MAX_ERROR = 2**20
"""Longest error document; senders cut message and traceback far below it (`workers.outcomes`)."""
MAX_DETAILS = 4096
"""Longest heartbeat detail."""
MAX_ACTION = 2**20
"""Longest description, receipt or error of an action, and longest answer to a question."""
MAX_RETRY_AFTER_MS = 30 * 24 * 3600 * 1000
"""Longest wait that a failure may ask for: 30 days."""
SUCCEEDED = "succeeded"
"""The outcome of an end that carries a result."""
CANCELED = "canceled"
"""The outcome of an end that confirms a cancel: the handler was stopped (SPEC 7)."""
CHILDREN = "children"
"""The outcome of an end whose handler waits for its children (SPEC 8). All others are a FailureClass."""

WORKER_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*$"
"""Worker names: they stand in keys, so nothing in them may separate or match keys."""

_OUTCOMES = frozenset(FailureClass) | {SUCCEEDED, CANCELED, CHILDREN}


def _known_class(value: Any) -> Any:
    """Every unknown class is read as `permanent` (SPEC 3)."""
    return value if value in _OUTCOMES else FailureClass.PERMANENT.value


RunId = Annotated[str, Field(min_length=1, max_length=128, pattern=f"^{channels.ROLE_PATTERN}$")]
TaskId = Annotated[str, Field(min_length=1, max_length=1024)]
WorkerName = Annotated[str, Field(min_length=1, max_length=128, pattern=WORKER_PATTERN)]
Attempt = Annotated[int, Field(ge=1, le=2**31)]
Lease = Annotated[str, Field(min_length=1, max_length=128)]
Amount = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Payload = Annotated[str, Field(max_length=MAX_PAYLOAD)]
ErrorText = Annotated[str, Field(max_length=MAX_ERROR)]
Word = Annotated[str, Field(max_length=128)]
Key = Annotated[str, Field(min_length=1, max_length=256)]
Digest = Annotated[str, Field(max_length=128)]
Reason = Annotated[str, Field(max_length=2000)]
Flag = Annotated[int, Field(ge=0, le=1)]
ActionText = Annotated[str, Field(max_length=MAX_ACTION)]
ActionEnds = Literal["confirmed", "failed"]


class Entry(BaseModel):
    """What every entry has. reply_to: list that gets the answer, or empty. request: the asker's correlation id."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: str
    v: Literal["1"] = "1"
    reply_to: Annotated[str, Field(max_length=512)] = ""
    request: Annotated[str, Field(max_length=64)] = ""

    def fields(self) -> dict[str, str]:
        """The entry as stream fields, for XADD."""
        return {name: value if type(value) is str else str(value) for name, value in self.__dict__.items()}


class RoleEntry(Entry):
    """What a worker says about one attempt."""

    run: RunId
    task: TaskId
    attempt: Attempt
    worker: WorkerName


class Start(RoleEntry):
    """Asks for the lease of an attempt; the answer is a grant or a refusal."""

    kind: Literal["start"] = "start"


class LeasedEntry(RoleEntry):
    """What only the holder of a lease may say."""

    lease: Lease


class Renew(LeasedEntry):
    """The handler's process, thread or task lives; progress 1: the handler said so itself (SPEC 7). No answer."""

    kind: Literal["renew"] = "renew"
    progress: Flag = 0
    details: Annotated[str, Field(max_length=MAX_DETAILS)] = ""


class End(LeasedEntry):
    """How an attempt ended. outcome: one of the three above or a FailureClass; an unknown one is `permanent`.

    payload: the result, or the question of a `missing_input`, as JSON text. error: JSON {class, type, message, where,
    traceback}, or empty.
    """

    kind: Literal["end"] = "end"
    outcome: Annotated[str, BeforeValidator(_known_class)]
    payload: Payload = ""
    key: Word = ""
    error: ErrorText = ""
    retry_after_ms: Annotated[int, Field(ge=0, le=MAX_RETRY_AFTER_MS)] = 0
    tokens: Amount = 0
    cost_micros: Amount = 0


class HandBackReport(RoleEntry):
    """Returns an attempt whose handler did not begin (SPEC 3). lease: empty when none was granted."""

    kind: Literal["hand_back"] = "hand_back"
    lease: Annotated[str, Field(max_length=128)] = ""
    reason: Word


class Use(LeasedEntry):
    """What the attempt has used so far (totals); the answer says whether that can be covered (SPEC 5)."""

    kind: Literal["use"] = "use"
    tokens: Amount = 0
    cost_micros: Amount = 0


class AskResults(LeasedEntry):
    """Asks for one page of the requirements' results, when the grant was too large to carry them."""

    kind: Literal["results"] = "results"
    page: Annotated[int, Field(ge=0, le=2**20)]


class ActionStart(LeasedEntry):
    """A side effect is about to be performed (SPEC 7); the answer's word says whether to do it.

    payload: what it is about, as JSON text, or empty. again 1: an unknown one may be done again.
    """

    kind: Literal["action"] = "action"
    key: Key
    payload: ActionText = ""
    again: Flag = 0


class ActionEnd(LeasedEntry):
    """How a side effect ended. payload: the receipt, or the error, as JSON text."""

    kind: Literal["action_end"] = "action_end"
    key: Key
    state: ActionEnds
    payload: ActionText = ""


class ActionDoubt(LeasedEntry):
    """The handler cannot tell whether an unknown action was done: a person decides, and the attempt is over."""

    kind: Literal["action_doubt"] = "action_doubt"
    key: Key
    tokens: Amount = 0
    cost_micros: Amount = 0


class Spawn(LeasedEntry):
    """Makes a child task, or finds the one made under the key (SPEC 8). child: a JSON object of task keys."""

    kind: Literal["spawn"] = "spawn"
    key: Key
    child: Annotated[str, Field(min_length=2, max_length=MAX_PAYLOAD)]
    background: Flag = 0


class ArtifactMade(LeasedEntry):
    """A named output lies at `url`; digest: `sha256:` and 64 hex digits over its bytes; size: how many (SPEC 8)."""

    kind: Literal["artifact"] = "artifact"
    name: Key
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    size: Amount
    url: Annotated[str, Field(min_length=1, max_length=2000)]


class Submit(Entry):
    """Asks for a new run."""

    kind: Literal["submit"] = "submit"
    run: RunId
    team: Annotated[str, Field(min_length=1, max_length=MAX_DOCUMENT)]
    inputs: Annotated[str, Field(max_length=MAX_DOCUMENT)] = "{}"


class ExternalReport(Entry):
    """An outside system reports on an external task; an unknown state is refused by the machine, not here."""

    kind: Literal["report"] = "report"
    run: RunId
    task: TaskId
    state: Word
    key: Annotated[str, Field(max_length=256)] = ""
    payload: Payload = ""
    error: ErrorText = ""
    source: Word = ""
    tokens: Amount = 0
    cost_micros: Amount = 0


class Signal(Entry):
    """An operator's named signal, a fact for rules (SPEC 4)."""

    kind: Literal["signal"] = "signal"
    run: RunId
    signal: Annotated[str, Field(min_length=1, max_length=128)]
    source: Word = ""


class Cancel(Entry):
    """Ends a run, or with `task` one task of it (SPEC 7). ask: the operator's request id; the same one changes nothing
    twice."""

    kind: Literal["cancel"] = "cancel"
    run: RunId
    task: Annotated[str, Field(max_length=256)] = ""
    ask: Word = ""
    reason: Reason = ""
    source: Word = ""


class Resume(Entry):
    """Lets a parked run go on (SPEC 5). raises: JSON array of [limit field of the run, value, 1 if it is added]."""

    kind: Literal["resume"] = "resume"
    run: RunId
    raises: Annotated[str, Field(max_length=4096)] = "[]"
    source: Word = ""


class AnswerQuestion(Entry):
    """Answers a task's question. question: its digest, empty for the one that is open. payload: JSON text."""

    kind: Literal["answer"] = "answer"
    run: RunId
    task: TaskId
    question: Digest = ""
    payload: ActionText
    source: Word = ""


class ActionDecide(Entry):
    """A person says how a started or unknown action ended (SPEC 7, 9). payload: the receipt, as JSON text."""

    kind: Literal["action_decide"] = "action_decide"
    run: RunId
    task: TaskId
    key: Key
    state: ActionEnds
    payload: ActionText = ""
    reason: Reason = ""
    source: Word = ""


class Decide(Entry):
    """A person closes a review (SPEC 6). digest: what is accepted; payload: what is supplied, as JSON text.

    version: the review's state_version that the decision was made on. tainted: what becomes of what had started.
    """

    kind: Literal["decide"] = "decide"
    run: RunId
    review: Annotated[str, Field(min_length=1, max_length=300)]
    decision: Literal["accept", "supply", "reject", "rerun"]
    payload: Payload = ""
    digest: Digest = ""
    version: Amount
    tainted: Literal["keep", "rerun"] = "keep"
    reason: Reason = ""
    source: Word = ""


_Model = TypeVar("_Model", bound=Entry)

LeasedRequest = Use | AskResults | ActionStart | ActionEnd | ActionDoubt | Spawn | ArtifactMade
RoleReport = Start | Renew | End | HandBackReport | LeasedRequest
OperateRequest = ExternalReport | Signal | Cancel | Resume | AnswerQuestion | ActionDecide


class MalformedEntry(ValueError):
    """An inbox entry that cannot be read; the message says which field, never what stood in it."""


_ROLE_KINDS: dict[str, type[RoleReport]] = {
    "start": Start,
    "renew": Renew,
    "end": End,
    "hand_back": HandBackReport,
    "use": Use,
    "results": AskResults,
    "action": ActionStart,
    "action_end": ActionEnd,
    "action_doubt": ActionDoubt,
    "spawn": Spawn,
    "artifact": ArtifactMade,
}
_OPERATE_KINDS: dict[str, type[OperateRequest]] = {
    "report": ExternalReport,
    "signal": Signal,
    "cancel": Cancel,
    "resume": Resume,
    "answer": AnswerQuestion,
    "action_decide": ActionDecide,
}


def parse_role(ns: str, role: str, raw: Mapping[bytes, bytes]) -> RoleReport:
    """Reads an entry of a role's inbox; raises MalformedEntry.

    An answer may only go to the worker's own list, or to one below it (`LIST:REQUEST`), which a worker names when
    several of its threads wait at once.
    """
    text = _decode(raw)
    model = _ROLE_KINDS.get(text.get("kind", ""))
    if model is None:
        raise MalformedEntry("kind: unknown")
    entry = _validate(model, text)
    if entry.reply_to:
        own = channels.reply(ns, role, entry.worker)
        if entry.reply_to not in (own, f"{own}:{entry.request}"):
            raise MalformedEntry("reply_to: not the worker's own list")
    return entry


def parse_submit(ns: str, raw: Mapping[bytes, bytes]) -> Submit:
    """Reads an entry of the submit inbox; raises MalformedEntry."""
    entry = _validate(Submit, _decode(raw))
    _check_client(ns, entry)
    return entry


def parse_operate(ns: str, raw: Mapping[bytes, bytes]) -> OperateRequest:
    """Reads an entry of the operate inbox; raises MalformedEntry."""
    text = _decode(raw)
    model = _OPERATE_KINDS.get(text.get("kind", ""))
    if model is None:
        raise MalformedEntry("kind: unknown")
    entry = _validate(model, text)
    _check_client(ns, entry)
    return entry


def parse_review(ns: str, raw: Mapping[bytes, bytes]) -> Decide:
    """Reads an entry of the review inbox; raises MalformedEntry."""
    text = _decode(raw)
    if text.get("kind", "") != "decide":
        raise MalformedEntry("kind: unknown")
    entry = _validate(Decide, text)
    _check_client(ns, entry)
    return entry


def _check_client(ns: str, entry: Entry) -> None:
    if entry.reply_to and entry.reply_to != channels.client_reply(ns, entry.request):
        raise MalformedEntry("reply_to: not the list of the request")


def _decode(raw: Mapping[bytes, bytes]) -> dict[str, str]:
    try:
        return {name.decode(): value.decode() for name, value in raw.items()}
    except UnicodeDecodeError as error:
        raise MalformedEntry("not UTF-8") from error


def _validate(model: type[_Model], text: dict[str, str]) -> _Model:
    try:
        return model.model_validate(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        raise MalformedEntry(f"{where}: {first['type']}") from error
