"""Owns where the Python files of a checkout are: its root, its packages and what is left out.

Must not open a Python file. A package here is a folder with Python files of its own, whether or not it has an
`__init__.py`; a checkout with more folders than MAX_PACKAGES is folded from its deepest folders upwards.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

MAX_PACKAGES = 400
LEFT_OUT = frozenset(
    {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "__pypackages__"}
)


class CheckoutQuery(BaseModel):
    path: str


class Package(BaseModel):
    """A folder of the checkout (`.` is its root) and its Python files, relative to the root, in sorted order."""

    root: str
    name: str
    files: list[str]


class Checkout(BaseModel):
    root: str
    packages: list[Package]


def root_of(path: str) -> Path:
    """The checkout at `path`, which may be relative to the folder that the worker was started in.

    Raises NotADirectoryError with the absolute path when there is none.
    """
    root = Path(path).expanduser().resolve()
    if not root.is_dir():
        raise NotADirectoryError(str(root))
    return root


def survey(path: str) -> Checkout:
    """The packages of the checkout at `path`, by name."""
    root = root_of(path)
    folders: dict[str, list[str]] = {}
    for file in python_files(root):
        folders.setdefault(_folder_of(file), []).append(file)
    _fold(folders)
    packages = [Package(root=str(root), name=name, files=sorted(folders[name])) for name in sorted(folders)]
    return Checkout(root=str(root), packages=packages)


def python_files(root: Path) -> list[str]:
    """Every `.py` file below `root`, relative to it; hidden folders, environments and build output are left out."""
    found: list[str] = []
    for folder, subfolders, files in os.walk(root):
        here = Path(folder)
        subfolders[:] = sorted(name for name in subfolders if not _left_out(here / name))
        found += [(here / name).relative_to(root).as_posix() for name in files if name.endswith(".py")]
    return sorted(found)


def read(package: Package) -> list[tuple[str, bytes]]:
    """Name and bytes of each file of the package that can still be read."""
    texts = []
    for name in package.files:
        try:
            texts.append((name, (Path(package.root) / name).read_bytes()))
        except OSError:
            continue  # gone since the survey, or a dangling link: the survey's count still tells of it
    return texts


def _folder_of(name: str) -> str:
    return PurePosixPath(name).parent.as_posix()


def _left_out(folder: Path) -> bool:
    name = folder.name
    return (
        name.startswith(".")
        or name.endswith(".egg-info")
        or name in LEFT_OUT
        or (folder / "pyvenv.cfg").exists()
    )


def _fold(folders: dict[str, list[str]]) -> None:
    """Moves files of the deepest folders into their parents until few enough folders are left."""
    while len(folders) > MAX_PACKAGES:
        depth = max(name.count("/") for name in folders if name != ".")
        for name in sorted(name for name in folders if name != "." and name.count("/") == depth):
            folders.setdefault(_folder_of(name), []).extend(folders.pop(name))
