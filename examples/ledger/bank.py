"""A bank whose ledger is a file: one line for each charge, written through to the disk, never changed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


class Bank:
    """Takes charges. It does not refuse a reference that it knows: who charges twice has charged twice."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    def charge(self, reference: str, account: str, cents: int) -> dict[str, Any]:
        """Writes the charge down; gives the receipt."""
        with self._opened() as file:
            number = len(file.readlines()) + 1
            receipt = {"number": number, "reference": reference, "account": account, "cents": cents}
            file.write(json.dumps(receipt) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return receipt

    def find(self, reference: str) -> dict[str, Any] | None:
        """The receipt of a charge, None if there was none."""
        return next((entry for entry in self.entries() if entry["reference"] == reference), None)

    def entries(self) -> list[dict[str, Any]]:
        """All charges, in their order."""
        with self._opened() as file:
            return [json.loads(line) for line in file]

    @contextmanager
    def _opened(self) -> Iterator[IO[str]]:
        with self._ledger.open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            yield file
