"""What the requests of all endpoints have in common: strict types, no unknown names, and reasons for known refusals."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic_core import PydanticCustomError


class Strict(BaseModel):
    """Nothing is converted, nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Neutral:
    """A parameter of the API that this server can honour only where it asks for nothing.

    Attributes:
        values: those that ask for nothing, besides null.
        reason: why others are refused, and what to do instead.
    """

    def __init__(self, reason: str, *values: Any) -> None:
        self.reason = reason
        self.values = values

    def accepts(self, value: Any) -> bool:
        return value is None or any(value == known and type(value) is type(known) for known in self.values)


class Request(Strict):
    """A request: parameters that are known but not supported are refused with their reason, unknown ones with the name
    that may have been meant."""

    neutral: ClassVar[Mapping[str, Neutral]] = {}

    @model_validator(mode="before")
    @classmethod
    def _only_what_is_supported(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        kept = {}
        for name, value in data.items():
            rule = cls.neutral.get(name)
            if rule is None:
                if name not in known:
                    raise _unknown(name, [*known, *cls.neutral])
                kept[name] = value
            elif not rule.accepts(value):
                raise PydanticCustomError(
                    "unsupported_parameter",
                    "Unsupported parameter: '{name}': {reason}",
                    {"name": name, "reason": rule.reason},
                )
        return kept


def _unknown(name: str, known: list[str]) -> PydanticCustomError:
    close = get_close_matches(name, known, 1, cutoff=0.7)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    return PydanticCustomError("unknown_parameter", "Unknown parameter: '{name}'.{hint}", {"name": name, "hint": hint})
