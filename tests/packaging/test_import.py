"""``import grammask`` is light, and what it exports is complete and documented."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys

import grammask

# What is imported late, inside the functions that need it. numpy is the one required dependency.
HEAVY = {
    "asyncio",
    "gguf",
    "httpx",
    "huggingface_hub",
    "jsonschema",
    "openai",
    "pydantic",
    "regex",
    "requests",
    "rich",
    "safetensors",
    "starlette",
    "tiktoken",
    "tokenizers",
    "torch",
    "transformers",
    "typer",
    "urllib.request",
    "uvicorn",
}


def modules_after(statement: str) -> set[str]:
    """The names of all modules loaded in a fresh interpreter that has run the statement."""
    program = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


EVERY_EXPORT = "import grammask\nfor name in grammask.__all__: getattr(grammask, name)"


def test_nothing_heavy_is_imported() -> None:
    loaded = modules_after(EVERY_EXPORT)
    assert "grammask._core" in loaded
    assert not loaded & HEAVY


def test_numpy_is_the_only_requirement() -> None:
    """Third-party packages besides numpy are not imported, whatever name is used first."""
    before = modules_after("import numpy")
    new = {name.partition(".")[0] for name in modules_after(EVERY_EXPORT) - before}
    assert new - {"grammask", "numpy"} <= sys.stdlib_module_names


def test_all_is_sorted_and_complete() -> None:
    exported = list(grammask.__all__)
    assert exported == sorted(set(exported))
    for name in exported:
        assert hasattr(grammask, name), name


def test_everything_public_is_documented() -> None:
    undocumented = [
        name
        for name in grammask.__all__
        if (inspect.isclass(getattr(grammask, name)) or inspect.isfunction(getattr(grammask, name)))
        and not inspect.getdoc(getattr(grammask, name))
    ]
    assert not undocumented


def test_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert grammask.__version__ == version("grammask")


def test_type_information_is_shipped() -> None:
    from importlib.resources import files

    assert files("grammask").joinpath("py.typed").is_file()
    assert files("grammask").joinpath("_core.pyi").is_file()
