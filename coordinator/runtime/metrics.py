"""Owns the export of metrics to Prometheus (SPEC 11).

Counters live in Redis and are raised inside the transitions, so they survive a restart and are never counted twice;
here they are only read. Labels come from closed sets: every value of a set is exported, also at 0, so that no series
freezes when its last member goes. Must not export a name that a user gave. What only this process knows (does it lead,
when did it last step, how long do calls take) is kept in `Health`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from wsgiref.simple_server import WSGIServer

import structlog
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from redis import Redis
from redis.exceptions import RedisError

from coordinator.machine.machine import Machine
from coordinator.machine.reads import ListReviews, ListRoles, ReadMetrics
from coordinator.wire import channels
from coordinator.wire.names import FINAL, PARKED, AttemptOutcome, Limit, RunStatus, TaskState

OTHER_ROLE = "other"
"""Label of queues of roles that the installation's config does not name (SPEC 11)."""
LATE_REASONS = ("run_stopped", "stale_lease")
CANCEL_OUTCOMES = ("requested", "confirmed", "completed_anyway", "unconfirmed")
PLAIN = {
    "result_conflicts": "Results that contradict another one.",
    "duplicate_results": "Results that came again.",
    "lease_expirations": "Leases that expired.",
    "fenced_writes": "Commands refused under an old epoch.",
    "malformed_entries": "Inbox entries that could not be read.",
    "integrity_faults": "Records that were gone.",
}
"""Counters without labels."""
ACTION_STATES = ("started", "confirmed", "failed", "unknown")
REVIEW_KINDS = ("conflict", "unknown_action", "integrity")
TRANSITION_BOUNDS = (0.00001, 0.00002, 0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.005, 0.01, 0.1)
"""Seconds for one command, from the coordinator: the pipeline's time by the number of commands in it."""

log = structlog.get_logger(__name__)


class Health:
    """What the process knows of itself. Written by the service, read by the exporter's thread."""

    def __init__(self) -> None:
        self.leads = False
        self.epoch = 0
        self.last_step_ms = 0
        self._lock = threading.Lock()
        self._buckets = [0] * (len(TRANSITION_BOUNDS) + 1)
        self._seconds = 0.0

    def took(self, count: int, seconds: float) -> None:
        """A pipeline of `count` commands took so long."""
        each = seconds / count
        at = next((i for i, bound in enumerate(TRANSITION_BOUNDS) if each <= bound), len(TRANSITION_BOUNDS))
        with self._lock:
            self._buckets[at] += count
            self._seconds += seconds

    def transitions(self) -> Metric:
        """The histogram of commands."""
        with self._lock:
            counts, seconds = list(self._buckets), self._seconds
        family = HistogramMetricFamily("crewline_transition_seconds", "Time of one command in a pipeline.")
        family.add_metric([], _cumulated(TRANSITION_BOUNDS, counts), seconds)
        return family


class Exporter(Collector):
    """Collects when it is scraped. roles: those that may stand as a label (the installation's config names them)."""

    def __init__(self, redis: Redis, namespace: str, health: Health, roles: Iterable[str] = ()) -> None:
        self._redis = redis
        self._namespace = namespace
        self._machine = Machine(redis, namespace)
        self._health = health
        self._roles = tuple(roles)

    def collect(self) -> Iterator[Metric]:
        """Everything that is known now; without Redis, only what the process knows of itself."""
        health = self._health
        yield _gauge("crewline_leader", "1 while this process leads.", int(health.leads))
        yield _gauge("crewline_leader_epoch", "Epoch under which this process last led.", health.epoch)
        yield _gauge(
            "crewline_last_tick_timestamp_seconds",
            "When the loop last finished a step.",
            health.last_step_ms / 1000,
        )
        yield health.transitions()
        try:
            counters = self._machine.read(ReadMetrics())
            lag = self._lag()
            oldest = self._machine.read(ListReviews(offset=0, limit=1))
        except RedisError as error:
            log.warning("metrics_without_redis", error=type(error).__name__)
            return
        yield from families(counters, self._roles)
        yield _gauge("crewline_inbox_lag", "Inbox entries that are not applied yet.", lag)
        yield _gauge(
            "crewline_review_oldest_timestamp_seconds",
            "When the oldest open review was opened; 0 without one.",
            oldest[0][1]["opened_at"] / 1000 if oldest else 0,
        )

    def _lag(self) -> int:
        roles = [role for role in self._machine.read(ListRoles()) if not role.startswith("~")]
        streams = [channels.scope_inbox(self._namespace, scope) for scope in channels.SCOPES]
        streams += [channels.inbox(self._namespace, role) for role in roles]
        with self._redis.pipeline(transaction=False) as pipe:
            for stream in streams:
                pipe.xlen(stream)
            return sum(pipe.execute())


