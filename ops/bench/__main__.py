"""Owns the command `python -m ops.bench`: rounds, order and output. Must not know how a system works.

Each round measures every system once, with fresh processes on an emptied server, after a warm-up that is not counted;
the order is turned by one from round to round, so that no system always has the same neighbour.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import structlog
from rich.console import Console

from ops.bench import coordinator_rate
from ops.bench.environment import celery_python, versions
from ops.bench.peers import Peer, celery_peer, crewline_peer, rq_peer, running
from ops.bench.results import Results
from ops.bench.server import ClientCommands, Server
from ops.bench.shapes import Shape, shapes

MOST_SENT = 8
"""Commands that the JSON lists by name for each system and shape."""


def main() -> None:
    """Parses the arguments, measures, prints and writes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that every process is ended on the way out
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    arguments = _arguments()
    console = Console()
    work = shapes(quick=arguments.quick)
    peers = _peers(arguments.peers.split(","), arguments.folder)
    with Server() as server:
        results = Results(
            _machine(server, peers), arguments.rounds, work, {peer.name: peer.label for peer in peers}
        )
        for number in range(arguments.rounds):
            turn = number % len(peers)
            for peer in peers[turn:] + peers[:turn]:
                _measure(server, peer, work, results)
                rates = [f"{results.rates[peer.name][shape.name][-1]:,.0f}" for shape in work]
                print(f"round {number + 1} {peer.name}: {' '.join(rates)} tasks/s", file=sys.stderr)
        for peer in peers:
            _count_commands(server, peer, work, results)
        if any(peer.name.startswith("crewline") for peer in peers):
            reports = 500 if arguments.quick else 5000
            results.coordinator = coordinator_rate.measure(
                server.redis, reports=reports, rounds=arguments.rounds
            )
    results.print(console)
    results.write(arguments.output)
    console.print(f"kept in {arguments.output}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ops.bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of every size")
    parser.add_argument("--peers", default="crewline-1,crewline-16,rq,celery", help="comma-separated names")
    parser.add_argument("--folder", type=Path, default=Path(".bench"), help="for the Celery environment")
    parser.add_argument("--output", type=Path, default=Path(".bench/bench.json"))
    return parser.parse_args()


def _peers(names: list[str], folder: Path) -> list[Peer]:
    makers: dict[str, Callable[[], Peer]] = {
        "crewline-1": lambda: crewline_peer(1),
        "crewline-16": lambda: crewline_peer(16),
        "rq": rq_peer,
        "celery": lambda: celery_peer(celery_python(folder.resolve())),
    }
    unknown = [name for name in names if name not in makers]
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(makers)}")
    return [makers[name]() for name in names]


def _measure(server: Server, peer: Peer, work: list[Shape], results: Results) -> None:
    server.empty()
    with running(peer, server.url) as system:
        system.warm_up(work)
        for shape in work:
            answer = system.measure(shape.name, shape.count)
            rates = results.rates.setdefault(peer.name, {}).setdefault(shape.name, [])
            rates.append(round(answer["tasks"] / answer["seconds"], 1))


def _count_commands(server: Server, peer: Peer, work: list[Shape], results: Results) -> None:
    """A pass of its own: MONITOR slows the server, so nothing is timed here."""
    server.empty()
    with running(peer, server.url) as system:
        system.warm_up(work)
        for shape in work:
            with ClientCommands(server.port, {system.waiter}) as sent:
                tasks = system.measure(shape.name, shape.count)["tasks"]
            per_task = {name: round(count / tasks, 2) for name, count in sent.counts.most_common(MOST_SENT)}
            results.commands.setdefault(peer.name, {})[shape.name] = round(sent.counts.total() / tasks, 2)
            results.most_sent.setdefault(peer.name, {})[shape.name] = per_task


def _machine(server: Server, peers: list[Peer]) -> dict[str, object]:
    found: dict[str, object] = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "redis": server.version,
        **versions(sys.executable, "rq", "redis", "hiredis"),
    }
    for peer in peers:
        if peer.name == "celery":
            found["celery"] = versions(peer.python, "celery")["celery"]
    return found


if __name__ == "__main__":
    main()
