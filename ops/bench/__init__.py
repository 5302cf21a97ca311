"""Owns the benchmark: Crewline beside its peers on one Redis server. Must not be imported by the product."""
