"""Folders in the cache, which appear there all at once or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from grammask.engine.cache_folder import cache_directory

__all__ = ["cache_directory", "cached_folder"]


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
