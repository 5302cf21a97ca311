"""What a handler file imports: the decorator, the Context, and the exceptions that classify a failure (SPEC 8)."""

from workers.context import Context, Usage
from workers.durable.actions import ActionRefused, ActionUnknown
from workers.durable.artifacts import Artifact
from workers.durable.children import Child, ChildFailed, SpawnRefused
from workers.handlers import handler
from workers.outcomes import (
    AttemptCanceled,
    AttemptLeft,
    HandlerFailure,
    InvalidOutput,
    MissingInput,
    Permanent,
    PermissionDenied,
    Transient,
)

__all__ = [
    "ActionRefused",
    "ActionUnknown",
    "Artifact",
    "AttemptCanceled",
    "AttemptLeft",
    "Child",
    "ChildFailed",
    "Context",
    "HandlerFailure",
    "InvalidOutput",
    "MissingInput",
    "Permanent",
    "PermissionDenied",
    "SpawnRefused",
    "Transient",
    "Usage",
    "handler",
]
