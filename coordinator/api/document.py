"""Owns the OpenAPI document: what FastAPI says of the routes, and what it leaves out or gets wrong.

Must not describe an operation by hand: that stands at its route.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from coordinator.api.problems import SCHEMA

DESCRIPTION = """Decides when a whole team of agents stops. Times: ms since 1970; money: exact decimal text.

What changes a run is stored in the inbox of its scope and applied by the coordinator, whose answer is passed on. When
none comes in time the answer is a 503 with `stored`: it will be applied, and may be sent again with the same
Idempotency-Key or run id."""


def api_document(app: FastAPI) -> dict[str, Any]:
    """The document of the application's routes (OpenAPI 3.1)."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        description=DESCRIPTION,
        routes=app.routes,
    )
    document["components"]["schemas"]["Problem"] = SCHEMA
    links = {}
    for path, operation in _operations(document):
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _without_null(parameter["schema"])
        if "{run}" in path:
            name = operation["operationId"]
            links[name] = {"operationId": name, "parameters": {"run": "$response.body#/run"}}
    for status in ("200", "201"):
        document["paths"]["/api/v1/runs"]["post"]["responses"][status]["links"] = links
    return document


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for operation in methods.values():
            yield path, operation


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A header or a query is left out, never null."""
    some = [entry for entry in schema.get("anyOf", ()) if entry != {"type": "null"}]
    if len(some) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **some[0]}
