"""The catalogue as a page of documentation.

``python -m grammask.providers.markdown > docs/reference/providers.md`` writes it; a test holds the page to the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grammask.providers.catalogue import load_all
from grammask.providers.facts import FEATURES, PARAMETERS, Api, Feature, Parameter, Provider

INTRODUCTION = """\
# Providers

Which settings each provider's API takes, under which names, and what they mean there. This page is generated from the
data of `grammask.providers` (`python -m grammask.providers.markdown`), and `grammask providers NAME` prints the same
for one provider. Every fact has a source; what no source tells is *unknown* and stays so.

```python
from grammask import Sampling
from grammask.providers import translate

translation = translate(Sampling(temperature=0.7, top_k=40), "openai")
translation.request  # {"temperature": 0.7}
for issue in translation.issues:
    print(issue)  # lost: top_k: OpenAI has no such field ...
```

`translate` gives the fields to put into a request, and what they do not say. An issue is *lost* (not in the request, or
without effect), *changed* (in effect, but with another meaning: another order of stages, another count of tokens, a
default of the provider's that cannot be switched off), or a *note* (holds for some models, or is not known). With
`strict=True` anything lost or changed raises `TranslationError`. A value out of a provider's range is left out and
listed, never bent. Settings that are off in `Sampling` but on by default at a provider are sent with the value that
switches them off. `"openai/responses"` names an API other than a provider's first. Facts older than half a year come
with a `StaleCatalogueWarning`.
"""

_COMMON = 3
"""The overview has a column for settings that at least so many APIs have."""

_MARKS = {
    "accepted": "yes",
    "ignored": "ignored",
    "refused": "refused",
    "unsupported": "unsupported",
    "absent": "–",
    "unknown": "?",
}


def page(providers: Sequence[Provider] | None = None) -> str:
    """The whole page."""
    providers = load_all() if providers is None else providers
    parts = [INTRODUCTION, _overview(providers), *(_section(provider) for provider in providers)]
    return "\n".join(parts)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def describe(parameter: Parameter) -> tuple[str, str, str, str]:
    """Field, range, default and remarks of a parameter, as words; empty where not stated."""
    default = "" if parameter.default is None else _plain(parameter.default)
    remarks: list[str] = []
    if parameter.status != "accepted":
        remarks.append(parameter.status)
    if parameter.required:
        remarks.append("required")
    if parameter.max_items is not None:
        remarks.append(f"at most {parameter.max_items} entries")
    if parameter.raised_to is not None:
        remarks.append(f"smaller positive values are raised to {parameter.raised_to:g}")
    if parameter.counts is not None:
        remarks.append("counts prompt and output" if parameter.counts == "all" else "counts the output")
    remarks.extend(filter(None, (parameter.meaning, parameter.note)))
    return parameter.field or "", parameter.range_text(), default, "; ".join(remarks)


def _overview(providers: Sequence[Provider]) -> str:
    apis = [(provider, api) for provider in providers for api in provider.apis.values()]
    used = [name for name in PARAMETERS if sum(api.parameters[name].status == "accepted" for _, api in apis) >= _COMMON]
    legend = "A range or *yes*: has an effect; –: the request has no such field; ?: unknown."
    settings = table(
        ["", *(f"`{name}`" for name in used)],
        [[_api_name(provider, api), *(_mark(api.parameters[name]) for name in used)] for provider, api in apis],
    )
    features = table(
        ["", *FEATURES],
        [[_api_name(provider, api), *(_mark(api.features[name]) for name in FEATURES)] for provider, api in apis],
    )
    return f"## Overview\n\n{legend}\n\n### Settings\n\n{settings}\n### Structured output\n\n{features}"


def _section(provider: Provider) -> str:
    numbers = {source: number for number, source in enumerate(provider.sources, 1)}
    parts = [f"## {provider.title}\n\nName: `{provider.name}`. Facts gathered on {provider.compiled}.\n"]
    for api in provider.apis.values():
        cite = "[{}]".format
        rows = []
        for parameter in api.parameters.values():
            if parameter.field is None and parameter.status != "refused":
                continue
            field, bounds, default, remarks = describe(parameter)
            cited = dict.fromkeys(
                source
                for source in (parameter.source, parameter.range_source, parameter.default_source)
                if source is not None
            )
            sources = " ".join(cite(numbers[source]) for source in cited)
            rows.append([f"`{parameter.name}`", f"`{field}`" if field else "", bounds, default, remarks, sources])
        parts.append(f"### {provider.title}: {api.title}\n")
        parts.append(table(["setting", "field", "range", "default", "remarks", "source"], rows))
        parts.append(_lines_of(api, {source: cite(number) for source, number in numbers.items()}))
    parts.append("Sources:\n")
    parts.append("".join(f"{number}. {source}\n" for source, number in numbers.items()))
    return "\n".join(parts)


def _lines_of(api: Api, cite: dict[object, str]) -> str:
    lines = []
    absent = [f"`{name}`" for name, parameter in api.parameters.items() if parameter.status == "absent"]
    unknown = [f"`{name}`" for name, parameter in api.parameters.items() if parameter.status == "unknown"]
    if absent:
        lines.append(f"No such field: {', '.join(absent)}.")
    if unknown:
        lines.append(f"Unknown: {', '.join(unknown)}.")
    for feature in api.features.values():
        if feature.status in ("accepted", "ignored"):
            how = f": {feature.how}" if feature.how else ""
            lines.append(f"{feature.name}{how} {cite[feature.source]}")
    if api.order is not None:
        note = f" ({api.order.note})" if api.order.note else ""
        lines.append(f"Order: {' → '.join(api.order.stages)}{note} {cite[api.order.source]}")
    for condition in api.conditions:
        named = ", ".join(f"`{name}`" for name in condition.parameters)
        detail = f" ({condition.detail})" if condition.detail else ""
        lines.append(f"{condition.effect.capitalize()} with {condition.when}: {named}{detail} {cite[condition.source]}")
    if api.unknown_fields:
        statement = api.unknown_fields
        lines.append(f"Fields that it does not know: {statement.text} {cite[statement.source]}")
    lines.extend(api.remarks)
    return "".join(f"- {line}\n" for line in lines)


def _api_name(provider: Provider, api: Api) -> str:
    first = provider.api() is api
    return f"{provider.title}" if first and len(provider.apis) == 1 else f"{provider.title}: {api.title}"


def _mark(fact: Parameter | Feature) -> str:
    if isinstance(fact, Parameter) and fact.status == "accepted":
        return fact.range_text() or "yes"
    return _MARKS[fact.status]


def _plain(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else f"{value:g}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    import sys

    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    sys.stdout.write(page())
