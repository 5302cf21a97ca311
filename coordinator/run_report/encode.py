"""Owns the bytes of a run report: the same report always gives the same ones (SPEC 10).

Must not look into the report, beyond keeping one task and one event on a line, which makes two reports
comparable with `diff` and keeps a report of 100,000 tasks quick to write. Values are spelled as in
`wire.digest`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.wire.digest import canonical, digest


def canonical_bytes(report: Mapping[str, Any]) -> bytes:
    """The report as UTF-8 JSON: keys sorted, one member of a collection a line, ended by a newline."""
    lines = [f"{canonical(name)}: {_member(report[name])}" for name in sorted(report)]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def content_digest(report: Mapping[str, Any]) -> str:
    """The digest (`wire.digest`, scheme json-sorted/1) of the report without its own `digest`."""
    return digest({name: value for name, value in report.items() if name != "digest"})


def _member(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(canonical(item) for item in value) + "\n]"
    if isinstance(value, dict) and value:
        return "{\n  " + ",\n  ".join(f"{canonical(k)}: {canonical(value[k])}" for k in sorted(value)) + "\n}"
    return canonical(value)
