"""What a handler file imports: the decorator, the Context, and the exceptions that classify a failure (SPEC 8)."""

from workers.context import Context, Usage
from workers.handlers import handler
from workers.outcomes import (
    AttemptCanceled,
    HandlerFailure,
    InvalidOutput,
    MissingInput,
    Permanent,
    PermissionDenied,
    Transient,
)

__all__ = [
    "AttemptCanceled",
    "Context",
    "HandlerFailure",
    "InvalidOutput",
    "MissingInput",
    "Permanent",
    "PermissionDenied",
    "Transient",
    "Usage",
    "handler",
]
