"""Owns what a checkout declares to depend on: names of distributions, from pyproject.toml or requirements.txt.

Must not resolve versions. Names are normalised as PyPI does it (PEP 503).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def normalise(name: str) -> str:
    """The one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def dependencies(root: Path) -> dict[str, str]:
    """Declared distribution -> where it is declared (`dependencies`, or the name of an extra or a file)."""
    found: dict[str, str] = {}
    project = _project(root)
    _add(found, project.get("dependencies", []), "dependencies")
    extras = project.get("optional-dependencies", {})
    for extra in sorted(extras):
        _add(found, extras[extra], f"extra {extra}")
    for file in sorted(root.glob("requirements*.txt")):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        _add(found, (line for line in lines if line.strip() and line.lstrip()[0] not in "#-"), file.name)
    found.pop(normalise(str(project.get("name", ""))), None)
    return found


def _project(root: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    project = document.get("project", {})
    return project if isinstance(project, dict) else {}


def _add(found: dict[str, str], requirements: Iterable[str], place: str) -> None:
    for requirement in requirements:
        if match := NAME.match(requirement):
            found.setdefault(normalise(match[1]), place)
