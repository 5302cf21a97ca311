"""Owns how a run's inputs are said on the command line: `k=text`, `k:=JSON`, or a file (SPEC 9).

Must not check them against the Team (`team` does) and must not guess types: `n=3` is the text "3".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from coordinator.wire.digest import InvalidPayload, parse_json
from coordinator.wire.errors import InputFault


def gather_inputs(pairs: Sequence[str] | None, file: Path | None) -> dict[str, Any]:
    """The inputs of a file, overlaid by the single ones. Raises InputFault with every fault."""
    inputs = read_input_file(file) if file else {}
    faults: list[str] = []
    for pair in pairs or ():
        name, sign, text = pair.partition("=")
        if not sign or name in ("", ":"):
            faults.append(f"--input {pair}: expected name=text or name:=JSON")
        elif name.endswith(":"):
            try:
                inputs[name[:-1]] = parse_json(text)
            except InvalidPayload as fault:
                faults.append(f"--input {pair}: {fault}")
        else:
            inputs[name] = text
    if faults:
        raise InputFault(faults)
    return inputs


def read_input_file(file: Path) -> dict[str, Any]:
    """An object of inputs from JSON or YAML. Raises InputFault."""
    text = read_text(file)
    try:
        value = parse_json(text) if file.suffix == ".json" else YAML(typ="safe", pure=True).load(text)
    except (InvalidPayload, YAMLError) as fault:
        raise InputFault(f"{file}: {' '.join(str(fault).split())}") from None
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise InputFault(f"{file}: expected an object of inputs")
    return value


def read_text(file: Path) -> str:
    """A file's text; `-` is the standard input. Raises InputFault when it cannot be read."""
    try:
        return Path("/dev/stdin").read_text() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputFault(f"{file}: cannot be read: {reason}") from None
