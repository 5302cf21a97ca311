"""Owns how the values of a file are put together from what a reader meets, and where each of them stands.

Works without recursion; a value that was anchored is shared, not copied. Must not know YAML or JSON syntax.
"""

from __future__ import annotations

from typing import Any, NoReturn

from coordinator.team.faults import Path, shown
from coordinator.wire.digest import MAX_DEPTH

MAX_ALIASED = 1_000_000
"""How many values all aliases together may stand for: more is a YAML bomb."""

MERGE: Any = object()
"""The YAML merge key `<<`."""

_REFUSED: Any = object()


class Stop(Exception):
    """Reading cannot go on; the fault is written down."""


class Number(float):
    """A number with the text that stood in the file, so that money stays an exact decimal."""

    text: str

    @classmethod
    def read(cls, text: str) -> Number:
        """Reads a decimal."""
        number = cls(text)
        number.text = text
        return number


class _Frame:
    """A list or object that is being read. size, height: values and levels in it, aliases counted in full."""

    __slots__ = ("anchor", "height", "is_map", "key", "key_line", "line", "lines", "merges", "size", "value")

    def __init__(self, is_map: bool, line: int, anchor: str | None) -> None:
        self.is_map = is_map
        self.line = line
        self.anchor = anchor
        self.value: Any = {} if is_map else []
        self.lines: Any = {} if is_map else []
        self.key: Any = None
        self.key_line = 0
        self.merges: list[tuple[Any, int]] = []
        self.size = 1
        self.height = 1


class Builder:
    """Takes begin, key, scalar, alias and end in the order of the text."""

    def __init__(self) -> None:
        self.root: Any = None
        self.faults: list[tuple[Path, str, str, int]] = []
        self.refused: set[Path] = set()
        """Where a value was refused and null stands in its place."""
        self._frames: list[_Frame] = []
        self._root_line = 1
        self._lines: dict[int, tuple[Any, Any]] = {}
        """By identity of a list or object: itself (so that no other gets its identity), and the lines in it."""
        self._anchors: dict[str, tuple[Any, int, int] | None] = {}
        """Value, size and height; None while the anchored value is still being read."""
        self._aliased = 0

    # -- what the readers say -------------------------------------------------------------------------------------

    def wants_key(self) -> bool:
        """Whether the next thing is the key of an object."""
        return bool(self._frames) and self._frames[-1].is_map and self._frames[-1].key is None

    def begin(self, is_map: bool, line: int, anchor: str | None = None) -> None:
        """A list or object begins."""
        if len(self._frames) >= MAX_DEPTH:
            self.stop(f"nesting of at most {MAX_DEPTH}", "a deeper one", line)
        if self.wants_key():
            self.stop("a key that is text", "an object" if is_map else "a list", line)
        if anchor:
            self._anchors[anchor] = None
        self._frames.append(_Frame(is_map, line, anchor))

    def key(self, key: Any, line: int) -> None:
        """A key of the current object: text or MERGE; anything else is a fault and its value is left out."""
        frame = self._frames[-1]
        frame.key_line = line
        if key is MERGE:
            frame.key = MERGE
        elif not isinstance(key, str):
            self._fault((*self._path(), str(shown(key))), "a key that is text", f"the key {shown(key)}", line)
            frame.key = _REFUSED
        elif key in frame.lines:
            self._fault(
                (*self._path(), key), "each key once", f"it again (first on line {frame.lines[key]})", line
            )
            frame.key = _REFUSED
        else:
            self._check_text(key, line)
            frame.key = key

    def scalar(self, value: Any, line: int, anchor: str | None = None) -> None:
        """A value that holds no others, or, where a key is due, a key."""
        if anchor:
            self._anchors[anchor] = (value, 1, 0)
        if self.wants_key():
            self.key(value, line)
            return
        if isinstance(value, str):
            self._check_text(value, line)
        self._attach(value, line, 1, 0)

    def alias(self, anchor: str, line: int) -> None:
        """The value of an anchor stands here again."""
        known = self._anchors.get(anchor, _REFUSED)
        if known is _REFUSED:
            self.stop("a known anchor", f"*{anchor}", line)
        if known is None:
            self.stop("a value that does not hold itself", f"*{anchor}", line)
        value, size, height = known
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            self.stop(f"aliases for at most {MAX_ALIASED} values", "more", line)
        if len(self._frames) + height > MAX_DEPTH:
            self.stop(f"nesting of at most {MAX_DEPTH}", "a deeper one", line)
        if self.wants_key():
            self.key(value, line)
        else:
            self._attach(value, line, size, height)

    def end(self) -> None:
        """The current list or object ends."""
        frame = self._frames.pop()
        if frame.merges:
            self._merge(frame)
        self._lines[id(frame.value)] = frame.value, frame.lines
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size, frame.height)
        self._attach(frame.value, frame.line, frame.size, frame.height)

    def refuse(self, expected: str, found: str, line: int) -> Any:
        """A fault in the value that stands here; reading goes on, with null in its place."""
        self.refused.add(self._path())
        self._fault(self._path(), expected, found, line)

    def stop(self, expected: str, found: str, line: int) -> NoReturn:
        """A fault after which nothing can be read."""
        self._fault(self._path(), expected, found, line)
        raise Stop

    # -- lines ------------------------------------------------------------------------------------------------------

    def line(self, path: Path) -> int:
        """The line of what stands at a path, or of the nearest thing around it that is there."""
        value: Any = self.root
        line: int = self._root_line
        for part in path:
            _, lines = self._lines.get(id(value), (None, {}))
            if part in (lines if isinstance(lines, dict) else range(len(lines))):
                line = int(lines[part])
            else:
                return line
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
        return line

    # -- inside -----------------------------------------------------------------------------------------------------

    def _attach(self, value: Any, line: int, size: int, height: int) -> None:
        if not self._frames:
            self.root, self._root_line = value, line
            return
        frame = self._frames[-1]
        frame.size += size
        frame.height = max(frame.height, height + 1)
        if not frame.is_map:
            frame.value.append(value)
            frame.lines.append(line)
            return
        key, frame.key = frame.key, None
        if key is MERGE:
            frame.merges.append((value, line))
        elif key is not _REFUSED:
            frame.value[key] = value
            frame.lines[key] = frame.key_line

    def _merge(self, frame: _Frame) -> None:
        """Puts merged keys behind the object's own, which win; of several merged objects the first wins."""
        for merged, line in frame.merges:
            for part in merged if isinstance(merged, list) else [merged]:
                if not isinstance(part, dict):
                    self._fault((*self._path(), "<<"), "an object, or a list of objects", shown(part), line)
                    continue
                _, lines = self._lines.get(id(part), (None, {}))
                for key, value in part.items():
                    if key not in frame.value:
                        frame.value[key] = value
                        frame.lines[key] = lines.get(key, line)

    def _path(self) -> Path:
        path: list[str | int] = []
        for frame in self._frames:
            if not frame.is_map:
                path.append(len(frame.value))
            elif isinstance(frame.key, str):
                path.append(frame.key)
        return tuple(path)

    def _check_text(self, text: str, line: int) -> None:
        if text.isascii():
            return
        try:
            text.encode()
        except UnicodeEncodeError:
            self.refuse("text without lone surrogates", "one", line)

    def _fault(self, path: Path, expected: str, found: str, line: int) -> None:
        self.faults.append((path, expected, found, line))
