"""Owns where each import of a package leads: standard library, the checkout itself, a distribution, or nowhere.

Must not import anything of the checkout: files and installed metadata are enough. `optional` marks an import that
the code itself is prepared to miss (inside `try` with ImportError, or under TYPE_CHECKING).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path

from pydantic import BaseModel

from repo_audit.checkout import Package, python_files, read
from repo_audit.declared import dependencies, normalise
from repo_audit.syntax import parse


class Loose(BaseModel):
    """An import that leads to nothing declared, or to nothing at all."""

    file: str
    line: int
    module: str
    kind: str
    """`undeclared`: installed here, not declared; `unresolved`: neither here nor declared."""
    optional: bool


class Imports(BaseModel):
    package: str
    standard: list[str]
    local: list[str]
    distributions: list[str]
    loose: list[Loose]


class _Found(BaseModel):
    module: str
    line: int
    level: int
    optional: bool


def check(package: Package) -> Imports:
    """Resolves each import of the package's files; files that cannot be parsed are left to the syntax check."""
    root = Path(package.root)
    found = Imports(package=package.name, standard=[], local=[], distributions=[], loose=[])
    standard, local, distributions = set[str](), set[str](), set[str]()
    for name, source in read(package):
        try:
            tree = parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for item in _imports(tree.body, optional=False):
            top = item.module.split(".")[0]
            if item.level:
                if not _relative_exists(root / name, item):
                    module = "." * item.level + item.module
                    found.loose.append(_loose(name, item, module, "unresolved"))
            elif top in sys.stdlib_module_names or top == "__main__":
                standard.add(top)
            elif top in local_modules(str(root)):
                local.add(top)
            elif distribution := _declared(root, top):
                distributions.add(distribution)
            else:
                kind = "undeclared" if top in _installed() else "unresolved"
                found.loose.append(_loose(name, item, item.module, kind))
    found.standard, found.local, found.distributions = sorted(standard), sorted(local), sorted(distributions)
    return found


@lru_cache(maxsize=4)
def local_modules(root: str) -> frozenset[str]:
    """Names that an import inside the checkout can begin with: every folder and module that holds Python files.

    Wider than any one `sys.path`, since tests, scripts and `src` each have their own.
    """
    names = set[str]()
    for file in python_files(Path(root)):
        *folders, module = file.removesuffix(".py").split("/")
        names.update(folders)
        names.add(module)
    return frozenset(names - {"__init__", "__main__", "conftest"} | {"conftest"})


@lru_cache(maxsize=1)
def _installed() -> dict[str, list[str]]:
    return {top: [normalise(name) for name in names] for top, names in packages_distributions().items()}


@lru_cache(maxsize=4)
def _dependencies(root: str) -> frozenset[str]:
    return frozenset(dependencies(Path(root)))


def _declared(root: Path, top: str) -> str | None:
    """The declared distribution that provides the module: by installed metadata, else by its own name."""
    declared = _dependencies(str(root))
    for name in [*_installed().get(top, []), normalise(top)]:
        if name in declared:
            return name
    return None


def _imports(body: list[ast.stmt], *, optional: bool) -> Iterator[_Found]:
    """Imports of statements and of all that they hold, functions included, in the order of the file."""
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _Found(module=alias.name, line=node.lineno, level=0, optional=optional)
        elif isinstance(node, ast.ImportFrom):
            yield _Found(module=node.module or "", line=node.lineno, level=node.level, optional=optional)
        else:
            prepared = optional or _prepared(node)
            for block in ("body", "orelse", "finalbody"):
                yield from _imports(getattr(node, block, []), optional=prepared)
            for branch in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
                yield from _imports(branch.body, optional=prepared)


def _prepared(node: ast.stmt) -> bool:
    if isinstance(node, ast.Try | ast.TryStar):
        caught = {
            name.id
            for each in node.handlers
            for name in ast.walk(each.type or node)
            if isinstance(name, ast.Name)
        }
        return bool(caught & {"ImportError", "ModuleNotFoundError", "Exception"})
    if isinstance(node, ast.If):
        return any("TYPE_CHECKING" in ast.unparse(part) for part in [node.test])
    return False


def _relative_exists(file: Path, item: _Found) -> bool:
    folder = file.parent
    for _ in range(item.level - 1):
        folder = folder.parent
    if not item.module:
        return folder.is_dir()
    target = folder.joinpath(*item.module.split("."))
    return target.is_dir() or any(target.parent.glob(f"{target.name}.*"))


def _loose(file: str, item: _Found, module: str, kind: str) -> Loose:
    return Loose(file=file, line=item.line, module=module, kind=kind, optional=item.optional)
