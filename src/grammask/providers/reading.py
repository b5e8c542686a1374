"""One JSON file per provider, read and checked.

A file has ``title``, ``compiled`` (the date when its facts were gathered), ``sources`` and ``apis``; an API is one
shape of request (OpenAI's Chat Completions and its Responses are two). Every fact names its source, by default that of
its API. What no source tells is left out of the file.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any, cast, get_args

from grammask.providers.facts import (
    FEATURES,
    PARAMETERS,
    Api,
    ApiOrder,
    CatalogueError,
    Condition,
    Feature,
    Form,
    Kind,
    Parameter,
    Provider,
    Scope,
    Source,
    Statement,
    Status,
    listed,
)
from grammask.sampling.order import STAGES


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
            raise self._error(place, f"has kind {value['kind']!r}: use {listed(get_args(Kind))}")
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
            raise self._error(place, f"has {listed(sorted(both))} both as a parameter and as absent")
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
            raise self._error(place, f"has status {status!r}: use {listed(get_args(Status))}")
        if (status in ("accepted", "ignored", "unsupported")) != ("field" in value):
            raise self._error(place, "needs a field exactly if the schema has one")
        if value.get("form", "number") not in get_args(Form):
            raise self._error(place, f"has form {value['form']!r}: use {listed(get_args(Form))}")
        if value.get("counts", "all") not in get_args(Scope):
            raise self._error(place, f"counts {value['counts']!r}: use {listed(get_args(Scope))}")
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
                raise self._error(f"{place}.{name}", f"has status {status!r}: use {listed(get_args(Status))}")
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
            raise self._error(place, f"lacks {listed(sorted(missing))}")
        if unknown := value.keys() - required - optional:
            raise self._error(place, f"has unknown keys {listed(sorted(unknown))}")
        return value

    def _known(self, place: str, given: Any, allowed: tuple[str, ...]) -> None:
        if unknown := set(given) - set(allowed):
            raise self._error(place, f"names {listed(sorted(unknown))}, which is none of {listed(allowed)}")

    def _cited(self, place: str, key: Any) -> Source:
        if key not in self._sources:
            raise self._error(place, f"cites {key!r}, which is not in sources ({listed(self._sources)})")
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
