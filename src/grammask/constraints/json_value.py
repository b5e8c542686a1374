"""JSON mode: any JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from grammask.constraints.base import Constraint

if TYPE_CHECKING:
    from grammask._core import Builder, Expr
    from grammask.constraints.json_schema.constraint import Escapes
    from grammask.constraints.json_schema.numbers import NumberSpelling
    from grammask.constraints.json_schema.whitespace import Whitespace


class JsonValue(Constraint):
    """Any JSON value (RFC 8259), with distinct keys in every object.

    Args:
        kind: "value", or "object" for what providers call JSON mode: the outermost value is an object.
        whitespace, escapes, numbers: as for ``JsonSchema``.
    """

    def __init__(
        self,
        kind: Literal["value", "object"] = "value",
        *,
        whitespace: Whitespace | int = "flexible",
        escapes: Escapes = "values",
        numbers: NumberSpelling = "bounded",
    ) -> None:
        from grammask.constraints.json_schema import JsonSchema

        if kind not in ("value", "object"):
            raise ValueError(f'kind is "value" or "object", not {kind!r}')
        self.kind = kind
        self._schema = JsonSchema(
            {"type": "object"} if kind == "object" else True,
            whitespace=whitespace,
            escapes=escapes,
            numbers=numbers,
        )

    def lower(self, builder: Builder) -> Expr:
        """The expression of all JSON texts."""
        return self._schema.lower(builder)

    def __repr__(self) -> str:
        return "JsonValue()" if self.kind == "value" else 'JsonValue("object")'
