"""``grammask providers``: which settings a provider's API takes, and how it would say given ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grammask.cli.console import UsageError, errors_as_exit_codes, note
from grammask.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.table import Table

    from grammask.providers import Api, Provider, Translation
    from grammask.sampling import Sampling

EXAMPLES = """
Examples:

  grammask providers

  grammask providers openai/responses

  grammask providers ollama --translate '{"temperature": 0.7, "top_k": 40}'

  grammask providers --json-output > providers.json

Exit status:

  0; 1 with --strict, if something of the settings would be lost or changed; 2 wrong usage.
"""


def providers(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A provider, or provider/api. Without: all of them.")
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option("--translate", metavar="JSON", help="Settings of Sampling; print the request that says the same."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="With --translate: fail if something would be lost or changed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json-output", help="The facts, or the request, as JSON.")] = False,
) -> None:
    """Show what providers' APIs take: settings, ranges, defaults, structured output, with sources."""
    from grammask.providers import CatalogueError, TranslationError, find, load, load_all, translate

    with errors_as_exit_codes():
        if strict and settings is None:
            raise UsageError("--strict goes with --translate")
        try:
            if settings is not None:
                if name is None:
                    raise UsageError("--translate needs the NAME of a provider")
                provider = find(name)[0]
                _warn_if_stale(provider)
                translation = translate(_sampling(settings), name, strict=strict, today=provider.compiled)
                _print_translation(translation, as_json)
            elif name is None:
                known = load_all()
                if as_json:
                    _print_json({provider.name: _plain(provider) for provider in known})
                else:
                    _print_table(_overview(known))
                    _warn_if_stale(min(known, key=lambda provider: provider.compiled))
            else:
                provider, api = find(name)
                if as_json:
                    _print_json(_plain(load(provider.name)))
                else:
                    for shown in [api] if "/" in name else list(provider.apis.values()):
                        _print_api(provider, shown)
                    _print_sources(provider)
                _warn_if_stale(provider)
        except TranslationError as error:
            note(str(error))
            raise typer.Exit(ExitCode.INVALID) from error
        except CatalogueError as error:
            raise UsageError(str(error)) from error


def _sampling(text: str) -> Sampling:
    """``Sampling`` from a JSON object; keys of logit_bias are strings there."""
    from grammask.sampling import Sampling

    try:
        values = json.loads(text)
        if not isinstance(values, dict):
            raise UsageError('--translate takes a JSON object such as {"temperature": 0.7}')
        if unknown := values.keys() - Sampling.__dataclass_fields__.keys():
            raise UsageError(f"--translate has {', '.join(sorted(unknown))}, which Sampling does not have")
        if "logit_bias" in values:
            values["logit_bias"] = {int(token): bias for token, bias in values["logit_bias"].items()}
        return Sampling(**values)
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"--translate: {error}") from error


def _warn_if_stale(provider: Provider) -> None:
    stale = provider.staleness()
    if stale is not None:
        note(f"warning: {stale}")


# -- JSON


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _plain(provider: Provider) -> dict[str, Any]:
    """JSON values; what is not stated is left out."""
    import dataclasses

    def strip(value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, dict):
            stated = {key: item for key, item in value.items() if item is not None and item is not False}
            return {key: strip(item) for key, item in stated.items() if item not in ("", (), {})}
        if isinstance(value, (list, tuple)):
            return [strip(item) for item in value]
        return value if value is None or isinstance(value, (str, int, float)) else str(value)

    plain: dict[str, Any] = strip(provider)
    return plain


# -- tables


def _print_table(*tables: Table) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for table in tables:
        console.print(table)


def _overview(known: tuple[Provider, ...]) -> Table:
    from rich.table import Table

    from grammask.providers import FEATURES, PARAMETERS

    table = Table(title="Providers", caption="grammask providers NAME for one of them")
    for title in ("name", "API", "settings", "structured output"):
        table.add_column(title, overflow="fold")
    for provider in known:
        for api in provider.apis.values():
            settings = [name for name in PARAMETERS if api.parameters[name].status == "accepted"]
            shapes = [name for name in FEATURES[:7] if api.features[name].status == "accepted"]
            name = provider.name if api is provider.api() else f"{provider.name}/{api.name}"
            table.add_row(name, api.title, ", ".join(settings), ", ".join(shapes))
    return table


def _print_api(provider: Provider, api: Api) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from grammask.providers.markdown import describe

    settings = Table(title=f"{provider.title}: {api.title}")
    for title in ("setting", "status", "field", "range", "default", "remarks"):
        settings.add_column(title, overflow="fold")
    for parameter in api.parameters.values():
        if parameter.status not in ("absent", "unknown"):
            settings.add_row(parameter.name, parameter.status, *map(escape, describe(parameter)))
    features = Table()
    for title in ("feature", "status", "how"):
        features.add_column(title, overflow="fold")
    for feature in api.features.values():
        if feature.status != "unknown":
            features.add_row(feature.name, feature.status, escape(feature.how))
    _print_table(settings, features)
    lines = []
    for status in ("absent", "unknown"):
        names = [parameter.name for parameter in api.parameters.values() if parameter.status == status]
        if names:
            lines.append(f"{status}: {', '.join(names)}")
    if api.order is not None:
        lines.append(f"order: {' → '.join(api.order.stages)}" + (f" ({api.order.note})" if api.order.note else ""))
    for condition in api.conditions:
        detail = f" ({condition.detail})" if condition.detail else ""
        lines.append(f"{condition.effect} with {condition.when}: {', '.join(condition.parameters)}{detail}")
    if api.unknown_fields:
        lines.append(f"fields that it does not know: {api.unknown_fields.text}")
    console = Console(highlight=False)
    for line in (*lines, *api.remarks):
        console.print(escape(line))


def _print_sources(provider: Provider) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"facts gathered on {provider.compiled} from:", style="bold")
    for source in provider.sources:
        console.print(escape(f"- {source}"))


def _print_translation(translation: Translation, as_json: bool) -> None:
    if as_json:
        issues = [
            {"kind": issue.kind, "setting": issue.setting, "message": issue.message}
            | ({"source": str(issue.source)} if issue.source else {})
            for issue in translation.issues
        ]
        _print_json({"request": translation.request, "issues": issues})
        return
    _print_json(translation.request)
    for issue in translation.issues:
        note(str(issue))
