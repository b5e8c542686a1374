"""JSON Schema as a constraint: see docs/json-schema.md."""

from grammask.constraints.json_schema.constraint import JsonSchema
from grammask.constraints.json_schema.explain import Entry, explain

__all__ = ["Entry", "JsonSchema", "explain"]
