"""What was compiled, and from which sources: written by the build, read at import.

The build runs this file outside of the package, so it imports nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NAME = "manifest.json"


class Manifest(NamedTuple):
    """The compiled modules, by their full names, and the digest of their sources."""

    modules: tuple[str, ...]
    digest: str


def digest(root: Path, modules: Iterable[str]) -> str:
    """A digest of the sources of modules.

    Args:
        root: the folder that holds the package.
        modules: full names.

    Raises:
        OSError: a source is missing.
    """
    from hashlib import blake2b

    known = blake2b(digest_size=16)
    for module in modules:
        source = root.joinpath(*module.split(".")).with_suffix(".py").read_bytes()
        known.update(f"{module} {len(source)}\n".encode())
        known.update(source)
    return known.hexdigest()


def write(folder: Path, manifest: Manifest) -> None:
    folder.joinpath(NAME).write_text(json.dumps(manifest._asdict(), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Manifest | None:
    """The manifest in a folder, None if nothing was compiled into it."""
    try:
        text = folder.joinpath(NAME).read_text(encoding="utf-8")
    except OSError:
        return None
    found = json.loads(text)
    return Manifest(tuple(found["modules"]), found["digest"])
