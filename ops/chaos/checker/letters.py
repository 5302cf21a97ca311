"""Owns what Redis' own journal must show of every inbox entry: taken out exactly once, and recorded in the same breath.

A report of an end gets exactly one verdict: accepted, duplicate, conflict, late, refused, or the word that settles a
cancel. Must not know what the verdict ought to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ops.chaos.checker.evidence import Evidence, Violation
from ops.chaos.checker.journal import Applied, Letter

NOT_APPLIED = ("duplicate_result_ignored", "result_conflict_detected", "late_ignored", "refused")
SETTLED = ("cancel_confirmed", "cancel_completed_anyway")
ENDS = frozenset({"end", "report"})
"""Kinds that must get a verdict of their own."""
UNRECORDED = frozenset({"submit", "cancel"})
"""Kinds that change nothing when they come again: the run, or the operator's request, is there already. A question that
is asked again (a grant that was lost on its way) changes nothing either, and is answered again."""


def check_letters(evidence: Evidence) -> Iterable[Violation]:
    """Every entry that was ever stored."""
    for letter in evidence.letters:
        yield from _check(letter)


def _check(letter: Letter) -> Iterator[Violation]:
    run, kind = letter.said.get("run", ""), letter.said.get("kind", "")
    where = (
        f"{kind} of {letter.said.get('task', '')!r} attempt {letter.said.get('attempt', '')} ({letter.entry})"
    )
    if len(letter.applied) != 1:
        how = "was never applied" if not letter.applied else f"was applied {len(letter.applied)} times"
        yield Violation(
            "report lost" if not letter.applied else "report applied twice", run, f"{where} {how}"
        )
        return
    [applied] = letter.applied
    if not any(place == "ledger" or place.startswith("commands:") for place in applied.recorded):
        asked_again = any(place.startswith("reply:") for place in applied.recorded)
        if kind not in UNRECORDED and not asked_again:
            yield Violation("report lost", run, f"{where} was taken out and nothing was recorded")
    elif kind in ENDS and "ledger" not in applied.recorded:
        found = verdicts(letter, applied)
        if len(found) != 1:
            yield Violation("no single verdict", run, f"{where}: {found or 'none'}")


def verdicts(letter: Letter, applied: Applied) -> list[str]:
    """What was said of the report: one word, if all is well."""
    task = letter.said.get("task", "")
    kinds = [kind for kind, of in applied.verdicts if of == task]
    found = [kind for kind in kinds if kind in NOT_APPLIED]
    if found:
        return found
    if any(kind in SETTLED for kind in kinds):
        return ["settled a cancel"]
    return ["accepted"] if kinds else []


def tally(evidence: Evidence) -> Counter[str]:
    """Reports of ends by verdict, and all other entries."""
    count: Counter[str] = Counter()
    for letter in evidence.letters:
        kind = letter.said.get("kind", "")
        if kind not in ENDS:
            count["other entries"] += 1
            continue
        for applied in letter.applied:
            for verdict in verdicts(letter, applied):
                count[f"reports: {verdict}"] += 1
    return count
