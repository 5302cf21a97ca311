"""The second opinion on readiness and blocking that the exploration holds against the machine."""

from coordinator.simulation.exploration.graph_view import GraphView, Needs

VIEW = GraphView(
    {
        "join": Needs(requires=("a", "b")),
        "last": Needs(after=("a",)),
        "some": Needs(any_of=("a", "b", "c"), any_count=2),
        "lenient": Needs(requires=("a",), skipped_ok=True),
    }
)


def test_a_task_may_start_when_all_it_needs_is_there() -> None:
    states = {"a": "succeeded", "b": "running", "c": "succeeded"}
    assert list(VIEW.may_start("join", states)) == [("b", "requires")]
    assert list(VIEW.may_start("last", states)) == []
    assert list(VIEW.may_start("some", states)) == []
    assert list(VIEW.may_start("some", {"a": "succeeded"})) == [("a, b, c", "any_of")]
    assert list(VIEW.may_start("nothing", {})) == []


def test_skipped_counts_only_where_it_is_said() -> None:
    assert list(VIEW.may_start("lenient", {"a": "skipped"})) == []
    assert list(VIEW.may_start("join", {"a": "skipped", "b": "succeeded"})) == [("a", "requires")]


def test_what_can_no_longer_run_must_be_blocked() -> None:
    pending = dict.fromkeys(("join", "last", "some", "lenient"), "pending")
    assert [task for task, _ in VIEW.must_block({**pending, "a": "failed"})] == ["join", "lenient"]
    assert [task for task, _ in VIEW.must_block({**pending, "a": "failed", "b": "denied"})].count("some") == 1
    assert "lenient" not in [task for task, _ in VIEW.must_block({**pending, "a": "skipped"})]
    assert [task for task, _ in VIEW.must_block({**pending, "b": "needs_review"})] == ["join"]
    assert list(VIEW.must_block({**pending, "join": "blocked", "lenient": "running", "a": "failed"})) == []
