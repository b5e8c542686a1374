"""Arrows point one way: which part of the package may import which.

    constraints -> engine -> _core
    engine.compile, which joins a constraint with a vocabulary, stands above both
    display, which shows objects that it is handed, imports nothing of the package
    decoding -> models, sampling, constraints, engine, display   (a model's generate() goes to decoding, imported late)
    batch, cli, integrations, server, explorer, lab, providers -> everything below; nothing below imports them

Imports for the type checker only (under ``if TYPE_CHECKING:``) do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import grammask

PACKAGE = Path(grammask.__file__).parent

BELOW = {
    "_compiled": set(),
    "_core": set(),
    "_version": set(),
    "engine": {"_core", "_version"},
    "sampling": {"engine"},
    "constraints": {"_core", "engine"},
    "engine.compile": {"_core", "constraints", "engine"},
    "models": {"_core", "decoding", "engine", "sampling"},
    "display": set(),
    "decoding": {"_core", "constraints", "display", "engine", "engine.compile", "models", "sampling"},
}
ON_TOP = {
    "__init__",
    "batch",
    "cli",
    "explorer",
    "hosted",
    "integrations",
    "lab",
    "programs",
    "providers",
    "server",
    "validation",
}


def layer(parts: Sequence[str]) -> str:
    """The part of the package that a dotted path below it belongs to: ``engine`` for engine.errors."""
    whole = ".".join(parts[:2])
    return whole if whole in BELOW else parts[0]


def layer_of(path: Path) -> str:
    return layer(path.relative_to(PACKAGE).with_suffix("").parts)


def is_for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported_layers(path: Path) -> Iterator[tuple[int, str]]:
    """(line, layer) of every import of another part of grammask that runs."""
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            modules = [node.module or ""]
            if node.module == "grammask":
                modules = [f"grammask.{alias.name}" for alias in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] == "grammask":
                yield node.lineno, layer(parts[1:]) if len(parts) > 1 else "__init__"
        pending.extend(
            child
            for child in ast.iter_child_nodes(node)
            if not (isinstance(child, ast.stmt) and is_for_type_checkers(child))
        )


SOURCES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=[str(p.relative_to(PACKAGE)) for p in SOURCES])
def test_imports_point_down(path: Path) -> None:
    own = layer_of(path)
    if own in ON_TOP:
        return
    allowed = BELOW[own] | {own}
    wrong = [f"{path.name}:{line} imports {name}" for line, name in imported_layers(path) if name not in allowed]
    assert not wrong, f"{own} may import {sorted(allowed)} only"


def test_every_part_has_its_place() -> None:
    assert {layer_of(path) for path in SOURCES} <= BELOW.keys() | ON_TOP
