"""Virtual time."""

from coordinator.simulation.clock import EPOCH_MS, Agenda, VirtualClock


def test_the_clock_starts_at_one_instant_and_never_goes_back() -> None:
    clock = VirtualClock()
    clock.advance_to(EPOCH_MS + 5)
    clock.advance_to(EPOCH_MS + 3)
    assert clock() == clock.now == EPOCH_MS + 5


def test_happenings_come_by_time_then_as_they_were_planned() -> None:
    agenda, seen = Agenda(), []
    for at, name in ((2, "c"), (1, "a"), (1, "b"), (9, "later")):
        agenda.add(at, name, "someone", lambda said=name: seen.append(said))
    while happening := agenda.take_due(2):
        happening.act()
    assert seen == ["a", "b", "c"]
    assert agenda.next_at() == 9
    assert not agenda.is_due(8)


def test_all_of_one_owner_can_be_dropped_and_one_be_taken_early() -> None:
    agenda = Agenda()
    for at in (3, 1, 2):
        agenda.add(at, f"at {at}", "w1" if at < 3 else "w2", lambda: None)
    assert [happening.label for happening in agenda.entries()] == ["at 1", "at 2", "at 3"]
    agenda.take(agenda.entries()[2])
    agenda.drop("w1")
    assert agenda.next_at() is None and agenda.entries() == []
