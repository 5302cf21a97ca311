"""Owns the job of the RQ workers. Must not do anything."""


def noop() -> None:
    """Does nothing."""
