"""Chaos: many small runs on real processes and a real Redis, seeded faults, and a checker of what is left."""
