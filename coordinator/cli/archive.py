"""Owns the folder `.crewline/RUN` in which `crewline run` keeps a run: report, logs, and what is needed to go
on.

Must not know how a run works. The folder is private to its user, and tells git to leave it alone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from coordinator.cli.options import ARTIFACTS_VARIABLE
from coordinator.run_report import RunReport, canonical_bytes, render_markdown
from coordinator.wire.errors import InputFault

HOME = Path(".crewline")


@dataclass(frozen=True, slots=True)
class Setting:
    """How a run was started; enough to start its parts again. redis: empty when its Redis was embedded."""

    run: str
    team: str
    roles: tuple[str, ...]
    handlers: str
    redis: str
    namespace: str
    mode: str
    concurrency: int


class Archive:
    """The folder of one run."""

    def __init__(self, run: str, home: Path = HOME) -> None:
        """Names the folder; makes nothing."""
        self.path = home / run
        self.logs = self.path / "logs"
        self.redis = self.path / "redis"

    @property
    def artifacts(self) -> str:
        """Where handlers keep artifacts: as the environment says, else in this folder."""
        return os.environ.get(ARTIFACTS_VARIABLE) or str(self.path.absolute() / "artifacts")

    @property
    def report(self) -> Path:
        """The JSON report."""
        return self.path / "report.json"

    def create(self) -> None:
        """Makes the folder. Raises InputFault when that cannot be done."""
        try:
            self.logs.mkdir(parents=True, exist_ok=True, mode=0o700)
            ignore = self.path.parent / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
        except OSError as error:
            raise InputFault(f"{self.path}: cannot be made: {error.strerror}") from None

    def keep_setting(self, setting: Setting) -> None:
        """Writes down how the run was started."""
        (self.path / "run.json").write_text(json.dumps(asdict(setting), indent=2) + "\n")

    def keep_report(self, report: RunReport) -> None:
        """Writes the report, as JSON and as Markdown."""
        self.report.write_bytes(canonical_bytes(report))
        (self.path / "report.md").write_text(render_markdown(report))

    @contextmanager
    def at(self, url: str) -> Iterator[None]:
        """Writes down where the run's Redis is for as long as it plays, for commands in other terminals."""
        file = self.path / "address"
        file.touch(mode=0o600)
        file.write_text(url)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)

    def address(self) -> str:
        """Where the run's Redis is, or was when its processes were killed; empty when nobody left an address."""
        try:
            return (self.path / "address").read_text()
        except OSError:
            return ""

    def drop_redis(self) -> None:
        """Throws Redis' data away: the run has ended, and everything worth keeping stands in the report."""
        shutil.rmtree(self.redis, ignore_errors=True)

    def setting(self) -> Setting:
        """Reads back how the run was started. Raises InputFault when this is no folder of a run."""
        try:
            fields: Mapping[str, Any] = json.loads((self.path / "run.json").read_text())
            return Setting(**{**fields, "roles": tuple(fields["roles"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputFault(f"{self.path}: there is no run that can be gone on with ({error})") from None


def find_archive(text: str, home: Path = HOME) -> Archive:
    """The folder that `text` means: its path, a run id, a unique prefix of one, or - for the latest."""
    if "/" in text and Path(text, "run.json").is_file():
        folder = Path(text)
        return Archive(folder.name, folder.parent)
    runs = sorted(path.parent for path in home.glob("*/run.json"))
    if text == "-":
        matching = sorted(runs, key=lambda path: (path / "run.json").stat().st_mtime)[-1:]
    else:
        matching = [path for path in runs if path.name == text] or [
            p for p in runs if p.name.startswith(text)
        ]
    if len(matching) != 1:
        some = ": " + ", ".join(path.name for path in matching[:5]) if matching else ""
        raise InputFault(f"{text}: {'several runs begin so' if matching else f'no such run in {home}'}{some}")
    return Archive(matching[0].name, home)
