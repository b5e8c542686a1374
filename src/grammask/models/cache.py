"""Where grammask keeps files that are expensive to make, and how they appear there all at once or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_directory() -> Path:
    """The folder for converted models: ``GRAMMASK_CACHE`` if set, else the platform's convention.

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


def cached_folder(name: str, build: Callable[[Path], None]) -> Path:
    """The folder ``name`` of the cache, made by ``build`` if it is not there.

    ``build`` fills a temporary sibling folder, which is then renamed: a folder that exists is whole, an interrupted
    build leaves nothing behind under the final name, and of two processes that build at once one wins and both get its
    folder.

    Args:
        name: a single path component.
        build: is given an empty folder and fills it; what it raises is passed on after the cleanup.
    """
    target = cache_directory() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".partial-{name}-", dir=target.parent))
    try:
        build(partial)
        # mkdtemp makes folders for the owner only; a shared cache should be as readable as the umask allows.
        umask = os.umask(0)
        os.umask(umask)
        partial.chmod(0o777 & ~umask)
        try:
            partial.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target
