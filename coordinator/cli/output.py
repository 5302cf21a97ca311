"""Owns where words go: data to the standard output (or a file), everything else to the standard error (SPEC
9).

Must not colour or shorten data. Texts that came from a team are cleaned of control characters before they are
shown.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coordinator.wire.errors import InputFault


def say(text: str) -> None:
    """Tells the user something that is no data."""
    print(text, file=sys.stderr, flush=True)


def emit(data: str | bytes, output: Path | None = None) -> None:
    """Gives data: to `output`, or to the standard output. Raises InputFault when the file cannot be
    written.
    """
    raw = data.encode() if isinstance(data, str) else data
    if not raw.endswith(b"\n"):
        raw += b"\n"
    if output is not None:
        try:
            output.write_bytes(raw)
        except OSError as error:
            raise InputFault(f"{output}: cannot be written: {error.strerror}") from None
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()


def emit_json(value: Any, output: Path | None = None) -> None:
    """Gives one JSON value, indented."""
    emit(json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True), output)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table: columns padded to the widest cell, two spaces between, nothing at the ends of lines."""
    widths = [max(len(row[n]) for row in (header, *rows)) for n in range(len(header))]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in (header, *rows))
    return "\n".join(line.rstrip() for line in lines) + "\n"
