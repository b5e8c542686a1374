"""The second constraint: what was right is forced, what was wrong is excluded.

From a schema, a value and the places of its problems comes a narrower schema. Every member and item apart from the
problems becomes a constant. A scalar that was refused at its own place is excluded there, so that the next attempt
cannot repeat it; where a problem offers options, the next attempt chooses among them. All values of the new schema are
values of the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from grammask.validation.problems import Path, Problem

_MAX_REFERENCES = 32


def pin(schema: Any, value: Any, problems: Iterable[Problem]) -> tuple[Any, list[Path]]:
    """The narrower schema, and the places that it forces.

    Args:
        schema: what the value satisfies, as a JSON Schema.
        value: a JSON value.
        problems: what is wrong with the value beyond the schema. One without a place leaves nothing to be kept.
    """
    found = list(problems)
    pinner = _Pinner(schema, {place for problem in found for place in problem.places}, _refused(found))
    for problem in found:
        if problem.path is not None and problem.options:
            pinner.options[problem.path] = problem.options
    narrowed = pinner.node(schema, value, ())
    # One reference to the root leads to the narrowed schema otherwise, so such a schema is left as it is.
    if pinner.refers_to_root:
        return schema, []
    return narrowed, pinner.kept


def _refused(problems: Iterable[Problem]) -> set[Path]:
    """Places whose own value is wrong, whatever the others are."""
    return {problem.path for problem in problems if problem.path is not None and not problem.others}


class _Pinner:
    def __init__(self, schema: Any, places: set[Path], refused: set[Path]) -> None:
        self._document = schema
        self._places = places
        self._refused = refused
        self.kept: list[Path] = []
        self.options: dict[Path, tuple[Any, ...]] = {}
        self.refers_to_root = '"#"' in repr(schema).replace("'", '"')

    def node(self, schema: Any, value: Any, path: Path) -> Any:
        if not any(place[: len(path)] == path for place in self._places):
            self.kept.append(path)
            return {"const": value}
        if path in self._places:
            return self._without(schema, value, path)
        target, root = self._resolved(schema)
        if isinstance(value, dict) and isinstance(target, Mapping) and "properties" in target:
            return {**root, **self._object(target, value, path)}
        if isinstance(value, list) and isinstance(target, Mapping) and ("items" in target or "prefixItems" in target):
            return {**root, **self._array(target, value, path)}
        return schema

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], path: Path) -> dict[str, Any]:
        properties = {
            name: self.node(part, value[name], (*path, name)) if name in value else part
            for name, part in schema["properties"].items()
        }
        present = [name for name in properties if name in value and (*path, name) in self.kept]
        required = list(dict.fromkeys([*schema.get("required", ()), *present]))
        return {**schema, "properties": properties, "required": required}

    def _array(self, schema: Mapping[str, Any], value: list[Any], path: Path) -> dict[str, Any]:
        prefix = schema.get("prefixItems", [])
        items = [
            self.node(prefix[i] if i < len(prefix) else schema.get("items", True), item, (*path, i))
            for i, item in enumerate(value)
        ]
        kept = {keyword: part for keyword, part in schema.items() if keyword not in ("contains", "minContains")}
        return {**kept, "prefixItems": items, "items": False, "minItems": len(items), "maxItems": len(items)}

    def _without(self, schema: Any, value: Any, path: Path) -> Any:
        if path in self.options:
            return {"allOf": [schema, {"enum": list(self.options[path])}]}
        scalar = value is None or isinstance(value, (str, int, float, bool))
        if path not in self._refused or not scalar:
            return schema
        return {"allOf": [schema, {"not": {"const": value}}]}

    def _resolved(self, schema: Any) -> tuple[Any, dict[str, Any]]:
        """The schema that references lead to; for the root, also the definitions that have to stay there."""
        root: dict[str, Any] = {}
        if schema is self._document and isinstance(schema, Mapping):
            root = {name: schema[name] for name in ("$schema", "$id", "$defs", "definitions") if name in schema}
        for _ in range(_MAX_REFERENCES):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            place: Any = self._document
            for part in reference[2:].split("/"):
                name = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(place, Mapping) or name not in place:
                    return schema, root
                place = place[name]
            schema = place
        return schema, root
