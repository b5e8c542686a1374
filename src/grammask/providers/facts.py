"""The facts of the catalogue: providers, their APIs, parameters and features, each with its source.

What no source tells is ``None`` or ``"unknown"``: the catalogue never fills a gap with a guess.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

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
            raise CatalogueError(f"{self.name} has no API {name!r}: use {listed(self.apis)}")
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


def listed(names: Iterable[Any]) -> str:
    """Names in quotes with commas between."""
    return ", ".join(repr(name) for name in names)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"
