"""Owns the licences of declared dependencies, as their installed metadata states them.

Must not ask the network or guess: what is not installed where the worker runs is said to be so.
"""

from __future__ import annotations

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from pydantic import BaseModel

from repo_audit.declared import dependencies

NOT_INSTALLED = "not installed"
NOT_STATED = "not stated"
LICENCE_LIMIT = 80


class Dependency(BaseModel):
    name: str
    declared_in: str
    version: str
    licence: str


class Licences(BaseModel):
    dependencies: list[Dependency]
    not_installed: list[str]
    not_stated: list[str]


def read(root: Path) -> Licences:
    """Licence and version of each dependency that the checkout at `root` declares, by name."""
    found = [_read(name, place) for name, place in sorted(dependencies(root).items())]
    return Licences(
        dependencies=found,
        not_installed=[item.name for item in found if item.licence == NOT_INSTALLED],
        not_stated=[item.name for item in found if item.licence == NOT_STATED],
    )


def _read(name: str, place: str) -> Dependency:
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return Dependency(name=name, declared_in=place, version="", licence=NOT_INSTALLED)
    return Dependency(name=name, declared_in=place, version=installed.version, licence=_licence(installed))


def _licence(installed: Distribution) -> str:
    """SPDX expression, else the classifiers, else the first line of the free text."""
    metadata = installed.metadata
    if expression := metadata.get_all("License-Expression"):
        return str(expression[0])
    classifiers = metadata.get_all("Classifier") or []
    named = [
        line.rsplit(" :: ", 1)[1] for line in classifiers if line.startswith("License ::") and " :: " in line
    ]
    if named := [name for name in named if name not in ("OSI Approved", "DFSG approved")]:
        return ", ".join(named)
    text = str((metadata.get_all("License") or [""])[0]).strip()
    return text.splitlines()[0][:LICENCE_LIMIT] if text and text != "UNKNOWN" else NOT_STATED
