"""Owns what is read out of an agent's exported conversation. Pure: must not touch Redis, the disk or
the log.
"""

from coordinator.agent_threads.interruptions import InterruptionKind, classify_interruption, run_pair
from coordinator.agent_threads.model import InvalidThread, Thread
from coordinator.agent_threads.outline import Outline, interruptions, outline, thread_document, warnings
from coordinator.agent_threads.reading import is_thread, read_thread
from coordinator.agent_threads.render import render_thread
from coordinator.agent_threads.runs import background_section, thread_section

__all__ = [
    "InterruptionKind",
    "InvalidThread",
    "Outline",
    "Thread",
    "background_section",
    "classify_interruption",
    "interruptions",
    "is_thread",
    "outline",
    "read_thread",
    "render_thread",
    "run_pair",
    "thread_document",
    "thread_section",
    "warnings",
]
