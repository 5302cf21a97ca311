"""Owns how the API reads JSON: as strictly as every payload is read (SPEC 6)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from coordinator.wire.digest import InvalidPayload, parse_json


class StrictRequest(Request):
    """A request whose JSON has no duplicate keys, no NaN, no lone surrogates, and keeps its integers whole."""

    async def json(self) -> Any:
        """The body. Raises a 422 for what is no such JSON."""
        try:
            return parse_json(await self.body())
        except InvalidPayload as fault:
            raise HTTPException(422, f"the body: {fault}") from None


class StrictRoute(APIRoute):
    """A route that reads StrictRequests."""

    def get_route_handler(self) -> Any:
        """The handler of this route."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


def strict_router(tag: str | None = None) -> APIRouter:
    """A router of such routes."""
    return APIRouter(route_class=StrictRoute, tags=[tag] if tag else None)
