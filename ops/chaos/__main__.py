"""Chaos: `python -m ops.chaos --seed S --minutes M`; exits with 1 on any violation, with the evidence."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from ops.chaos.session import Session


def main() -> int:
    """Runs it; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m ops.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides teams and faults")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long faults are injected")
    parser.add_argument("--open-runs", type=int, default=20, help="runs that are open at a time")
    parser.add_argument(
        "--folder", type=Path, help="where data, logs and effects are kept (default: a temporary one)"
    )
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="crewline-chaos-"))
    print(f"chaos: seed {arguments.seed}, {arguments.minutes:g} minutes, in {folder}", file=sys.stderr)
    session = Session(folder, arguments.seed, arguments.open_runs)
    violations = session.run(arguments.minutes * 60)
    print(session.told())
    for violation in violations:
        print(f"VIOLATION {violation}")
    print(f"{len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
