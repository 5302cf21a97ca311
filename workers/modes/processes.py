"""Owns what the worker asks of the operating system about processes: how they begin and end.

Must not know handlers, Redis or RQ.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import warnings

PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with_parent(parent: int, how: signal.Signals) -> None:
    """Has the kernel send `how` to this process when the thread that started it ends (Linux; elsewhere nothing).

    parent: the process that is expected to be the parent; if it is gone already, the signal comes at once.
    """
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, int(how), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), how)


def fork() -> int:
    """os.fork without Python 3.12's warning about threads.

    The threads of a worker (RQ's listener, the keeper) hold no lock that the child takes: it does not use Redis.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none (not Linux)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def ended(pid: int) -> int | None:
    """Takes the exit status of a child if it has ended: its exit code, or minus the signal; None while it runs."""
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if done else None


def end_group(pid: int, how: signal.Signals) -> None:
    """Signals a child and everything in its process group, if there is still anything."""
    try:
        os.killpg(pid, how)
    except (ProcessLookupError, PermissionError):
        try:
            os.kill(pid, how)
        except (ProcessLookupError, PermissionError):
            return


def describe(code: int) -> tuple[str, str]:
    """Type and message of how a process ended: ProcessExited with its code, ProcessKilled with the signal's name."""
    if code >= 0:
        return "ProcessExited", f"the handler's process ended without a result, exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return "ProcessKilled", f"the handler's process was killed by {name}"
