"""Owns `crewline thread render`: exported conversations as files that a person can read (SPEC 8).

Must not attribute or render: `coordinator.agent_threads` does; here files are read and written, and what was
interrupted is logged. Needs neither Redis nor a network.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NoReturn

import structlog
import typer

from coordinator.agent_threads.incremental import Freshness, Listed, freshness
from coordinator.agent_threads.model import InvalidThread
from coordinator.agent_threads.outline import interruptions, outline, thread_document, warnings
from coordinator.agent_threads.reading import is_thread, last_updated, read_thread, thread_id
from coordinator.agent_threads.render import render_thread
from coordinator.cli.logs import configure_logs
from coordinator.cli.options import AsJson
from coordinator.cli.output import emit_json, say
from coordinator.run_report.wording import clean
from coordinator.wire.errors import InputFault

CONVERSATION = "conversation.md"
THREAD = "thread.json"
LONGEST_NAME = 80

Sources = Annotated[
    list[Path],
    typer.Argument(
        metavar="THREAD.json...",
        help="Exported threads: a file, a list of threads, or a folder of such files.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Where conversation.md and thread.json go."),
]
InPlace = Annotated[
    bool,
    typer.Option(
        "--thread-json", help="Render what was rendered before anew, from its own thread.json, offline."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Also threads whose lastUpdated is unchanged.")]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Export:
    """A thread that was asked for. `document` is None while only a list has told of it; then `file` holds it."""

    listed: Listed
    file: Path
    document: Mapping[str, Any] | None
    in_list: bool = False


def register(app: typer.Typer) -> None:
    """Adds the commands of this file."""
    family = typer.Typer(no_args_is_help=True, help="Exported conversations of agents.")
    family.command("render")(_render)
    family.callback()(_family)
    app.add_typer(family, name="thread")


def _family() -> None:
    """Exported conversations of agents."""


def _render(
    sources: Sources,
    out: Out = None,
    thread_json: InPlace = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Renders exported threads to conversation.md and thread.json; those that have not changed are left alone."""
    configure_logs()
    if thread_json:
        if out is not None:
            raise InputFault("--thread-json renders in place: leave --out away")
        told = [_render_one(_only(file), file.parent, Freshness.CHANGED) for file in _rendered_files(sources)]
    elif out is None:
        raise InputFault("where to? Give --out DIR")
    else:
        told = list(_render_all(sources, out, force))
    if json:
        emit_json(told)


def _render_all(sources: list[Path], out: Path, force: bool) -> Iterator[dict[str, Any]]:
    exports = [export for source in sources for export in _exports(source)]
    several = len(exports) != 1 or sources[0].is_dir() or exports[0].in_list
    folders: dict[Path, Path] = {}
    for export in exports:
        folder = out / _folder_name(export.listed.id) if several else out
        if folder in folders:
            raise InputFault(f"{export.file}: the thread {export.listed.id} also stands in {folders[folder]}")
        folders[folder] = export.file
    for export, folder in zip(exports, folders, strict=True):
        fresh = freshness(export.listed, _rendered_at(folder, export, force))
        if fresh is Freshness.UNCHANGED and not force:
            say(f"unchanged {folder}")
            yield {"thread": export.listed.id, "folder": str(folder), "state": str(fresh)}
        else:
            yield _render_one(export, folder, fresh)


def _render_one(export: Export, folder: Path, fresh: Freshness) -> dict[str, Any]:
    document = export.document if export.document is not None else _fetch(export)
    try:
        found = outline(read_thread(document))
    except InvalidThread as error:
        raise InputFault(f"{export.file}: {error}") from None
    for warning in warnings(found):
        log.warning("work not completed", thread=found.thread.id, **warning)
    _write(folder / CONVERSATION, render_thread(found))
    _write(folder / THREAD, json.dumps(thread_document(found), ensure_ascii=False, indent=2) + "\n")
    listed = interruptions(found)
    say(f"rendered {folder}: {len(found.turns)} turns, {len(found.thread.children)} in the background")
    return {
        "thread": export.listed.id,
        "folder": str(folder),
        "state": str(fresh),
        "turns": len(found.turns),
        "background": len(found.thread.children),
        "interruptions": len(listed),
    }


