"""Owns handlers: the decorator, how a file or module of them is loaded, and how their input and result are checked.

A handler's annotations (pydantic model, TypedDict, dataclass) check its input and result through pydantic. Files are
loaded under a private module name, so that a user's `handlers.py` or `workers.py` never stands in the way of ours. Must
not run a handler; that is `attempt.py`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import sys
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from coordinator.wire.digest import InvalidPayload, encode
from coordinator.wire.errors import InputFault
from workers.outcomes import InvalidOutput
from workers.typed_dicts import modern

MARK = "crewline_capabilities"
"""Attribute that the decorator sets on a function: the capabilities that it handles."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_registered: list[Callable[..., Any]] = []
"""Functions decorated since the last load began; a load takes them, wherever they were imported from."""
_loaded: dict[str, dict[str, Handler]] = {}
"""What this process has loaded: a module that is imported already would not register its handlers again."""


def handler(capability: str) -> Callable[[_Function], _Function]:
    """Marks a function as the handler of a capability; the function itself is left as it is (SPEC 8).

    The function takes `(context)` or `(context, input)` and may be async. Several marks may stand on one function.
    """
    name: Any = capability
    if not isinstance(name, str) or not name:
        raise TypeError('handler needs the name of a capability: @handler("read_order")')

    def mark(function: _Function) -> _Function:
        setattr(function, MARK, (*getattr(function, MARK, ()), capability))
        _registered.append(function)
        return function

    return mark


class InputInvalid(Exception):
    """The input does not fit the handler's annotation."""


@dataclass(frozen=True, slots=True)
class Handler:
    """A function with what its annotations say. is_async: it is a coroutine function."""

    function: Callable[..., Any]
    is_async: bool
    takes_input: bool
    input_type: TypeAdapter[Any] | None
    result_type: TypeAdapter[Any] | None

    @property
    def where(self) -> str:
        """File and line, for messages."""
        code = inspect.unwrap(self.function).__code__
        return f"{code.co_filename}:{code.co_firstlineno}"

    def read_input(self, value: Any) -> Any:
        """The input as the handler wants it; raises InputInvalid, which says where it does not fit."""
        if self.input_type is None:
            return value
        try:
            return self.input_type.validate_json(encode(value))
        except ValidationError as error:
            raise InputInvalid(_faults(error)) from None

    def write_result(self, value: Any) -> str:
        """The result as canonical JSON text; raises InvalidOutput for nothing at all, a misfit and what is no JSON."""
        if value is None:
            raise InvalidOutput("the handler returned nothing")
        try:
            if self.result_type is not None:
                return _dump(self.result_type, self.result_type.validate_python(value))
            if isinstance(value, BaseModel) or (
                dataclasses.is_dataclass(value) and not isinstance(value, type)
            ):
                return _dump(TypeAdapter(type(value)), value)
            return encode(value)
        except InvalidPayload as error:
            raise InvalidOutput(f"the result is not JSON: {error}") from None
        except ValidationError as error:
            raise InvalidOutput(f"the result does not fit its annotation: {_faults(error)}") from None


def _dump(adapter: TypeAdapter[Any], value: Any) -> str:
    """Canonical JSON of a typed value. Keys that are no strings are refused, not spelled: they could collide (C-28)."""
    try:
        _check_keys(adapter.dump_python(value, by_alias=True))
        return encode(adapter.dump_python(value, mode="json", by_alias=True))
    except InvalidPayload:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidPayload(str(error)) from None


def _check_keys(plain: Any) -> None:
    stack: list[Any] = [plain]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for key in item:
                if not isinstance(key, str):
                    raise InvalidPayload(f"a key is no string: {key!r:.80}")
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)


def _faults(error: ValidationError) -> str:
    """Where and why, at most five, never what stood there: payloads are not for logs (SPEC 12)."""
    faults = error.errors(include_url=False, include_input=False)
    lines = [f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}" for fault in faults[:5]]
    return "; ".join(lines) + (f"; and {len(faults) - 5} more" if len(faults) > 5 else "")


def inspect_handler(function: Callable[..., Any]) -> Handler:
    """Reads a function's signature and annotations; raises InputFault when it cannot be a handler."""
    name = getattr(function, "__qualname__", repr(function))
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise InputFault(f"handler {name}: its annotations cannot be read ({error})") from None
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [
        p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    taken = positional[:2]
    if not taken or any(parameter not in taken for parameter in needed):
        raise InputFault(f"handler {name}: it must take (context) or (context, input)")
    input_hint = hints.get(taken[1].name, Any) if len(taken) == 2 else Any
    result_hint = hints.get("return", Any)
    if result_hint in (type(None), typing.NoReturn, typing.Never):
        result_hint = Any
    return Handler(
        function=function,
        is_async=inspect.iscoroutinefunction(inspect.unwrap(function))
        or inspect.iscoroutinefunction(function),
        takes_input=len(taken) == 2,
        input_type=_adapter(name, input_hint),
        result_type=_adapter(name, result_hint),
    )


def _adapter(name: str, hint: Any) -> TypeAdapter[Any] | None:
    if hint is Any:
        return None
    try:
        return TypeAdapter(modern(hint))
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        first = str(error).splitlines()[0]
        raise InputFault(
            f"handler {name}: an annotation is nothing that JSON can be checked by ({first})"
        ) from None


def load_handlers(source: str) -> dict[str, Handler]:
    """Loads a file (a path) or a module (a dotted name) and gives its handlers by capability.

    Raises InputFault when it is not there, cannot be imported, or two functions handle one capability. What was loaded
    once by this process is not loaded again.
    """
    path = Path(source)
    is_file = path.suffix == ".py" or "/" in source or path.exists()
    known = str(path.absolute()) if is_file else source
    if known not in _loaded:
        _registered.clear()
        module = _load_file(path.absolute()) if is_file else _load_module(source)
        found = [item for item in vars(module).values() if callable(item) and hasattr(item, MARK)]
        _loaded[known] = collect({id(function): function for function in [*_registered, *found]}.values())
    return dict(_loaded[known])


def collect(functions: Iterable[Callable[..., Any]]) -> dict[str, Handler]:
    """The handlers of marked functions by capability; raises InputFault for two of one capability."""
    handlers: dict[str, Handler] = {}
    for function in functions:
        one = inspect_handler(function)
        for capability in getattr(function, MARK, ()):
            other = handlers.setdefault(capability, one)
            if other.function is not function:
                raise InputFault(f"capability {capability} has two handlers: {other.where} and {one.where}")
    return handlers


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputFault(f"handlers: there is no file {path}")
    tag = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"_crewline_handlers_{tag}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputFault(f"handlers: {path} is no Python file")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _import_fault(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except BaseException as error:
        raise _import_fault(name, error) from error


def _import_fault(source: str, error: BaseException) -> BaseException:
    """What to raise for an import that failed: a fault of the input, unless a person pressed Ctrl-C."""
    if isinstance(error, KeyboardInterrupt):
        return error
    where = ""
    trace = error.__traceback__
    while trace is not None:
        if "importlib" not in trace.tb_frame.f_code.co_filename:
            where = f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
        trace = trace.tb_next
    return InputFault(f"handlers: cannot import {source}: {type(error).__name__}: {error}{where}")
