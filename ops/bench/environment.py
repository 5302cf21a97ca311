"""Owns the virtual environment of the Celery peer: under .bench/, apart from Crewline's own.

Must not touch the running environment: Celery's kombu may ask for another redis-py than Crewline does.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CELERY = ("celery[redis]>=5.5,<6", "hiredis")


def celery_python(folder: Path) -> str:
    """The interpreter of an environment that has Celery; made by the first call, which asks the package index."""
    environment = folder / "celery"
    python = environment / "bin" / "python"
    done = environment / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        print("making the environment of the Celery peer ...", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *CELERY], check=True)
        done.write_text("\n".join(CELERY) + "\n", encoding="utf-8")
    return str(python)


def versions(python: str, *names: str) -> dict[str, str]:
    """Versions of distributions as that interpreter sees them."""
    code = "import sys; from importlib.metadata import version as v; print('\\n'.join(v(n) for n in sys.argv[1:]))"
    output = subprocess.run([python, "-c", code, *names], check=True, capture_output=True, text=True).stdout
    return dict(zip(names, output.split(), strict=True))