def families(counters: Mapping[str, str], roles: Iterable[str] = ()) -> Iterator[Metric]:
    """The metrics that stand in Redis, from what `ReadMetrics` gives."""
    values = {name: float(value) for name, value in counters.items()}
    yield from _labelled(values)
    yield from _unlabelled(values)
    yield _reviews(values)
    runs = GaugeMetricFamily("crewline_runs", "Runs by status.", labels=["status"])
    for status in RunStatus:
        runs.add_metric([status], values.get(f"runs:{status}", 0.0))
    yield runs
    yield _queues(values, frozenset(roles))
    yield _gauge("crewline_leases_active", "Attempts under a lease.", values.get("leases_active", 0.0))
    actions = GaugeMetricFamily("crewline_actions", "Side effects by state.", labels=["state"])
    for state in ACTION_STATES:
        actions.add_metric([state], values.get(f"actions_now:{state}", 0.0))
    yield actions
    yield _gauge(
        "crewline_outbox", "Dispatched attempts that are not yet RQ jobs.", values.get("outbox", 0.0)
    )
    yield _histogram("crewline_queue_wait_seconds", "From dispatch to lease.", values, "queue_wait")
    yield _histogram("crewline_attempt_seconds", "From lease to end.", values, "attempt")
    yield _histogram(
        "crewline_cancel_ack_seconds", "From a cancel to the worker's word.", values, "cancel_ack"
    )


def _labelled(values: Mapping[str, float]) -> Iterator[Metric]:
    """Counters of closed sets."""

    def of(prefix: str, labels: Iterable[str]) -> dict[str, float]:
        return {label: values.get(f"{prefix}:{label}", 0.0) for label in labels}

    yield _counter("crewline_stops", "Runs that ended.", "reason", of("stops", sorted(FINAL)))
    yield _counter("crewline_parks", "Times a run parked.", "status", of("parks", sorted(PARKED)))
    yield _counter("crewline_late_results", "Late reports.", "verdict", of("late_results", LATE_REASONS))
    yield _counter("crewline_tasks", "Times a task entered a state.", "state", _tasks(values))
    yield _counter("crewline_attempts", "Attempts that ended.", "outcome", of("attempts", AttemptOutcome))
    yield _counter("crewline_budget_refusals", "Dispatches put off.", "limit", of("budget_refusals", Limit))
    yield _counter(
        "crewline_budget_overruns", "Uses above a reservation.", "limit", of("budget_overruns", Limit)
    )
    yield _counter(
        "crewline_cancellations",
        "Attempts told to end, and what became of it.",
        "outcome",
        of("cancellations", CANCEL_OUTCOMES),
    )


def _unlabelled(values: Mapping[str, float]) -> Iterator[Metric]:
    """Plain counters."""
    for field, text in PLAIN.items():
        yield CounterMetricFamily(f"crewline_{field}", text, value=values.get(field, 0.0))


def serve(collector: Collector, port: int, address: str) -> tuple[WSGIServer, threading.Thread]:
    """Serves the metrics over HTTP in a thread; the caller shuts the server down. port 0: any free one."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    server, thread = start_http_server(port, address, registry)
    return server, thread


def _tasks(values: Mapping[str, float]) -> dict[str, float]:
    """Tasks of stopped runs count as canceled without being moved one by one (SPEC 4)."""
    states = {state.value: values.get(f"tasks:{state}", 0.0) for state in TaskState}
    states[TaskState.CANCELED] += sum(count for name, count in values.items() if name.startswith("stopped:"))
    return states


def _reviews(values: Mapping[str, float]) -> Metric:
    """What was opened and not yet decided."""
    family = GaugeMetricFamily("crewline_reviews_open", "Reviews that wait for a person.", labels=["kind"])
    for kind in REVIEW_KINDS:
        opened, decided = (values.get(f"reviews_{word}:{kind}", 0.0) for word in ("opened", "decided"))
        family.add_metric([kind], opened - decided)
    return family


def _queues(values: Mapping[str, float], roles: frozenset[str]) -> Metric:
    depths = dict.fromkeys([*sorted(roles), OTHER_ROLE], 0.0)
    for name, count in values.items():
        kind, _, role = name.partition(":")
        if kind == "queued" and not role.startswith("~"):
            depths[role if role in roles else OTHER_ROLE] += count
    family = GaugeMetricFamily("crewline_queue_depth", "Attempts that wait for a worker.", labels=["role"])
    for role, depth in depths.items():
        family.add_metric([role], depth)
    return family


def _histogram(name: str, text: str, values: Mapping[str, float], field: str) -> Metric:
    """Bounds stand in the field names, as Lua wrote them (`FIELD:le:BOUND`)."""
    prefix = f"{field}:le:"
    found = {key[len(prefix) :]: count for key, count in values.items() if key.startswith(prefix)}
    bounds = sorted(float(bound) for bound in found if bound != "inf")
    counts = [
        next(count for key, count in found.items() if key != "inf" and float(key) == bound)
        for bound in bounds
    ]
    family = HistogramMetricFamily(name, text)
    family.add_metric(
        [], _cumulated(bounds, [*counts, found.get("inf", 0.0)]), values.get(f"{field}:sum_ms", 0.0) / 1000
    )
    return family


def _cumulated(bounds: Iterable[float], counts: Iterable[float]) -> list[tuple[str, float]]:
    total, buckets = 0.0, []
    for bound, count in zip([*map(str, bounds), "+Inf"], counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


def _counter(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
