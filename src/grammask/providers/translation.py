"""``translate``: from ``Sampling`` to the fields of a provider's request, and what is lost or changed on the way.

The same names mean different things elsewhere, so a translation is only worth something together with its list of
issues. Nothing out of range is bent into range: such a value is left out and listed.
"""

from __future__ import annotations

import datetime
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from grammask.providers.catalogue import find
from grammask.providers.facts import Api, Parameter, Provider, Source
from grammask.sampling import Sampling
from grammask.sampling.order import CUT_STAGES

IssueKind = Literal["lost", "changed", "note"]


class TranslationError(ValueError):
    """A strict translation that would lose or change something.

    Attributes:
        issues: what.
    """

    def __init__(self, message: str, issues: tuple[Issue, ...]) -> None:
        super().__init__(message)
        self.issues = issues


class StaleCatalogueWarning(UserWarning):
    """The facts about a provider are old."""


@dataclass(frozen=True)
class Issue:
    """One way in which a request says less, or something else, than the settings.

    Attributes:
        kind: ``"lost"``: not in the request, or without effect. ``"changed"``: in effect, but not as in ``Sampling``.
            ``"note"``: may be so, or is not known.
        setting: its name in ``Sampling``, or several with commas between.
        source: of the fact behind it, if one is.
    """

    kind: IssueKind
    setting: str
    message: str
    source: Source | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.setting}: {self.message}"


@dataclass(frozen=True)
class Translation:
    """The fields to put into a request, and what they do not say.

    Attributes:
        provider, api: names in the catalogue.
        request: JSON values, nested as the API wants them.
        issues: in the order of the settings.
    """

    provider: str
    api: str
    request: Mapping[str, Any]
    issues: tuple[Issue, ...]

    @property
    def exact(self) -> bool:
        """Nothing is lost or changed; notes may remain."""
        return all(issue.kind == "note" for issue in self.issues)

    def of_kind(self, kind: IssueKind) -> tuple[Issue, ...]:
        """The issues of one kind."""
        return tuple(issue for issue in self.issues if issue.kind == kind)


def translate(
    sampling: Sampling, provider: str, *, strict: bool = False, today: datetime.date | None = None
) -> Translation:
    """The request fields that say what ``sampling`` says.

    Args:
        sampling: the settings.
        provider: a name in the catalogue, ``"openai"``, or with an API other than the first, ``"openai/responses"``.
        strict: raise where something would be lost or changed.
        today: the date against which the age of the facts is measured.

    Raises:
        CatalogueError: there is no such provider or API.
        TranslationError: strict, and something would be lost or changed.

    Warns:
        StaleCatalogueWarning: the facts are older than half a year.
    """
    known, api = find(provider)
    stale = known.staleness(today)
    if stale is not None:
        warnings.warn(stale, StaleCatalogueWarning, stacklevel=2)
    translation = _Translator(sampling, known, api).run()
    if strict and not translation.exact:
        serious = (*translation.of_kind("lost"), *translation.of_kind("changed"))
        lines = "".join(f"\n  {issue}" for issue in serious)
        raise TranslationError(f"{known.title} ({api.title}) cannot do this as it is meant:{lines}", serious)
    return translation


_NEUTRAL: Mapping[str, float | None] = {
    "temperature": 1.0,
    "top_k": None,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "xtc_probability": 0.0,
    "dry_multiplier": 0.0,
}
"""Settings that a provider may have on by default, and the value that switches each off; None: it differs."""

_COUNTED = ("presence_penalty", "frequency_penalty", "repetition_penalty")
"""Penalties that count tokens, within ``penalty_window``."""

_PENALTIES = (*_COUNTED, "no_repeat_ngram_size", "dry_multiplier")

_DETAILS = {
    "xtc_threshold": "xtc_probability",
    "dry_base": "dry_multiplier",
    "dry_allowed_length": "dry_multiplier",
    "dry_window": "dry_multiplier",
    "dry_breakers": "dry_multiplier",
}
"""Settings that matter only with another one."""

