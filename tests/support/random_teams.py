"""Owns hypothesis strategies for small teams that reach every rule of SPEC 2-5.

Must not know commands: what is done to the teams stands in tests/machine.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.support.builders import Plan, Spec, plan, task

ROLES = {"clerk": ["work", "check"], "editor": ["polish"]}
FACTS = ("f1", "f2")
SIGNALS = ("go", "halt")

Draw = st.DrawFn


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """`usual` in about two draws of three."""
    return st.sampled_from([usual] * 2 * len(others) + list(others))


def rarely(times: int) -> st.SearchStrategy[bool]:
    """True in one of so many draws."""
    return st.integers(1, times).map(lambda number: number == times)


@st.composite
def teams(draw: Draw) -> Plan:
    """A team of two to seven tasks; edges point to earlier tasks, but for a rare cycle."""
    names = [f"t{number}" for number in range(draw(st.integers(2, 7)))]
    budgets = draw(st.sets(st.sampled_from(["tokens", "cost_micros"])))
    specs = [draw(specs_of(name, names[:number], budgets)) for number, name in enumerate(names)]
    if draw(rarely(20)) and not specs[0]["for_each"]:
        specs[0]["requires"] = [names[-1]]
    if not any(spec["required"] for spec in specs):
        specs[-1]["required"] = 1
    return plan(
        *specs,
        roles=ROLES,
        limits=draw(limits(budgets)),
        rules=draw(
            st.lists(stop_rules(names), max_size=draw(mostly(0, 1, 2)), unique_by=lambda rule: rule["name"])
        ),
        on_required_failure=draw(mostly("stop", "drain")),
        on_completion=draw(mostly("stop", "drain")),
        on_limit=draw(mostly("stop", "pause")),
    )


@st.composite
def specs_of(draw: Draw, name: str, earlier: list[str], budgets: set[str]) -> Spec:
    """One task with requirements among the earlier ones."""
    some = st.lists(st.sampled_from(earlier), unique=True, max_size=2) if earlier else st.just([])
    kind = draw(st.sampled_from(["worker"] * 7 + ["external"] * 2 + ["for_each"]))
    fields: Spec = {
        "requires": draw(some),
        "after": draw(some) if draw(rarely(4)) else [],
        "any_of": draw(some) if draw(rarely(4)) else [],
        "required": draw(mostly(1, 0)),
        "priority": draw(mostly(0, 1, -1)),
        "skipped_ok": draw(mostly(0, 1)),
    }
    if fields["any_of"]:
        fields["any_count"] = draw(st.integers(1, len(fields["any_of"])))
    if draw(rarely(8)):
        fields["when"] = draw(when_rules(fields["requires"]))
    if kind == "external":
        fields |= {"external": 1}
    else:
        role, right = draw(mostly(("clerk", "work"), ("editor", "polish")))
        right = "work" if draw(rarely(16)) else right
        fields |= {"role": role, "capability": right}
    if kind == "for_each":
        fields |= {
            "for_each": 1,
            "max_parallel": draw(st.integers(1, 3)),
            "min_success": draw(mostly(-1, 1, 2)),
        }
    fields |= draw(attempts(kind))
    for amount in budgets:
        fields[amount] = draw(st.sampled_from([0, 10, 10, 30]))
    return task(name, **fields)


@st.composite
def attempts(draw: Draw, kind: str) -> Spec:
    """Attempts, times and keys."""
    if kind == "for_each":
        return {}
    fields = {
        "key": draw(mostly("", "k1", "k2")),
        "timeout_ms": draw(mostly(3_600_000, 50_000)),
        "queue_timeout_ms": 20_000 if draw(rarely(6)) else 0,
    }
    if kind == "worker":
        fields |= {
            "max_attempts": draw(st.integers(1, 3)),
            "backoff_ms": draw(mostly(1_000, 0, 40_000)),
            "backoff_max_ms": draw(st.sampled_from([1_500, 300_000])),
            "heartbeat_ms": draw(mostly(30_000, 5_000)),
            "progress_timeout_ms": 15_000 if draw(rarely(6)) else 0,
            "retry_invalid": draw(mostly(0, 1)),
        }
    return fields


@st.composite
def limits(draw: Draw, budgets: set[str]) -> dict[str, int]:
    """Few limits at a time, so that runs live long enough to show something."""
    found: dict[str, int] = {name: draw(st.sampled_from([30, 60, 100])) for name in sorted(budgets)}
    choices = {
        "step_budget": st.integers(2, 9),
        "max_steps": st.integers(4, 16),
        "deadline_ms": st.sampled_from([30_000, 120_000]),
        "no_progress_ms": st.sampled_from([20_000, 70_000]),
        "no_progress_steps": st.integers(3, 8),
    }
    for name in draw(st.lists(st.sampled_from(sorted(choices)), max_size=draw(mostly(0, 1, 2)), unique=True)):
        found[name] = draw(choices[name])
    return found


def when_rules(requires: list[str]) -> st.SearchStrategy[Any]:
    """Rules for `when`: constants, facts of results, states of requirements."""
    facts = st.sampled_from([["const", 1], ["const", 0], ["fact", "f1"], ["not", ["fact", "f2"]]])
    if not requires:
        return facts
    states = st.sampled_from(requires).map(lambda name: ["state", name, "succeeded"])
    return st.one_of(facts, states, st.just(["succeeded", -1, requires]))


def stop_rules(names: list[str]) -> st.SearchStrategy[Spec]:
    """Rules for `stop_when`."""
    fact = st.one_of(
        st.sampled_from(["attempts_started", "reports_accepted"]).flatmap(
            lambda name: st.integers(4, 9).map(lambda n: ["ge", name, n])
        ),
        st.sampled_from(
            [
                ["ge", "tokens", 40],
                ["ge", "cost", 40],
                ["ge", "elapsed", 60_000],
                ["ge", "idle", 45_000],
                ["role", "editor"],
                ["fact", "f2"],
            ]
        ),
        st.sampled_from(SIGNALS).map(lambda name: ["signal", name]),
        st.sampled_from(names).map(lambda name: ["state", name, "failed"]),
        st.integers(1, 4).map(lambda n: ["succeeded", n, []]),
        st.just(["succeeded", -1, names[:2]]),
    )
    rule = st.one_of(
        st.tuples(st.just("all"), fact, fact).map(list),
        st.tuples(st.just("any"), fact, st.just(["const", 0])).map(list),
        st.tuples(st.just("all"), fact, fact.map(lambda part: ["not", part])).map(list),
    )
    ends = st.sampled_from(["stopped", "completed", "failed", "paused"])
    return st.builds(
        lambda name, end, rule: {"name": name, "ends": end, "rule": rule}, st.sampled_from("ab"), ends, rule
    )
