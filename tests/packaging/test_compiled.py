"""The compiled modules: taken where the build made them, left aside where they do not belong to the sources."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from grammask import _compiled
from grammask._compiled import CompiledModules, manifest

BUILT = _compiled.state() != "interpreted (built without compiled modules)"

PROGRAM = """
import json, sys
import grammask
from grammask import _compiled
vocabulary = grammask.Vocabulary.from_tokens([bytes([byte]) for byte in range(256)], eos_token_ids=[])
answers = []
for schema in json.loads(sys.argv[1]):
    try:
        compiled = grammask.compile(grammask.JsonSchema(schema), vocabulary)
        matcher = compiled.matcher()
        answers.append(bytes(matcher.forced_tokens()).decode())
    except grammask.ConstraintError as error:
        answers.append(f"{type(error).__name__}: {error}")
module = sys.modules["grammask.constraints.json_schema.reader"]
print(json.dumps([_compiled.state(), module.__file__.rpartition('.')[2], answers]))
"""

SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    {"enum": [[1, {"b": 2, "a": 1}], [1, {"b": 2, "a": 2}]]},
    {"type": "string", "pattern": "^(?=ab)[a-z]{2}c$"},
    {"type": "nothing"},
    {"type": "string", "pattern": "(" * 200 + ")" * 200},
    {"minimum": "1"},
    {"properties": {"a": 3}},
    {"required": [["a"]]},
    {"type": "integer", "minimum": 2, "maximum": 1},
    {"const": {"a": [1, "\ud800"]}},
    {"$ref": "#/nowhere"},
]


def ran(compiled: str) -> list[object]:
    environment = {**os.environ, _compiled.SWITCH: compiled}
    program = [sys.executable, "-c", PROGRAM, json.dumps(SCHEMAS)]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env=environment)
    answers: list[object] = json.loads(done.stdout)
    return answers


@pytest.mark.skipif(not BUILT, reason="built without compiled modules")
def test_compiled_modules_run_and_answer_as_the_interpreted_ones_do() -> None:
    state, ending, answers = ran("1")
    plain_state, plain_ending, plain_answers = ran("0")
    assert plain_state == "interpreted (GRAMMASK_COMPILED=0)"
    assert plain_ending == "py"
    if state == "compiled":
        assert f".{ending}" in {Path(suffix).suffix for suffix in EXTENSION_SUFFIXES}
    else:
        assert state == "interpreted (the sources were edited after they were compiled)"
        assert ending == "py"
    assert answers == plain_answers


@pytest.fixture
def package(tmp_path: Path) -> tuple[Path, manifest.Manifest]:
    """A package of two modules, and the manifest of both."""
    folder = tmp_path / "pack" / "inner"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("x = 1\n")
    (folder / "two.py").write_text("x = 2\n")
    names = ("pack.inner.one", "pack.inner.two")
    return tmp_path, manifest.Manifest(names, manifest.digest(tmp_path, names))


def test_only_modules_whose_sources_are_the_compiled_ones_are_found(package: tuple[Path, manifest.Manifest]) -> None:
    root, made = package
    finder = CompiledModules(made, root / "compiled", root)
    spec = finder.find_spec("pack.inner.one")
    assert spec is not None
    assert spec.origin == str(root / "compiled" / ("pack.inner.one" + EXTENSION_SUFFIXES[0]))
    assert finder.find_spec("pack.inner.three") is None

    (root / "pack/inner/two.py").write_text("x = 3\n")
    edited = CompiledModules(made, root / "compiled", root)
    assert not edited.current
    assert edited.find_spec("pack.inner.one") is None


def test_text_that_moves_from_one_module_to_the_next_is_an_edit(package: tuple[Path, manifest.Manifest]) -> None:
    root, made = package
    (root / "pack/inner/one.py").write_text("x = 1\nx = 2\n")
    (root / "pack/inner/two.py").write_text("")
    assert manifest.digest(root, made.modules) != made.digest


def test_without_sources_the_compiled_modules_are_all_there_is(package: tuple[Path, manifest.Manifest]) -> None:
    root, made = package
    (root / "pack/inner/one.py").unlink()
    assert CompiledModules(made, root / "compiled", root).current


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path, package: tuple[Path, manifest.Manifest]) -> None:
    assert manifest.read(tmp_path) is None
    manifest.write(tmp_path, package[1])
    assert manifest.read(tmp_path) == package[1]