def _rendered_at(folder: Path, export: Export, force: bool) -> dict[str, str]:
    """What the folder holds, as `freshness` asks. Raises InputFault when it holds another thread."""
    file = folder / THREAD
    if not file.is_file():
        return {}
    held = _only(file)
    name = thread_id(held.document or {})
    if name and name != export.listed.id and not force:
        raise InputFault(f"{folder}: holds the thread {clean(name)}; choose another --out, or say --force")
    return {export.listed.id: held.listed.last_updated if (folder / CONVERSATION).is_file() else ""}


def _rendered_files(sources: list[Path]) -> list[Path]:
    files = []
    for source in sources:
        found = sorted(source.rglob(THREAD)) if source.is_dir() else [source]
        if not found:
            raise InputFault(f"{source}: holds no {THREAD}")
        files += found
    return files


def _exports(source: Path) -> list[Export]:
    """The threads that a file or folder holds, or that a list tells of."""
    if source.is_dir():
        files = sorted(file for file in source.glob("*.json") if file.is_file())
        if not files:
            raise InputFault(f"{source}: holds no exported thread (*.json)")
        found = [export for file in files for export in _exports(file)]
        by_list = {export.file.resolve() for export in found if export.document is None}
        return [e for e in found if e.document is None or e.file.resolve() not in by_list]
    value = _load(source)
    if is_thread(value):
        return [_export(value, source)]
    entries = value.get("threads") if isinstance(value, Mapping) else value
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InputFault(
            f"{source}: expected an exported thread (an object with `entries`), or a list of threads"
        )
    return [_listed(entry, source) for entry in entries]


def _listed(entry: Mapping[str, Any], source: Path) -> Export:
    if is_thread(entry):
        return replace(_export(entry, source), in_list=True)
    name, path = thread_id(entry), entry.get("path")
    if not name or not isinstance(path, str):
        raise InputFault(f"{source}: expected threads, or objects with uuid, lastUpdated and path")
    return Export(Listed(name, last_updated(entry)), source.parent / path, None, in_list=True)


def _only(file: Path) -> Export:
    value = _load(file)
    if not is_thread(value):
        raise InputFault(f"{file}: expected an exported thread (an object with `entries`)")
    return _export(value, file)


def _export(document: Mapping[str, Any], file: Path) -> Export:
    return Export(Listed(thread_id(document) or file.stem, last_updated(document)), file, document)


def _fetch(export: Export) -> Mapping[str, Any]:
    """Reads a thread that a list told of; the list's `lastUpdated` stands in where it has none of its own."""
    document = dict(_only(export.file).document or {})
    if export.listed.last_updated and not last_updated(document):
        document["lastUpdated"] = export.listed.last_updated
    return document


def _load(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        return json.loads(text, parse_constant=_no_number, object_hook=_whole)
    except OSError as error:
        raise InputFault(f"{file}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise InputFault(f"{file}: nested too deeply") from None
    except ValueError as error:
        raise InputFault(f"{file}: not JSON: {error}") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


_HALF = re.compile("[\ud800-\udfff]")


def _whole(members: dict[str, Any]) -> dict[str, Any]:
    """Half of a surrogate pair, which exports cut inside a character hold, cannot be written: it becomes U+FFFD."""
    return {_HALF.sub("\ufffd", key): _without_halves(value) for key, value in members.items()}


def _without_halves(value: Any) -> Any:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    return [_without_halves(item) for item in value] if isinstance(value, list) else value


def _folder_name(name: str) -> str:
    """A thread's id as a folder's name; with a part of its digest when the two are not the same."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:LONGEST_NAME]
    return plain if plain == name else f"{plain or 'thread'}-{sha256(name.encode()).hexdigest()[:8]}"


def _write(file: Path, text: str) -> None:
    """Writes a file whole or not at all; one that holds the same already is not touched."""
    raw = text.encode()
    try:
        with suppress(FileNotFoundError):
            if file.read_bytes() == raw:
                return
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_name(f".{file.name}.{os.getpid()}")
        partial.write_bytes(raw)
        partial.replace(file)
    except OSError as error:
        raise InputFault(f"{clean(file)}: cannot be written: {error.strerror}") from None
