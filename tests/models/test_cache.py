"""The cache folder: where it is, and that a folder in it is always whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grammask.models.cache import cache_directory, cached_folder


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", staticmethod(lambda: tmp_path / "home"))
    for name in ("GRAMMASK_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "home/.cache/grammask"),
        ("linux", {"XDG_CACHE_HOME": "TMP/xdg"}, "xdg/grammask"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/grammask"),
        ("linux", {"XDG_CACHE_HOME": ""}, "home/.cache/grammask"),
        ("darwin", {"XDG_CACHE_HOME": "TMP/xdg"}, "home/Library/Caches/grammask"),
        ("win32", {"LOCALAPPDATA": "TMP/local"}, "local/grammask/Cache"),
        ("win32", {}, "home/AppData/Local/grammask/Cache"),
        ("linux", {"GRAMMASK_CACHE": "TMP/mine", "XDG_CACHE_HOME": "TMP/xdg"}, "mine"),
        ("darwin", {"GRAMMASK_CACHE": "TMP/mine"}, "mine"),
    ],
)
def test_cache_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.replace("TMP", str(tmp_path)))
    assert cache_directory() == tmp_path / expected


def test_a_folder_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAMMASK_CACHE", str(tmp_path / "cache"))
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("content")

    first = cached_folder("name", build)
    assert first == tmp_path / "cache" / "name"
    assert (first / "file").read_text() == "content"
    assert cached_folder("name", build) == first
    assert len(built) == 1
    assert [path.name for path in first.parent.iterdir()] == ["name"]


def test_a_failed_build_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAMMASK_CACHE", str(tmp_path))

    def build(folder: Path) -> None:
        (folder / "half").write_text("")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        cached_folder("name", build)
    assert list(tmp_path.iterdir()) == []


def test_of_two_builders_one_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAMMASK_CACHE", str(tmp_path))

    def slow(folder: Path) -> None:
        (folder / "file").write_text("slow")
        cached_folder("name", lambda other: (other / "file").write_text("quick") and None)

    assert (cached_folder("name", slow) / "file").read_text() == "quick"
    assert [path.name for path in tmp_path.iterdir()] == ["name"]
