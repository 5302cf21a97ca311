"""Inputs on the command line: text, JSON, files, and every fault at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator.cli.inputs import gather_inputs
from coordinator.wire.errors import InputFault


def test_text_json_and_file_are_overlaid(tmp_path: Path) -> None:
    file = tmp_path / "in.yaml"
    file.write_text("a: 1\nb: two\n")
    assert gather_inputs(["b=x=y", "c:=[1, 12345678901234567890]", "d="], file) == {
        "a": 1,
        "b": "x=y",
        "c": [1, 12345678901234567890],
        "d": "",
    }


def test_all_faults_are_said_at_once() -> None:
    with pytest.raises(InputFault) as caught:
        gather_inputs(["novalue", "a:={", ":=1", "b:=NaN"], None)
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize(
    ("name", "text"), [("x.json", "{"), ("x.json", "[1]"), ("x.yaml", "a: [\n"), ("x.json", '{"a":1,"a":2}')]
)
def test_a_bad_file_is_a_fault_in_one_line(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InputFault) as caught:
        gather_inputs([], file)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="cannot be read"):
        gather_inputs([], tmp_path / "none.json")
