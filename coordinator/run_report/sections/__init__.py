"""Owns the parts of the report that are gathered from several records: tasks, ledgers, what is paused. Pure."""
