"""Links of the README and of the documentation lead somewhere. (mkdocs --strict checks the site's own once more.)"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from support.pages import PAGES, ROOT, name

_LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|<(?:img|a)[^>]*\s(?:src|href)=\"([^\"]+)\"")
_ADDRESS = re.compile(r"https://[\w.-]+\.[a-z]+(/\S*)?|http://(localhost|127\.0\.0\.1)(:\d+)?(/\S*)?")
_CODE = re.compile(r"^( *)(```+).*?^\1\2 *$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[str]:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    return [first or second for first, second in _LINK.findall(text)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown's toc makes them, and those given in braces or HTML."""
    text = re.sub(r"^( *)(```+).*?^\1\2 *$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r"\{[^}]*#([\w-]+)[^}]*\}", text)) | set(re.findall(r'id="([\w-]+)"', text))
    for heading in re.findall(r"^#+ +(.+?)(?: +\{.*\})?$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", slug))
    return found


@pytest.mark.parametrize("page", PAGES, ids=[name(page) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if (
            not target.exists()
            or ROOT not in target.parents
            or (anchor and target.suffix == ".md" and anchor not in anchors(target))
        ):
            broken.append(link)
    assert not broken


def test_links_to_the_outside_are_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    """They are listed (run with -s), not visited: a test must not depend on other people's servers."""
    outside = sorted({link for page in PAGES for link in links(page) if link.startswith(("http://", "https://"))})
    assert outside
    for link in outside:
        print(link)
        assert re.fullmatch(
            r"https://[\w.-]+\.[a-z]+(/[^\s]*)?|http://(localhost|127\.0\.0\.1)(:\d+)?(/[^\s]*)?", link
        ), link


def test_the_public_reader_is_spared_our_workshop() -> None:
    """No path of a developer's machine in what is published."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for trace in ("/work/", "/root/", "/tmp/brief", "/home/"):
            assert trace not in text, f"{name(page)} names {trace}"
