"""How handlers are declared, loaded and checked (SPEC 8; C-20, C-28)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pytest
from pydantic import BaseModel

from coordinator.wire.errors import InputFault
from tests.support.command import crewline
from workers import Context, InvalidOutput, handler
from workers.handlers import InputInvalid, inspect_handler, load_handlers


class Line(TypedDict):
    sku: str
    note: NotRequired[str]


class Order(TypedDict):
    id: int
    lines: list[Line]


class Model(BaseModel):
    id: int
    due: date | None = None
    price: Decimal = Decimal("0.10")


@dataclasses.dataclass
class Record:
    id: int


def write(folder: Path, text: str, name: str = "handlers.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_file_is_loaded_under_a_private_name_with_its_folder_on_the_path(tmp_path: Path) -> None:
    write(tmp_path, "WORD = 'beside'\n", "beside_the_handlers.py")
    source = write(
        tmp_path,
        "from beside_the_handlers import WORD\nfrom workers import handler\n"
        "@handler('one')\n@handler('two')\ndef work(context):\n    return WORD\n",
        "workers.py",
    )
    found = load_handlers(source)
    assert set(found) == {"one", "two"}
    assert found["one"].function(None) == "beside"
    assert found["one"].function.__module__.startswith("_crewline_handlers_")
    assert load_handlers(source) == found


def test_handlers_of_imported_modules_are_found(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from workers import handler\n@handler('inner')\ndef inner(context):\n    return 1\n",
        "an_inner_module.py",
    )
    assert set(load_handlers(write(tmp_path, "import an_inner_module\n"))) == {"inner"}


@pytest.mark.parametrize(("text", "words"), [
    ("import no_such_module_at_all\n", "no_such_module_at_all"),
    ("def broken(:\n", "SyntaxError"),
    ("raise SystemExit(3)\n", "SystemExit"),
    ("from workers import handler\n@handler('a')\ndef f(context, input, more):\n    pass\n", "(context, input)"),
    ("from workers import handler\n@handler('a')\ndef f():\n    pass\n", "(context, input)"),
    ("from workers import handler\n@handler('a')\ndef f(context: 'Nowhere'):\n    pass\n", "Nowhere"),
    ("from workers import handler\n@handler('a')\ndef f(c): ...\n@handler('a')\ndef g(c): ...\n", "two handlers"),
    ("from workers import handler\n@handler\ndef f(c):\n    pass\n", "needs the name"),
])  # fmt: skip
def test_what_cannot_be_loaded_is_one_clear_fault(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        load_handlers(write(tmp_path, text))
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_missing_files_and_empty_ones_end_the_command_with_2(tmp_path: Path, redis_url: str) -> None:
    for source in (str(tmp_path / "nowhere.py"), "no.such.module", write(tmp_path, "x = 1\n")):
        result = crewline("worker", "--role", "r", "--handlers", source, "--redis", redis_url)
        assert result.returncode == 2
        assert "handlers" in result.stderr
        assert "Traceback" not in result.stderr


def test_an_unreachable_redis_ends_the_command_with_3(tmp_path: Path) -> None:
    source = write(tmp_path, "from workers import handler\n@handler('a')\ndef f(c):\n    return 1\n")
    result = crewline("worker", "--role", "r", "--handlers", source, "--redis", "redis://127.0.0.1:1")
    assert result.returncode == 3
    assert len(result.stderr.splitlines()) == 1


def test_input_is_checked_by_its_annotation() -> None:
    def work(context: Context, input: Model) -> Any:
        return 1

    one = inspect_handler(work)
    assert one.read_input({"id": 7, "due": "2026-01-31"}) == Model(id=7, due=date(2026, 1, 31))
    with pytest.raises(InputInvalid, match=r"id: ") as caught:
        one.read_input({"id": "secret words"})
    assert "secret" not in str(caught.value)


def result_of(function: Callable[..., Any], value: Any) -> str:
    return inspect_handler(function).write_result(value)


def test_results_are_checked_by_their_annotation() -> None:
    def order(context: Context) -> Order: ...  # type: ignore[empty-body] # only its annotations are read

    def record(context: Context) -> Record: ...  # type: ignore[empty-body] # only its annotations are read

    def model(context: Context) -> Model: ...  # type: ignore[empty-body] # only its annotations are read

    lines = [{"sku": "a"}, {"sku": "b", "note": "n"}]
    assert (
        result_of(order, {"id": 1, "lines": lines}) == '{"id":1,"lines":[{"sku":"a"},{"note":"n","sku":"b"}]}'
    )
    assert result_of(record, Record(1)) == '{"id":1}'
    assert result_of(model, {"id": 1}) == '{"due":null,"id":1,"price":"0.10"}'
    for function, value in (
        (order, {"id": 1}),
        (order, {"id": 1, "lines": [{}]}),
        (record, {"id": "x"}),
        (model, []),
    ):
        with pytest.raises(InvalidOutput, match="annotation"):
            result_of(function, value)


def test_results_without_an_annotation_are_json_models_or_dataclasses() -> None:
    def anything(context): ...  # type: ignore[no-untyped-def] # has none on purpose

    assert result_of(anything, {"b": [1, 2.0, None, True], "a": "ä"}) == '{"a":"ä","b":[1,2.0,null,true]}'
    assert result_of(anything, Record(1)) == '{"id":1}'
    assert (
        result_of(anything, Model(id=15947634569000323))
        == '{"due":null,"id":15947634569000323,"price":"0.10"}'
    )


@pytest.mark.parametrize("value", [
    None, {1: "a"}, {1: "x", "1": "y"}, {True: "x"}, {None: "x"}, {1.0: "x"}, {"x": float("nan")}, {"x": float("inf")},
    {"x": 10**5000}, "\ud800", {"x": object()}, {"x": b"bytes"}, {"x": {1, 2}},
])  # fmt: skip
def test_c28_c30_what_is_no_json_is_invalid_output_and_never_merged_silently(value: Any) -> None:
    def anything(context): ...  # type: ignore[no-untyped-def] # has none on purpose

    with pytest.raises(InvalidOutput):
        result_of(anything, value)


def test_c28_typed_keys_that_are_no_strings_are_refused_too() -> None:
    def numbered(context: Context) -> dict[int, str]: ...  # type: ignore[empty-body] # only its annotations are read

    with pytest.raises(InvalidOutput, match="no string"):
        result_of(numbered, {1: "a"})


def test_the_decorator_leaves_the_function_alone() -> None:
    @handler("plain")
    def plain(context: Context) -> int:
        return 7

    assert plain(None) == 7  # type: ignore[arg-type] # it does not look at it
