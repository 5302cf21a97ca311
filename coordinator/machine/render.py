"""Owns what is generated from transitions.py: `lua/rules/table.lua` and the marked parts of README.md.

Must not be imported by anything that runs in production but the library, which joins the same text.
`python -m coordinator.machine.render` writes the files, `--check` fails when they are not up to date, `--walk` prints
table, stop order and key map for reading.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from coordinator.machine.keys import RUN_KEYS, SHARED_KEYS
from coordinator.machine.transitions import TABLE

HERE = Path(__file__).parent


def lua_table() -> str:
    """The table as Lua literals (a loading library has no loops over names, DESIGN 2)."""
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for row in TABLE:
        for source in row.sources:
            rows.setdefault(row.cause, {}).setdefault(source.value, {})[row.target.value] = row.event
    lines = ["-- Generated from transitions.py by `make generate`. Do not edit.", "", "Table.rows = {"]
    for cause, sources in rows.items():
        lines.append(f"  {cause} = {{")
        for state, targets in sources.items():
            moves = ", ".join(f'{target} = "{event}"' for target, event in targets.items())
            lines.append(f"    {state} = {{ {moves} }},")
        lines.append("  },")
    return "\n".join([*lines, "}", ""])


def diagram() -> str:
    """The table as a Mermaid state diagram."""
    arrows = dict.fromkeys(
        f"    {source} --> {row.target}: {row.cause}" for row in TABLE for source in row.sources
    )
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> pending", *arrows, "```"])


def stop_order() -> list[str]:
    """The reasons of lua/rules/stop_order.lua, in the order in which a run is judged."""
    text = (HERE / "lua" / "rules" / "stop_order.lua").read_text()
    return re.findall(r'\{ reason = "(\w+)"', text)


def key_map() -> str:
    """Every state key, one line each."""
    lines = ["| key | what |", "| --- | --- |"]
    lines += [f"| `ns:{kind}:RUN…` | {what} |" for kind, what in RUN_KEYS.items()]
    lines += [f"| `ns:{kind}…` | {what} |" for kind, what in SHARED_KEYS.items()]
    return "\n".join(lines)


def readme(text: str) -> str:
    """README.md with its marked parts made anew."""
    for name, body in (("diagram", diagram()), ("keys", key_map())):
        begin, end = f"<!-- {name}: generated -->", f"<!-- end of {name} -->"
        head, _, rest = text.partition(begin)
        _, _, tail = rest.partition(end)
        text = f"{head}{begin}\n{body}\n{end}{tail}"
    return text


def walk() -> str:
    """The table, the stop order and the key map as plain text."""
    moves = [f"  {row.cause:16} {' | '.join(row.sources):40} -> {row.target:12} {row.event}" for row in TABLE]
    reasons = [f"  {number}. {reason}" for number, reason in enumerate(stop_order(), 1)]
    rest = "  then, when nothing moves any more: needs_review, failed, paused, deadlock"
    keys = [f"  ns:{kind:16} {what}" for kind, what in (RUN_KEYS | SHARED_KEYS).items()]
    return "\n".join(["Moves of a task:", *moves, "", "Stop order:", *reasons, rest, "", "Keys:", *keys])


def main(check: bool) -> int:
    """Writes the generated files, or compares them. Gives the exit code."""
    page = HERE / "README.md"
    wanted = {HERE / "lua" / "rules" / "table.lua": lua_table(), page: readme(page.read_text())}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(HERE)} is not up to date: run `make generate`", file=sys.stderr)
        else:
            path.write_text(wanted[path])
    return 1 if check and stale else 0


if __name__ == "__main__":
    if "--walk" in sys.argv[1:]:
        print(walk())
        sys.exit(0)
    sys.exit(main("--check" in sys.argv[1:]))
