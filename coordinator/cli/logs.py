"""Owns how our processes log: one JSON object a line on the standard error, with secrets taken out by their keys.

Must not be imported by what runs inside a user's own process.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

SECRET = re.compile(
    r"(?:^|_)(?:(?:secret|password|passwd|api_?key|credential|cookie)s?|token|authorization|lease|payload|input|result)$",
    re.IGNORECASE,
)
"""Keys whose values are never written: secrets, and payloads, which are not ours to tell (SPEC 12)."""
REDACTED = "[redacted]"


def configure_logs() -> None:
    """Turns structured logs on for this process."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def redact(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Structlog processor: takes out the values of secret keys, also one level down."""
    for key, value in event.items():
        if SECRET.search(key):
            event[key] = REDACTED
        elif isinstance(value, dict):
            event[key] = {
                inner: REDACTED if SECRET.search(str(inner)) else item for inner, item in value.items()
            }
    return event
