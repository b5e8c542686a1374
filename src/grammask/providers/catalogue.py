"""The catalogue: what each provider's API takes, read from one JSON file per provider and checked while reading.

A file has ``title``, ``compiled`` (the date when its facts were gathered), ``sources`` and ``apis``; an API is one
shape of request (OpenAI's Chat Completions and its Responses are two). Every fact names its source. What no source
tells is left out of the file, and ``None`` or ``"unknown"`` here: the catalogue never fills a gap with a guess.
"""

from __future__ import annotations

import datetime
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, cast, get_args

from grammask.sampling.order import STAGES

Status = Literal["accepted", "ignored", "refused", "unsupported", "absent", "unknown"]
"""accepted: has an effect. ignored: may be sent, has none. refused: an error. unsupported: in the schema, and either
ignored or refused. absent: the schema has no such field."""

Kind = Literal["code", "schema", "docs", "third-party"]
"""code: the server's own. schema: request types of a client library, which show what may be sent. docs: the provider's
pages. third-party: somebody else's."""

Form = Literal["number", "flag", "count", "list", "token-map", "token-pairs"]
"""How a value is written: as it is, as true, as a number of alternatives, as a list, as {"id": bias}, or as
[[id, bias]]."""

Scope = Literal["output", "all"]

PARAMETERS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "top_n_sigma",
    "xtc_probability",
    "xtc_threshold",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "penalty_window",
    "no_repeat_ngram_size",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_window",
    "dry_breakers",
    "logit_bias",
    "max_tokens",
    "min_tokens",
    "stop",
    "include_stop",
    "stop_token_ids",
    "seed",
    "n",
    "logprobs",
    "top_logprobs",
)
"""The settings of ``Sampling`` that a request may carry, under their names there."""

FEATURES = (
    "json_object",
    "json_schema",
    "strict",
    "regex",
    "grammar",
    "choice",
    "structural_tag",
    "tool_strict",
    "parallel_tool_calls",
    "stream",
    "system_fingerprint",
)
"""Structured output and what goes with it. ``strict`` is of a response's schema, ``tool_strict`` of a tool's."""

STALE_AFTER = datetime.timedelta(days=180)
"""Providers change their APIs often; facts older than this are told with a warning."""


class CatalogueError(ValueError):
    """A provider's file says something that it must not, or there is no such provider."""


@dataclass(frozen=True)
class Source:
    """Where a fact is from.

    Attributes:
        title: repository and file, or address.
        kind: how close to the provider it is.
        revision: commit and version; None for pages.
        date: of that revision or page; None where the source has none.
    """

    title: str
    kind: Kind
    revision: str | None = None
    date: datetime.date | None = None

    def __str__(self) -> str:
        details = [self.revision, self.date.isoformat() if self.date else "undated"]
        if self.kind == "third-party":
            details.append("third party")
        return f"{self.title} ({', '.join(filter(None, details))})"


@dataclass(frozen=True)
class Parameter:
    """One setting in one API.

    Attributes:
        name: its name in ``Sampling``.
        status: what the API does with it.
        field: where it stands in the request, dots between levels; None unless the schema has it.
        form: how its value is written.
        minimum, maximum: the range; None where not stated. above, below: the bound itself is out of range.
        max_items: of a list.
        default: what the provider takes if the field is missing; None if not stated. ``"per model"`` is a default that
            depends on the model, ``"none"`` no limit or no effect.
        off: the value that switches it off, where it is not 0 for penalties, 1 for top_p and so on.
        counts: which tokens a penalty counts; None if not stated.
        sets: other fields that must be sent along.
        raised_to: smaller positive values are raised to this one.
        meaning: how the value means something else than in ``Sampling``.
        note: whatever else there is to know.
        source: of the fact; range_source and default_source where these are from elsewhere.
    """

    name: str
    status: Status
    source: Source | None
    field: str | None = None
    form: Form = "number"
    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    below: bool = False
    max_items: int | None = None
    default: float | str | bool | None = None
    off: float | None = None
    required: bool = False
    counts: Scope | None = None
    sets: Mapping[str, Any] | None = None
    raised_to: float | None = None
    meaning: str | None = None
    note: str | None = None
    range_source: Source | None = None
    default_source: Source | None = None

    def in_range(self, value: float) -> bool:
        """Whether no source says that this value is out of range."""
        if self.minimum is not None and (value < self.minimum or (self.above and value == self.minimum)):
            return False
        return self.maximum is None or not (value > self.maximum or (self.below and value == self.maximum))

    def range_text(self) -> str:
        """The range in words: ``0 to 2``, ``above 0``; empty if not stated."""
        low = None if self.minimum is None else f"{'above ' if self.above else ''}{_number(self.minimum)}"
        high = None if self.maximum is None else f"{'below ' if self.below else ''}{_number(self.maximum)}"
        if low is not None and high is not None:
            return low if low == high else f"{low} to {high}"
        if low is not None:
            return low if self.above else f"at least {low}"
        return "" if high is None else (high if self.below else f"up to {high}")


