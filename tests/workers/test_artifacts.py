"""Where artifacts lie: by content, once, never half, by any fsspec URL (SPEC 8)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.workers import durable_handlers as durable
from workers import Permanent, Transient
from workers.durable import artifacts
from workers.testing import run_handler

PAGE = b"a page"
DIGEST = hashlib.sha256(PAGE).hexdigest()


def test_the_same_content_lies_there_once(tmp_path: Path) -> None:
    file = tmp_path / "page.txt"
    file.write_bytes(PAGE)
    kept = [
        artifacts.keep(str(tmp_path / "kept"), "r1", name, what) for name, what in (("a", file), ("b", PAGE))
    ]
    assert {(one.digest, one.size) for one in kept} == {(f"sha256:{DIGEST}", 6)}
    assert kept[0].url == kept[1].url == f"file://{tmp_path}/kept/r1/{DIGEST}"
    assert [path.name for path in (tmp_path / "kept" / "r1").iterdir()] == [DIGEST]
    assert (tmp_path / "kept" / "r1" / DIGEST).read_bytes() == PAGE


def test_half_a_file_that_lies_there_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1" / DIGEST).write_bytes(PAGE[:3])
    artifacts.keep(str(tmp_path), "r1", "a", PAGE)
    assert (tmp_path / "r1" / DIGEST).read_bytes() == PAGE


def test_any_fsspec_url_will_do() -> None:
    import fsspec

    kept = artifacts.keep("memory://artifacts", "r1", "a", PAGE)
    assert kept.url == f"memory:///artifacts/r1/{DIGEST}"
    system: Any = fsspec.filesystem("memory")
    assert system.cat_file(kept.url) == PAGE
    system.rm("/artifacts", recursive=True)


def test_a_place_that_cannot_be_written_is_transient_and_none_is_permanent(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Transient, match="could not be stored"):
        artifacts.keep(str(tmp_path / "file"), "r1", "a", PAGE)
    with pytest.raises(Permanent, match="CREWLINE_ARTIFACTS"):
        artifacts.keep("", "r1", "a", PAGE)
    with pytest.raises(FileNotFoundError):
        artifacts.keep(str(tmp_path), "r1", "a", tmp_path / "nothing")


def test_what_is_recorded_holds_no_password() -> None:
    assert artifacts.without_secrets("sftp://ann:pw@host/a/b") == "sftp://host/a/b"
    assert artifacts.without_secrets("s3://bucket/a@b") == "s3://bucket/a@b"


def test_run_handler_keeps_artifacts_where_the_test_says(tmp_path: Path) -> None:
    done = run_handler(durable.keeps, {"dir": str(tmp_path)}, artifacts=tmp_path / "kept")
    assert done.result[:2] == [f"sha256:{DIGEST}"] * 2
    assert len(list((tmp_path / "kept" / "test-run").iterdir())) == 2
