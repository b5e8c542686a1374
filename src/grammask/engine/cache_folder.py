"""Where grammask keeps files that are expensive to make."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_directory() -> Path:
    """The folder for converted models and vocabularies: ``GRAMMASK_CACHE`` if set, else the platform's convention.

    Linux and others: ``$XDG_CACHE_HOME/grammask`` or ``~/.cache/grammask`` (XDG Base Directory specification);
    macOS: ``~/Library/Caches/grammask``; Windows: ``%LOCALAPPDATA%\\grammask\\Cache``. The folder may not exist yet.
    """
    override = os.environ.get("GRAMMASK_CACHE")
    if override:
        return Path(override).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "grammask" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "grammask"
    xdg = os.environ.get("XDG_CACHE_HOME")
    # The specification says that a relative path there is invalid and must be ignored.
    base = Path(xdg) if xdg and os.path.isabs(xdg) else Path.home() / ".cache"
    return base / "grammask"
