"""Rules as data: `syntax.py` reads them, `patterns.py` matches text, `facts.py` numbers what they ask of results."""

from coordinator.team.rules.facts import Fact, compile_rule, facts_for, number_facts, thresholds

__all__ = ["Fact", "compile_rule", "facts_for", "number_facts", "thresholds"]
