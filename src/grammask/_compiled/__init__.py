"""Modules compiled to machine code, which stand in for the same modules in Python.

What turns schemas and patterns into expressions is plain Python. The build also translates it to C (mypyc), puts the
result into this folder, and import then takes it from here: about half the time to compile a constraint. The modules
say and do the same either way.

Compiled modules are used together or not at all, and only while the sources are those that they were made from: after
an edit the Python in the source tree runs, until the next build. ``GRAMMASK_COMPILED=0`` in the environment switches
them off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from grammask._compiled.manifest import Manifest, digest, read

SWITCH = "GRAMMASK_COMPILED"


class CompiledModules(MetaPathFinder):
    """Finds the modules of a manifest among the files beside it.

    Args:
        folder: holds the library with the code of all modules and, for each, a file by which Python initializes it.
        root: the folder that holds the package's sources.
    """

    def __init__(self, manifest: Manifest, folder: Path, root: Path) -> None:
        self.modules = frozenset(manifest.modules)
        self._manifest = manifest
        self._folder = folder
        self._root = root
        self._current: bool | None = None

    @property
    def current(self) -> bool:
        """Whether the sources are those that were compiled. A package without sources has nothing else to run."""
        if self._current is None:
            try:
                self._current = digest(self._root, self._manifest.modules) == self._manifest.digest
            except OSError:
                self._current = True
        return self._current

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.modules or not self.current:
            return None
        file = str(self._folder / (fullname + EXTENSION_SUFFIXES[0]))
        return spec_from_file_location(fullname, file, loader=ExtensionFileLoader(fullname, file))


_finder: CompiledModules | None = None
_switched_off = False


def install(folders: Sequence[str]) -> None:
    """Has the import system look for compiled modules in the first of some folders that holds any."""
    global _finder, _switched_off
    if os.environ.get(SWITCH) == "0":
        _switched_off = True
        return
    for folder in map(Path, folders):
        manifest = read(folder)
        # Another version of Python may have compiled what lies here.
        if manifest is not None and (folder / f"modules__mypyc{EXTENSION_SUFFIXES[0]}").is_file():
            _finder = CompiledModules(manifest, folder, Path(__file__).parents[2])
            sys.meta_path.insert(0, _finder)
            return


def state() -> str:
    """Which modules run: "compiled", or "interpreted (why)"."""
    if _switched_off:
        return f"interpreted ({SWITCH}=0)"
    if _finder is None:
        return "interpreted (built without compiled modules)"
    return "compiled" if _finder.current else "interpreted (the sources were edited after they were compiled)"


install(__path__)