_STAGE_OF = {
    "logit_bias": "logit_bias",
    "repetition_penalty": "repetition",
    "presence_penalty": "presence_frequency",
    "frequency_penalty": "presence_frequency",
    "dry_multiplier": "dry",
    "min_tokens": "min_tokens",
    "temperature": "temperature",
    "top_n_sigma": "top_n_sigma",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "typical_p": "typical_p",
    "xtc_probability": "xtc",
}


class _Translator:
    """One translation: fields and issues as they come up."""

    def __init__(self, sampling: Sampling, provider: Provider, api: Api) -> None:
        self._sampling = sampling
        self._provider = provider
        self._api = api
        self._request: dict[str, Any] = {}
        self._issues: list[Issue] = []
        self._sent: list[str] = []
        """Settings with an effect in the request."""

    def run(self) -> Translation:
        for name, parameter in self._api.parameters.items():
            if self._is_set(name):
                self._put(parameter)
            else:
                self._leave_off(parameter)
        self._switch_drawing()
        self._check_scopes()
        self._check_order()
        self._check_conditions()
        self._check_structure()
        return Translation(self._provider.name, self._api.name, self._request, tuple(self._issues))

    def _issue(self, kind: IssueKind, setting: str, message: str, source: Source | None = None) -> None:
        self._issues.append(Issue(kind, setting, message, source))

    # -- single settings

    def _is_set(self, name: str) -> bool:
        """Whether the settings say something that a request should say."""
        sampling = self._sampling
        if name in _DETAILS and _DETAILS[name] not in self._sent:
            return False
        if name == "penalty_window":
            return any(penalty in self._sent for penalty in _COUNTED) and self._window() is not None
        if name in ("xtc_threshold", "dry_base", "dry_allowed_length", "dry_breakers"):
            return True
        value = getattr(sampling, name)
        if name in ("top_p", "min_p", "typical_p") and value == _NEUTRAL[name]:
            return False
        default = type(sampling).__dataclass_fields__[name].default
        return value is not None and value != default and value not in ((), {})

    def _window(self) -> int | None:
        """How many of the latest tokens penalties count; None for all."""
        return self._sampling.penalty_window or self._sampling.stages.window

    def _value(self, name: str) -> Any:
        value = self._window() if name == "penalty_window" else getattr(self._sampling, name)
        return 0.0 if name == "temperature" and self._sampling.is_greedy else value

    def _put(self, parameter: Parameter) -> None:
        """A setting that is on."""
        name, status = parameter.name, parameter.status
        if status != "accepted":
            reason = {
                "ignored": f"{self._provider.title} accepts it and ignores it",
                "refused": f"{self._provider.title} refuses it",
                "unsupported": f"{self._provider.title} does not support it",
                "absent": f"{self._provider.title} has no such field",
                "unknown": f"whether {self._provider.title} has such a field is not known",
            }[status]
            self._issue("lost", name, reason + (f" ({parameter.note})" if parameter.note else ""), parameter.source)
            return
        value = self._value(name)
        if name == "temperature" and self._sampling.is_greedy and not parameter.in_range(0):
            if not self._api.greedy_fields:
                self._out_of_range(parameter, value)
            else:
                self._sent.append(name)
            return
        written = self._written(parameter, value)
        if written is None:
            return
        self._send(parameter, written)
        if parameter.meaning:
            self._issue("changed", name, parameter.meaning, parameter.source)
        if parameter.raised_to is not None and 0 < value < parameter.raised_to:
            self._issue("changed", name, f"{value:g} is raised to {parameter.raised_to:g}", parameter.source)
        if name == "temperature" and self._sampling.is_greedy and parameter.note:
            self._issue("note", name, parameter.note, parameter.source)
        if name == "seed":
            message = "names the provider's own random numbers: equal to themselves at best, never to grammask's"
            self._issue("note", name, message, parameter.source)

    def _send(self, parameter: Parameter, written: Any) -> None:
        if parameter.sets:
            for field, value in parameter.sets.items():
                self._set_field(field, value)
        if not parameter.sets or parameter.field not in parameter.sets:
            self._set_field(parameter.field or parameter.name, written)
        self._sent.append(parameter.name)

    def _set_field(self, path: str, value: Any) -> None:
        *levels, last = path.split(".")
        place = self._request
        for level in levels:
            place = place.setdefault(level, {})
        place[last] = value

    def _written(self, parameter: Parameter, value: Any) -> Any:
        """The JSON value of a setting, or None with an issue where there is none."""
        if parameter.form == "flag":
            return True
        if parameter.form == "count":
            value = max(1, self._sampling.top_logprobs)
        if parameter.form == "list":
            return self._written_list(parameter, list(value))
        if parameter.form in ("token-map", "token-pairs"):
            return self._written_biases(parameter, value)
        if not parameter.in_range(value):
            self._out_of_range(parameter, value)
            return None
        return value

    def _written_list(self, parameter: Parameter, value: list[Any]) -> list[Any] | None:
        if parameter.name == "dry_breakers" and any(isinstance(breaker, int) for breaker in value):
            self._issue("lost", parameter.name, "breakers that are token ids cannot be sent", parameter.source)
            value = [breaker for breaker in value if isinstance(breaker, str)]
        if parameter.max_items is not None and len(value) > parameter.max_items:
            message = f"has {len(value)} entries, and {self._provider.title} takes at most {parameter.max_items}"
            self._issue("lost", parameter.name, message, parameter.source)
            return None
        return value

    def _written_biases(self, parameter: Parameter, biases: Mapping[int, float]) -> Any:
        low = parameter.minimum
        finite: dict[int, float] = {token: bias for token, bias in biases.items() if bias != -math.inf}
        wrong = [bias for bias in finite.values() if not parameter.in_range(bias)]
        if wrong:
            self._out_of_range(parameter, wrong[0])
            return None
        banned = [token for token in biases if token not in finite]
        self._issue("note", "logit_bias", "token ids are those of the model's own tokenizer", parameter.source)
        if parameter.form == "token-pairs":
            return [[token, False if token in banned else bias] for token, bias in biases.items()]
        if banned and low is None:
            self._issue("lost", "logit_bias", f"how to exclude tokens ({banned}) is not stated", parameter.source)
        elif low is not None and banned:
            message = f"-inf becomes {low:g} (tokens {banned}): very unlikely rather than impossible"
            self._issue("changed", "logit_bias", message, parameter.source)
            finite |= dict.fromkeys(banned, low)
        written = {str(token): finite[token] for token in biases if token in finite}
        return written or None

    def _out_of_range(self, parameter: Parameter, value: Any) -> None:
        message = f"{value:g} is out of the range of {self._provider.title}: {parameter.range_text()}"
        self._issue("lost", parameter.name, message, parameter.range_source or parameter.source)

    # -- settings that are off, where a provider may have something on

    def _leave_off(self, parameter: Parameter) -> None:
        name, default = parameter.name, parameter.default
        if parameter.status != "accepted":
            return
        if name == "max_tokens":
            self._leave_length_open(parameter)
        elif name == "penalty_window":
            self._leave_window_open(parameter, _COUNTED)
        elif name == "dry_window":
            self._leave_window_open(parameter, ("dry_multiplier",))
        elif name in _NEUTRAL and not (self._sampling.is_greedy and name in CUT_STAGES):
            off = _NEUTRAL[name] if parameter.off is None else parameter.off
            if default == "none" or (default is not None and default == off):
                return
            if default is None and name != "temperature":
                self._issue("note", name, "is off here and not sent; what the provider then takes is not stated")
            elif off is None:
                message = f"is off here, but {self._provider.title} takes {default}; how to switch it off is not stated"
                self._issue("changed", name, message, parameter.default_source or parameter.source)
            elif not parameter.in_range(off):
                message = (
                    f"is off here, but {self._provider.title} takes {default}, and the range is "
                    f"{parameter.range_text()}"
                )
                self._issue("changed", name, message, parameter.default_source or parameter.source)
            else:
                self._send(parameter, off)

    def _leave_length_open(self, parameter: Parameter) -> None:
        if parameter.required:
            self._issue("lost", "max_tokens", f"{self._provider.title} requires it: set max_tokens", parameter.source)
        elif isinstance(parameter.default, (int, float)) and parameter.default > 0:
            message = f"without a limit here, {self._provider.title} stops after {parameter.default:g} tokens"
            self._issue("changed", "max_tokens", message, parameter.default_source or parameter.source)

    def _leave_window_open(self, parameter: Parameter, penalties: tuple[str, ...]) -> None:
        if not any(name in self._sent and self._is_set(name) for name in penalties):
            return
        if parameter.off is not None:
            self._send(parameter, parameter.off)
        elif parameter.default is not None:
            message = f"counts all tokens here, and the latest {parameter.default} at {self._provider.title}"
            self._issue("changed", parameter.name, message, parameter.default_source or parameter.source)

    # -- what settings mean together

    def _switch_drawing(self) -> None:
        fields = self._api.greedy_fields if self._sampling.is_greedy else self._api.drawing_fields
        for path, value in fields.items():
            self._set_field(path, value)

    def _check_scopes(self) -> None:
        sampling = self._sampling
        counted = {
            "presence_penalty": sampling.penalty_scope or sampling.stages.count_scope,
            "frequency_penalty": sampling.penalty_scope or sampling.stages.count_scope,
            "repetition_penalty": sampling.repetition_scope or sampling.stages.repetition_scope,
        }
        words = {"output": "the output", "all": "prompt and output", "prompt": "the prompt"}
        for name, scope in counted.items():
            parameter = self._api.parameters[name]
            if not self._is_set(name) or name not in self._sent:
                continue
            if parameter.counts is not None and parameter.counts != scope:
                message = f"counts {words[scope]} here, and {words[parameter.counts]} at {self._provider.title}"
                self._issue("changed", name, message, parameter.source)

    def _check_order(self) -> None:
        """Stages that act in another order there. Only pairs whose order can matter are told."""
        ours = [stage for stage in self._sampling.stages.stages if stage in self._acting()]
        pairs = [pair for pair in combinations(ours, 2) if self._order_matters(*pair)]
        if not pairs:
            return
        order = self._api.order
        if order is None:
            self._issue("note", "order", f"the order in which {self._provider.title} applies {_and(ours)} is not known")
            return
        placed = {stage: position for position, stage in enumerate(order.stages)}
        swapped = [pair for pair in pairs if all(s in placed for s in pair) and placed[pair[0]] > placed[pair[1]]]
        if swapped:
            told = _and([f"{second} before {first}" for first, second in swapped])
            message = f"{self._provider.title} applies {told}, the settings the other way round"
            self._issue("changed", "order", message + (f" ({order.note})" if order.note else ""), order.source)
        loose = sorted({stage for pair in pairs for stage in pair if stage not in placed})
        if loose:
            self._issue("note", "order", f"where {self._provider.title} applies {_and(loose)} is not known")

    def _acting(self) -> set[str]:
        """The stages of the settings that the request switches on."""
        return {_STAGE_OF[name] for name in self._sent if name in _STAGE_OF and self._is_set(name)}

    def _order_matters(self, first: str, second: str) -> bool:
        """Adding numbers commutes; with greedy decoding neither cuts nor the temperature move the best token."""
        adding = {"logit_bias", "presence_frequency", "dry", "min_tokens"}
        if first in adding and second in adding:
            return False
        choosing = {"temperature", *CUT_STAGES}
        return not (self._sampling.is_greedy and first in choosing and second in choosing)

    def _check_conditions(self) -> None:
        for condition in self._api.conditions:
            names = [name for name in condition.parameters if name in self._sent]
            if names:
                detail = f" ({condition.detail})" if condition.detail else ""
                self._issue(
                    "note", ", ".join(names), f"{condition.effect} with {condition.when}{detail}", condition.source
                )

    def _check_structure(self) -> None:
        if self._sampling.penalize_structured:
            return
        for name in _PENALTIES:
            if name in self._sent and self._is_set(name):
                message = "is off under a structured constraint in grammask, and stays on in a request"
                self._issue("note", name, message)


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
