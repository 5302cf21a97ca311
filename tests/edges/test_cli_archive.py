"""The folder in which `run` keeps a run, and finding it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from coordinator.cli.archive import Archive, Setting, find_archive
from coordinator.wire.errors import InputFault


def keep(home: Path, run: str, at: int = 0) -> Archive:
    archive = Archive(run, home)
    archive.create()
    archive.keep_setting(Setting(run, "team.yaml", ("clerk",), "h.py", "", "crewline", "fork", 1))
    os.utime(archive.path / "run.json", (at, at))
    return archive


def test_a_setting_comes_back_as_it_was(tmp_path: Path) -> None:
    archive = keep(tmp_path, "abc")
    assert find_archive("abc", tmp_path).setting() == archive.setting()
    assert archive.setting().roles == ("clerk",)


def test_a_run_is_found_by_id_prefix_path_and_as_the_latest(tmp_path: Path) -> None:
    keep(tmp_path, "abc", at=100)
    keep(tmp_path, "abd", at=50)
    keep(tmp_path, "ab", at=10)
    assert find_archive("abc", tmp_path).path.name == "abc"
    assert find_archive("ab", tmp_path).path.name == "ab"
    assert find_archive("-", tmp_path).path.name == "abc"
    assert find_archive(str(tmp_path / "abd")).path == tmp_path / "abd"
    with pytest.raises(InputFault, match="several runs"):
        find_archive("a", tmp_path)
    with pytest.raises(InputFault, match="no such run"):
        find_archive("x", tmp_path)


def test_the_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    archive = keep(tmp_path / ".crewline", "abc")
    assert (tmp_path / ".crewline" / ".gitignore").read_text() == "*\n"
    assert archive.logs.stat().st_mode & 0o077 == 0


def test_a_damaged_setting_is_a_fault(tmp_path: Path) -> None:
    archive = keep(tmp_path, "abc")
    (archive.path / "run.json").write_text("{}")
    with pytest.raises(InputFault, match="can be gone on with"):
        archive.setting()
