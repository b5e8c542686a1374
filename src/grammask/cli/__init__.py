"""The command line. ``main`` is the entry point of the ``grammask`` program; it needs the extra ``cli``."""

from __future__ import annotations

import importlib.util
import sys


def main() -> None:
    """Runs the command line, or says what to install when Typer or Rich is missing (exit status 2)."""
    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        print(
            f"error: the command line needs the package {' and '.join(missing)}\n"
            '  hint: pip install "grammask[cli]"   (the Python library works without)',
            file=sys.stderr,
        )
        raise SystemExit(2)
    from grammask.cli.app import app

    app(prog_name="grammask")
