"""Metrics: what Redis counts, with labels from closed sets alone (SPEC 11)."""

from __future__ import annotations

import urllib.request

import pytest
from prometheus_client import CollectorRegistry
from redis import Redis

from coordinator.machine.reads import ReadMetrics
from coordinator.runtime.metrics import Exporter, Health, families, serve
from coordinator.wire.connection import connect
from coordinator.wire.names import RunStatus, TaskState
from coordinator.wire.reports import Cancel
from tests.runtime.harness import NAMESPACE, ROLE, Stepped, team


def scrape(exporter: Exporter) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample by name and label values."""
    registry = CollectorRegistry()
    registry.register(exporter)
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


@pytest.fixture
def exporter(stepped: Stepped) -> Exporter:
    return Exporter(stepped.redis, NAMESPACE, Health())


def test_what_a_run_leaves_in_the_counters(stepped: Stepped, exporter: Exporter) -> None:
    stepped.submit(team({"a": {}, "b": {"required": False}}))
    stepped.start("a")
    before = scrape(exporter)
    assert before["crewline_runs", ("running",)] == 1
    assert before["crewline_queue_depth", ("other",)] == 1
    stepped.now += 700
    stepped.end("a", 1)
    after = scrape(exporter)
    assert after["crewline_runs", ("running",)] == 0
    assert after["crewline_runs", ("completed",)] == 1
    assert after["crewline_stops_total", ("completed",)] == 1
    assert after["crewline_tasks_total", ("succeeded",)] == 1
    assert after["crewline_tasks_total", ("canceled",)] == 1
    assert after["crewline_attempts_total", ("succeeded",)] == 1
    assert after["crewline_attempt_seconds_count", ()] == 1
    assert after["crewline_attempt_seconds_sum", ()] == 0.7
    assert after["crewline_attempt_seconds_bucket", ("+Inf",)] == 1
    assert after["crewline_queue_wait_seconds_count", ()] == 1


def test_c48_a_restart_keeps_the_counters(stepped: Stepped, exporter: Exporter) -> None:
    stepped.submit(team({"a": {}}))
    stepped.work("a", 1)
    before = scrape(exporter)
    stepped.restart()
    after = scrape(Exporter(stepped.redis, NAMESPACE, Health()))
    for name, value in before.items():
        assert after[name] >= value or name[0].startswith("crewline_leader"), name


def test_c49_every_member_of_a_closed_set_is_always_there(redis: Redis) -> None:
    samples = {
        (sample.name, tuple(sample.labels.values())) for family in families({}) for sample in family.samples
    }
    assert {("crewline_runs", (status.value,)) for status in RunStatus} <= samples
    assert {("crewline_tasks_total", (state.value,)) for state in TaskState} <= samples
    assert ("crewline_queue_depth", ("other",)) in samples


def test_c47_names_that_users_give_are_no_labels(stepped: Stepped, exporter: Exporter) -> None:
    series: set[tuple[str, tuple[str, ...]]] = set()
    for number in range(5):
        document = team({f"task{number}": {}}) | {"team": f"team{number}"}
        document["roles"][f"role{number}"] = {"capabilities": []}
        stepped.submit(document, f"run{number}")
        stepped.work(f"task{number}", 1, run=f"run{number}")
        found = {name for name in scrape(exporter) if "bucket" not in name[0]}
        series = series or found
        assert found == series
    words = {label for name, labels in scrape(exporter) if "bucket" not in name for label in labels}
    assert not {word for word in words if any(letter.isdigit() for letter in word)}


def test_roles_of_the_config_have_a_label(stepped: Stepped) -> None:
    stepped.submit(team({"a": {}}))
    samples = scrape(Exporter(stepped.redis, NAMESPACE, Health(), roles=[ROLE, "idle"]))
    assert samples["crewline_queue_depth", (ROLE,)] == 1
    assert samples["crewline_queue_depth", ("idle",)] == 0
    assert samples["crewline_queue_depth", ("other",)] == 0


def test_the_lag_counts_entries_that_are_not_applied(stepped: Stepped, exporter: Exporter) -> None:
    stepped.submit(team({"a": {}}))
    assert scrape(exporter)["crewline_inbox_lag", ()] == 0
    for role in (ROLE, ROLE, "unheard"):
        stepped.put(f"{NAMESPACE}:inbox:role:{role}", {"kind": "x"})
    assert scrape(exporter)["crewline_inbox_lag", ()] == 2


def test_cancels_and_reviews_are_counted(stepped: Stepped, exporter: Exporter) -> None:
    stepped.submit(team({"a": {"idempotency_key": "k"}, "b": {"requires": ["a"]}}))
    stepped.start("a")
    lease = dict(stepped.leases)
    stepped.end("a", 1)
    stepped.leases.update(lease)
    stepped.end("a", 2)
    samples = scrape(exporter)
    assert samples["crewline_reviews_open", ("conflict",)] == 1
    assert samples["crewline_review_oldest_timestamp_seconds", ()] == stepped.now / 1000
    stepped.submit(team({"c": {}}), "r2")
    stepped.start("c", run="r2")
    stepped.ask("operate", Cancel(run="r2", reason="x"))
    stepped.now += 2_000
    stepped.end("c", run="r2", outcome="canceled")
    samples = scrape(exporter)
    assert samples["crewline_cancellations_total", ("requested",)] == 1
    assert samples["crewline_cancellations_total", ("confirmed",)] == 1
    assert samples["crewline_cancel_ack_seconds_sum", ()] == 2.0


def test_without_redis_the_process_still_tells_of_itself() -> None:
    health = Health()
    health.leads, health.epoch, health.last_step_ms = True, 7, 1_500
    health.took(10, 0.001)
    samples = scrape(Exporter(connect("redis://127.0.0.1:1", socket_timeout=0.5), NAMESPACE, health))
    assert samples["crewline_leader", ()] == 1
    assert samples["crewline_leader_epoch", ()] == 7
    assert samples["crewline_last_tick_timestamp_seconds", ()] == 1.5
    assert samples["crewline_transition_seconds_count", ()] == 10
    assert samples["crewline_transition_seconds_sum", ()] == 0.001
    assert ("crewline_runs", ("running",)) not in samples


def test_prometheus_can_scrape_it(exporter: Exporter) -> None:
    server, thread = serve(exporter, 0, "127.0.0.1")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert 'crewline_runs{status="running"} 0.0' in text
    assert "# TYPE crewline_stops_total counter" in text or "# TYPE crewline_stops counter" in text


def test_every_counter_of_the_machine_is_exported(stepped: Stepped) -> None:
    """A name that Lua raises and nobody exports would be lost silently."""
    known = {
        "stops", "parks", "result_conflicts", "duplicate_results", "late_results", "tasks", "stopped", "attempts",
        "lease_expirations", "fenced_writes", "malformed_entries", "budget_refusals", "budget_overruns", "runs",
        "queued", "outbox", "epoch", "queue_wait", "attempt", "cancellations", "cancel_ack", "integrity_faults",
        "reviews_opened", "reviews_decided", "leases_active", "actions", "actions_now",
    }  # fmt: skip
    stepped.submit(team({"a": {}}))
    stepped.work("a", 1)
    counters = stepped.machine.read(ReadMetrics())
    assert {name.partition(":")[0] for name in counters} <= known
