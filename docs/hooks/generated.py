"""What the site says and does not store: the Python interface from its docstrings, and the JSON Schema suite's state.

mkdocs calls ``on_page_markdown`` for every page. A line ``::: grammask.Name`` becomes the description of that object, a
line ``::: the-other-names`` that of every name which the package exports and the page does not mention, and a line
``::: json-schema-suite`` the table of the official test suite, from the record that the tests hold the library to.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "tests" / "json_schema" / "suite_expected.json"

_DIRECTIVE = re.compile(r"^::: ([\w.-]+)$", re.MULTILINE)
_SECTION = re.compile(r"^(?P<title>[A-Z][\w ,()/-]*):$")
_ITEM = re.compile(r"^(?P<name>\*{0,2}[\w., *]+?)(?: \((?P<kind>[^)]*)\))?: (?P<text>.*)$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The hook."""
    named = set(_DIRECTIVE.findall(markdown))
    return _DIRECTIVE.sub(lambda found: _expanded(found[1], named), markdown)


def _expanded(name: str, named: set[str]) -> str:
    if name == "json-schema-suite":
        return suite()
    if name == "the-other-names":
        return "\n\n".join(described(other) for other in other_names(named))
    return described(name)


def other_names(named: set[str]) -> list[str]:
    """The classes and functions that ``grammask`` exports, less those named."""
    import grammask

    paths = [f"grammask.{name}" for name in grammask.__all__]
    return [path for path in paths if path not in named and callable(_find(path))]


# -- the Python interface


def described(path: str) -> str:
    """One object: heading, signature, docstring, and for classes their public methods and properties.

    Raises:
        AttributeError, ImportError: there is no such object, which fails the build.
    """
    found = _find(path)
    name = path.rpartition(".")[2]
    parts = [f"### `{name}` {{: #{path} }}", _signature(found, name), _markdown(inspect.getdoc(found))]
    if inspect.isclass(found):
        for member, value in vars(found).items():
            if member.startswith("_") or member == "lower":
                continue
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not (inspect.isroutine(function) or isinstance(value, property)) or not inspect.getdoc(function):
                continue
            kind = " *property*" if isinstance(value, property) else ""
            signature = "" if kind else _signature(getattr(found, member), member)
            parts += [f"#### `{name}.{member}`{kind} {{: #{path}.{member} }}", signature]
            parts.append(_markdown(inspect.getdoc(function)))
    return "\n\n".join(part for part in parts if part)


def _find(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _signature(found: Any, name: str) -> str:
    if inspect.isclass(found) and issubclass(found, BaseException):
        return ""
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return ""
    if inspect.isclass(found) and not signature.parameters:
        return ""
    kept = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    words = [str(parameter).replace("'", "") for parameter in kept]
    star = next((i for i, parameter in enumerate(kept) if parameter.kind is parameter.KEYWORD_ONLY), None)
    if star is not None and not any(parameter.kind is parameter.VAR_POSITIONAL for parameter in kept):
        words.insert(star, "*")
    returned = signature.return_annotation
    arrow = "" if returned in (inspect.Signature.empty, "None", None) or inspect.isclass(found) else f" -> {returned}"
    arrow = arrow.replace("'", "").replace("<class ", "").rstrip(">") if "<class" in arrow else arrow.replace("'", "")
    line = f"{name}({', '.join(words)}){arrow}"
    if len(line) > 96:
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){arrow}"
    return f"```text\n{line}\n```"


def _markdown(docstring: str | None) -> str:
    """A docstring of this project as Markdown: sections such as ``Args:`` become lists, literals single quotes."""
    lines = (docstring or "").replace("``", "`").splitlines()
    written: list[str] = []
    number = 0
    while number < len(lines):
        section = _SECTION.match(lines[number])
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if section is None or not following.startswith("    "):
            written.append(lines[number])
            number += 1
            continue
        end = number + 1
        while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
            end += 1
        body = textwrap.dedent("\n".join(lines[number + 1 : end])).strip("\n")
        written += [f"**{section['title']}**", "", _items(body), ""]
        number = end
    return _tables("\n".join(written)).strip("\n")


def _items(body: str) -> str:
    """The entries of a section, ``name: text`` with indented continuation lines, as a list; other text as it is."""
    entries: list[str] = []
    for line in body.splitlines():
        item = _ITEM.match(line)
        if item is not None and not line.startswith(" "):
            kind = f" ({item['kind']})" if item["kind"] else ""
            entries.append(f"* `{item['name']}`{kind}: {item['text']}")
        elif entries:
            entries.append(f"  {line.strip()}" if line.strip() else "")
        else:
            return body
    return "\n".join(entries)


def _tables(text: str) -> str:
    """Tables of plain text, between lines of equals signs, as code."""
    lines = text.splitlines()
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"=+(  +=+)+", line.strip())]
    for opening, closing in reversed(list(zip(rules[::2], rules[1::2], strict=False))):
        lines[opening : closing + 1] = [
            "```text",
            *(line.replace("`", "") for line in lines[opening + 1 : closing]),
            "```",
        ]
    return "\n".join(lines)


# -- the official test suite of JSON Schema


def suite() -> str:
    """Per draft: tests, how many come out right, and what the others are."""
    record = json.loads(SUITE.read_text(encoding="utf-8"))
    rows = [
        "| draft | tests | right | refused | over | under | not right, by file |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for draft, count in record["tests"].items():
        wrong = {name: outcome for name, outcome in record["not_passed"].items() if name.startswith(f"{draft}/")}
        outcomes = Counter(wrong.values())
        files = Counter(name.partition(".json")[0].removeprefix(f"{draft}/") for name in wrong)
        listed = ", ".join(f"`{file}` ({number})" for file, number in files.most_common())
        cells = [draft, f"{count:,}", f"{count - len(wrong):,}"]
        cells += [str(outcomes.get(kind, 0)) for kind in ("unsupported", "over", "under")]
        rows.append("| " + " | ".join([*cells, listed or "none"]) + " |")
    return "\n".join(rows)