@dataclass(frozen=True)
class Feature:
    """A structured-output feature or its neighbour: whether and how an API has it."""

    name: str
    status: Status
    source: Source | None
    how: str = ""


@dataclass(frozen=True)
class Condition:
    """A fact that holds for some models or situations only.

    Attributes:
        when: for what.
        effect: what happens there to these parameters.
        parameters: names as in ``PARAMETERS``.
    """

    when: str
    effect: Literal["refused", "ignored", "changed"]
    parameters: tuple[str, ...]
    detail: str
    source: Source


@dataclass(frozen=True)
class Statement:
    """A fact in words."""

    text: str
    source: Source


@dataclass(frozen=True)
class ApiOrder:
    """The stages that an API is known to apply, in their order, under the sampler's names."""

    stages: tuple[str, ...]
    source: Source
    note: str | None = None


@dataclass(frozen=True)
class Api:
    """One shape of request.

    Attributes:
        name, title: short and in full.
        parameters: every name of ``PARAMETERS``, in that order; ``status`` "unknown" where no source tells.
        features: likewise for ``FEATURES``.
        order: None where not known.
        unknown_fields: what happens to a field that the API does not know; None if not stated.
        greedy_fields, drawing_fields: fields that switch drawing off and on.
        conditions, remarks: what holds for some models only; what fits nowhere else.
    """

    name: str
    title: str
    parameters: Mapping[str, Parameter]
    features: Mapping[str, Feature]
    order: ApiOrder | None
    unknown_fields: Statement | None
    greedy_fields: Mapping[str, Any]
    drawing_fields: Mapping[str, Any]
    conditions: tuple[Condition, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Provider:
    """A provider: its APIs, the first of which is the usual one, and where the facts are from."""

    name: str
    title: str
    compiled: datetime.date
    sources: tuple[Source, ...]
    apis: Mapping[str, Api]

    def api(self, name: str | None = None) -> Api:
        """An API by name, the first one without.

        Raises:
            CatalogueError: there is no such API.
        """
        if name is None:
            return next(iter(self.apis.values()))
        if name not in self.apis:
            raise CatalogueError(f"{self.name} has no API {name!r}: use {_listed(self.apis)}")
        return self.apis[name]

    def age(self, today: datetime.date | None = None) -> datetime.timedelta:
        """How long ago the facts were gathered; never negative."""
        return max((today or datetime.date.today()) - self.compiled, datetime.timedelta())

    def staleness(self, today: datetime.date | None = None) -> str | None:
        """A warning if the facts are older than ``STALE_AFTER``, else None."""
        age = self.age(today)
        if age <= STALE_AFTER:
            return None
        return (
            f"the facts about {self.title} were gathered on {self.compiled}, {age.days} days ago: "
            f"compare them with the provider's documentation"
        )


@functools.cache
def names() -> tuple[str, ...]:
    """The names of all providers, alphabetically."""
    files = resources.files("grammask.providers").joinpath("data").iterdir()
    return tuple(sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json")))


@functools.cache
def load(name: str) -> Provider:
    """One provider's facts.

    Raises:
        CatalogueError: there is no such provider.
    """
    if name not in names():
        raise CatalogueError(f"no provider {name!r}: use {_listed(names())}")
    text = resources.files("grammask.providers").joinpath("data", f"{name}.json").read_text(encoding="utf-8")
    return read(name, json.loads(text))


def load_all() -> tuple[Provider, ...]:
    """All providers, alphabetically."""
    return tuple(load(name) for name in names())


def find(name: str) -> tuple[Provider, Api]:
    """A provider and one of its APIs, from ``"openai"`` or ``"openai/responses"``.

    Raises:
        CatalogueError: there is no such provider or API.
    """
    provider_name, _, api_name = name.partition("/")
    provider = load(provider_name)
    return provider, provider.api(api_name or None)


# -- reading a file


def read(name: str, data: Mapping[str, Any]) -> Provider:
    """A provider from the parsed content of its file.

    Raises:
        CatalogueError: a key, name, status, source or date is missing, unknown or malformed.
    """
    return _Reader(name, data).provider()


class _Reader:
    """Reads one file; every message begins with where in the file it is."""

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self._name = name
        self._data = data
        self._sources: dict[str, Source] = {}

    def provider(self) -> Provider:
        data = self._checked("", self._data, required={"title", "compiled", "sources", "apis"})
        for key, value in data["sources"].items():
            self._sources[key] = self._source(f"sources.{key}", value)
        apis = {key: self._api(key, value) for key, value in data["apis"].items()}
        if not apis:
            raise self._error("apis", "has no API")
        return Provider(
            self._name, data["title"], self._date("compiled", data["compiled"]), tuple(self._sources.values()), apis
        )

    def _source(self, place: str, value: Mapping[str, Any]) -> Source:
        self._checked(place, value, required={"title", "kind"}, optional={"revision", "date"})
        if value["kind"] not in get_args(Kind):
            raise self._error(place, f"has kind {value['kind']!r}: use {_listed(get_args(Kind))}")
        date = value.get("date")
        return Source(
            value["title"],
            value["kind"],
            value.get("revision"),
            None if date is None else self._date(f"{place}.date", date),
        )

    def _api(self, name: str, value: Mapping[str, Any]) -> Api:
        place = f"apis.{name}"
        self._checked(
            place,
            value,
            required={"title", "source", "parameters", "features"},
            optional={
                "absent",
                "order",
                "unknown_fields",
                "greedy_fields",
                "drawing_fields",
                "conditions",
                "remarks",
            },
        )
        source = self._cited(place, value["source"])
        return Api(
            name=name,
            title=value["title"],
            parameters=self._parameters(place, value, source),
            features=self._features(f"{place}.features", value["features"], source),
            order=self._order(f"{place}.order", value.get("order"), source),
            unknown_fields=self._statement(f"{place}.unknown_fields", value.get("unknown_fields"), source),
            greedy_fields=value.get("greedy_fields", {}),
            drawing_fields=value.get("drawing_fields", {}),
            conditions=tuple(
                self._condition(f"{place}.conditions[{index}]", condition)
                for index, condition in enumerate(value.get("conditions", ()))
            ),
            remarks=tuple(value.get("remarks", ())),
        )

    def _parameters(self, place: str, value: Mapping[str, Any], source: Source) -> dict[str, Parameter]:
        given, absent = value["parameters"], value.get("absent", [])
        self._known(f"{place}.parameters", given, PARAMETERS)
        self._known(f"{place}.absent", absent, PARAMETERS)
        if both := set(given) & set(absent):
            raise self._error(place, f"has {_listed(sorted(both))} both as a parameter and as absent")
        parameters: dict[str, Parameter] = {}
        for name in PARAMETERS:
            if name in given:
                parameters[name] = self._parameter(f"{place}.parameters.{name}", name, given[name], source)
            elif name in absent:
                parameters[name] = Parameter(name, "absent", source)
            else:
                parameters[name] = Parameter(name, "unknown", None)
        return parameters

    def _parameter(self, place: str, name: str, value: Mapping[str, Any], source: Source) -> Parameter:
        own = {attribute for attribute in Parameter.__dataclass_fields__ if attribute != "name"}
        self._checked(place, value, optional=own)
        status = value.get("status", "accepted")
        if status not in get_args(Status):
            raise self._error(place, f"has status {status!r}: use {_listed(get_args(Status))}")
        if (status in ("accepted", "ignored", "unsupported")) != ("field" in value):
            raise self._error(place, "needs a field exactly if the schema has one")
        if value.get("form", "number") not in get_args(Form):
            raise self._error(place, f"has form {value['form']!r}: use {_listed(get_args(Form))}")
        if value.get("counts", "all") not in get_args(Scope):
            raise self._error(place, f"counts {value['counts']!r}: use {_listed(get_args(Scope))}")
        given = dict(value, status=status, source=self._cited(place, value["source"]) if "source" in value else source)
        for key in ("range_source", "default_source"):
            if key in given:
                given[key] = self._cited(place, given[key])
        parameter = Parameter(name=name, **given)
        default = parameter.default
        if isinstance(default, (int, float)) and not isinstance(default, bool) and not parameter.in_range(default):
            raise self._error(place, f"has default {default}, which is out of its own range")
        return parameter

    def _features(self, place: str, value: Mapping[str, Any], source: Source) -> dict[str, Feature]:
        self._known(place, value, FEATURES)
        features: dict[str, Feature] = {}
        for name in FEATURES:
            if name not in value:
                features[name] = Feature(name, "unknown", None)
                continue
            given = value[name]
            self._checked(f"{place}.{name}", given, optional={"status", "how", "source"})
            status = given.get("status", "accepted")
            if status not in get_args(Status):
                raise self._error(f"{place}.{name}", f"has status {status!r}: use {_listed(get_args(Status))}")
            cited = self._cited(f"{place}.{name}", given["source"]) if "source" in given else source
            features[name] = Feature(name, status, cited, given.get("how", ""))
        return features

    def _order(self, place: str, value: Mapping[str, Any] | None, source: Source) -> ApiOrder | None:
        if value is None:
            return None
        self._checked(place, value, required={"stages"}, optional={"source", "note"})
        self._known(place, value["stages"], STAGES)
        cited = self._cited(place, value["source"]) if "source" in value else source
        return ApiOrder(tuple(value["stages"]), cited, value.get("note"))

    def _statement(self, place: str, value: Mapping[str, Any] | None, source: Source) -> Statement | None:
        if value is None:
            return None
        self._checked(place, value, required={"text"}, optional={"source"})
        return Statement(value["text"], self._cited(place, value["source"]) if "source" in value else source)

    def _condition(self, place: str, value: Mapping[str, Any]) -> Condition:
        self._checked(place, value, required={"when", "effect", "parameters", "source"}, optional={"detail"})
        self._known(f"{place}.parameters", value["parameters"], PARAMETERS)
        if value["effect"] not in ("refused", "ignored", "changed"):
            raise self._error(place, f"has effect {value['effect']!r}: use 'refused', 'ignored' or 'changed'")
        return Condition(
            value["when"],
            value["effect"],
            tuple(value["parameters"]),
            value.get("detail", ""),
            self._cited(place, value["source"]),
        )

    # -- checks

    def _checked(
        self,
        place: str,
        value: Mapping[str, Any],
        *,
        required: set[str] | None = None,
        optional: set[str] | None = None,
    ) -> Mapping[str, Any]:
        required, optional = required or set(), optional or set()
        if not isinstance(value, Mapping):
            raise self._error(place, "is no object")
        if missing := required - value.keys():
            raise self._error(place, f"lacks {_listed(sorted(missing))}")
        if unknown := value.keys() - required - optional:
            raise self._error(place, f"has unknown keys {_listed(sorted(unknown))}")
        return value

    def _known(self, place: str, given: Any, allowed: tuple[str, ...]) -> None:
        if unknown := set(given) - set(allowed):
            raise self._error(place, f"names {_listed(sorted(unknown))}, which is none of {_listed(allowed)}")

    def _cited(self, place: str, key: Any) -> Source:
        if key not in self._sources:
            raise self._error(place, f"cites {key!r}, which is not in sources ({_listed(self._sources)})")
        return self._sources[cast(str, key)]

    def _date(self, place: str, value: Any) -> datetime.date:
        if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            raise self._error(place, f"is {value!r}: write dates as YYYY-MM-DD")
        try:
            return datetime.date.fromisoformat(value)
        except ValueError as error:
            raise self._error(place, f"is {value!r}, which is no date") from error

    def _error(self, place: str, message: str) -> CatalogueError:
        return CatalogueError(f"{self._name}.json{': ' + place if place else ''} {message}")


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in names)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
