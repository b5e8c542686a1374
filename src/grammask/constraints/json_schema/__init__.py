"""JSON Schema as a constraint: see docs/json-schema.md."""

from grammask.constraints.json_schema.constraint import JsonSchema

__all__ = ["JsonSchema"]
