"""What the exit status of the command line means."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Documented in ``docs/reference/cli.md`` and in ``grammask --help``."""

    OK = 0
    INVALID = 1  # `check`: the text is not valid; `tokens`: the prefix is not possible
    USAGE = 2  # unknown or contradictory options, unreadable files
    CONSTRAINT = 3  # the constraint is malformed, unsupported, unsatisfiable or too large
    MODEL = 4  # the model cannot be loaded or run
    INCOMPLETE = 5  # the output was cut by --max-tokens or --stop before it was valid
    INTERRUPTED = 130  # Ctrl-C
