"""The plot of the README shows the figures of the benchmark page."""

from __future__ import annotations

from benchmarks.proof import PAGE, PICTURE, engines, picture


def test_the_plot_is_drawn_from_the_page() -> None:
    found = engines(PAGE.read_text(encoding="utf-8"))
    assert {engine.name for engine in found} >= {"grammask", "grammask-any", "llguidance"}
    for engine in found:
        assert 0 <= engine.passed <= 100
    assert PICTURE.read_text(encoding="utf-8") == picture(found), "run: python -m benchmarks.proof"
