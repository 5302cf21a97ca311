"""`crewline thread render`: the files that it writes, what it leaves alone, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.edges.conftest import Call
from tests.support.threads import notification, step, thread, turn

EXAMPLE = Path(__file__).parents[2] / "examples/threads/library.json"


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def write(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))
    return file


def small(name: str, updated: str, status: str = "WORKFLOW_COMPLETED") -> dict[str, Any]:
    return thread([turn("e", 0, step(text="x"), status=status)], [], uuid=name, lastUpdated=updated)


def states(done: Any) -> dict[str, str]:
    return {entry["thread"]: entry["state"] for entry in done.json}


def test_a_thread_becomes_two_files(call: Call, tmp_path: Path) -> None:
    done = call("thread", "render", EXAMPLE, "--out", tmp_path / "out")
    assert (done.code, done.out) == (0, "")
    page = (tmp_path / "out/conversation.md").read_text()
    assert page.startswith("# Which of our old maps need repair?\n")
    written = json.loads((tmp_path / "out/thread.json").read_text())
    assert len(written.pop("interruptions")) == 3
    assert written == json.loads(EXAMPLE.read_text())
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["conversation.md", "thread.json"]


def test_all_but_completed_is_logged_and_the_unknown_not_least(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path / "t.json", small("t", "1", "WORKFLOW_ODD"))
    done = call("thread", "render", file, "--out", tmp_path / "out")
    logged = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    assert [(e["level"], e["location"], e["kind"], e["status"]) for e in logged] == [
        ("warning", "turn_0001", "other", "WORKFLOW_ODD")
    ]
    assert "interruptions" not in json.loads((tmp_path / "out/thread.json").read_text())
    file = write(tmp_path / "u.json", small("u", "1"))
    assert "{" not in call("thread", "render", file, "--out", tmp_path / "healthy").err


def test_only_a_changed_thread_is_rendered_anew(call: Call, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"in/{name}.json", small(name, "1"))
    words = ("thread", "render", tmp_path / "in", "--out", tmp_path / "out", "--json")
    assert states(call(*words)) == {"a": "new", "b": "new"}
    assert states(call(*words)) == {"a": "unchanged", "b": "unchanged"}
    write(tmp_path / "in/b.json", small("b", "2", "WORKFLOW_CANCELED"))
    before = (tmp_path / "out/a/thread.json").stat().st_mtime_ns
    assert states(call(*words)) == {"a": "unchanged", "b": "changed"}
    assert (tmp_path / "out/a/thread.json").stat().st_mtime_ns == before
    assert "⛔ canceled" in (tmp_path / "out/b/conversation.md").read_text()
    (tmp_path / "out/a/conversation.md").unlink()
    assert states(call(*words)) == {"a": "changed", "b": "unchanged"}


def test_of_a_list_only_changed_threads_are_read(call: Call, tmp_path: Path) -> None:
    listed = [{"uuid": name, "lastUpdated": "1", "path": f"threads/{name}.json"} for name in ("a", "b")]
    index = write(tmp_path / "in/index.json", {"threads": listed})
    for name in ("a", "b"):
        write(tmp_path / f"in/threads/{name}.json", small(name, "1"))
    words = ("thread", "render", index, "--out", tmp_path / "out", "--json")
    assert states(call(*words)) == {"a": "new", "b": "new"}
    (tmp_path / "in/threads/a.json").unlink()
    listed[1]["lastUpdated"] = "2"
    write(index, listed)
    write(tmp_path / "in/threads/b.json", small("b", "2"))
    assert states(call(*words)) == {"a": "unchanged", "b": "changed"}


def test_a_list_beside_its_threads_counts_once(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "in/index.json", [{"uuid": "a", "lastUpdated": "1", "path": "a.json"}])
    write(tmp_path / "in/a.json", small("a", "1"))
    done = call("thread", "render", tmp_path / "in", "--out", tmp_path / "out", "--json")
    assert states(done) == {"a": "new"}


def test_rendering_in_place_adds_and_removes_interruptions(call: Call, tmp_path: Path) -> None:
    call("thread", "render", EXAMPLE, "--out", tmp_path / "out")
    file = tmp_path / "out/thread.json"
    whole, page = file.read_bytes(), (tmp_path / "out/conversation.md").read_bytes()
    bare = json.loads(whole)
    del bare["interruptions"]
    write(file, bare)
    (tmp_path / "out/conversation.md").unlink()
    assert call("thread", "render", tmp_path / "out", "--thread-json").code == 0
    assert (file.read_bytes(), (tmp_path / "out/conversation.md").read_bytes()) == (whole, page)
    healed = json.loads(
        whole.decode().replace("WORKFLOW_AWAITING_NEXT_STEPS", "COMPLETED").replace("WORKFLOW_CANCELED", "")
    )
    write(file, healed)
    assert call("thread", "render", file, "--thread-json").code == 0
    assert "interruptions" not in json.loads(file.read_text())


def test_a_thread_without_a_name_goes_by_its_file(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path / "talk.json", {"entries": [notification("n", 0)], "lastUpdated": 5})
    words = ("thread", "render", file, "--out", tmp_path / "out", "--json")
    assert states(call(*words)) == {"talk": "new"}
    assert states(call(*words)) == {"talk": "unchanged"}
    assert states(call(*words, "--force")) == {"talk": "unchanged"}


def test_a_name_is_no_path(call: Call, tmp_path: Path) -> None:
    write(tmp_path / "in/a.json", small("../../evil", "1"))
    write(tmp_path / "in/b.json", small("..", "1"))
    assert call("thread", "render", tmp_path / "in", "--out", tmp_path / "deep/out").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "in"]
    assert len(list((tmp_path / "deep/out").iterdir())) == 2


def test_half_a_character_is_no_reason_to_stop(call: Call, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"entries": [{"answer": "cut \\ud83d", "x": ["\\udc00"]}]}')
    assert call("thread", "render", tmp_path / "t.json", "--out", tmp_path / "out").code == 0
    assert "cut \ufffd" in (tmp_path / "out/conversation.md").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ('{"entries": NaN}', "NaN is no JSON number"),
        ('{"title": "x"}', "expected an exported thread"),
        ('[{"uuid": "x"}]', "expected threads, or objects with uuid, lastUpdated and path"),
        ('[{"uuid": "x", "path": "gone.json"}]', "gone.json: cannot be read"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_named(call: Call, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "t.json").write_text(text)
    done = call("thread", "render", tmp_path / "t.json", "--out", tmp_path / "out")
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "out").exists()


def test_faults_of_the_arguments(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path / "in/a.json", small("a", "1"))
    assert "Give --out" in call("thread", "render", file).err
    assert "in place" in call("thread", "render", file, "--thread-json", "--out", tmp_path).err
    assert "holds no thread.json" in call("thread", "render", tmp_path / "in", "--thread-json").err
    write(tmp_path / "in/b.json", small("a", "2"))
    assert "also stands in" in call("thread", "render", tmp_path / "in", "--out", tmp_path / "out").err
    call("thread", "render", file, "--out", tmp_path / "out")
    other = write(tmp_path / "c.json", small("c", "1"))
    assert "holds the thread a" in call("thread", "render", other, "--out", tmp_path / "out").err
    assert call("thread", "render", other, "--out", tmp_path / "out", "--force").code == 0
