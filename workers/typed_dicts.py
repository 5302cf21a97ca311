"""Owns one kindness to users of Python 3.11: `typing.TypedDict` in a handler's annotations works there as well.

pydantic takes only `typing_extensions.TypedDict` before 3.12 (the older one does not know which keys of a parent were
required), so a class of that kind is made of each. Must not be needed from Python 3.12 on.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from typing import Any

import typing_extensions


def modern(hint: Any) -> Any:
    """The annotation with every TypedDict in it made fit for pydantic; other annotations are left as they are."""
    if sys.version_info >= (3, 12):
        return hint
    return _modern(hint, {})


def _modern(hint: Any, seen: dict[Any, Any]) -> Any:
    if typing.is_typeddict(hint) and type(hint).__module__ == "typing":
        return seen.get(hint) or _convert(hint, seen)
    arguments = typing.get_args(hint)
    if not arguments or typing.get_origin(hint) is typing.Literal:
        return hint
    changed = tuple(_modern(argument, seen) for argument in arguments)
    if changed == arguments:
        return hint
    if isinstance(hint, types.UnionType):
        return functools.reduce(operator.or_, changed)
    if typing.get_origin(hint) is typing.Annotated:
        return typing.Annotated[(changed[0], *hint.__metadata__)]
    return (
        hint.copy_with(changed)
        if hasattr(hint, "copy_with")
        else types.GenericAlias(hint.__origin__, changed)
    )


def _convert(hint: Any, seen: dict[Any, Any]) -> Any:
    seen[hint] = Any  # a class that contains itself is checked one level deep
    fields = {}
    for name, field in typing.get_type_hints(hint, include_extras=True).items():
        mark = typing.get_origin(field)
        marked = mark in (typing.Required, typing.NotRequired)
        # __required_keys__ does not know of marks in annotations that are kept as text
        required = mark is typing.Required if marked else name in hint.__required_keys__
        inner = _modern(typing.get_args(field)[0] if marked else field, seen)
        fields[name] = inner if required else typing_extensions.NotRequired[inner]
    seen[hint] = typing_extensions.TypedDict(hint.__name__, fields)  # type: ignore[operator] # made at run time
    return seen[hint]
