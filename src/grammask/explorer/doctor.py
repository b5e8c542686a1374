"""The schema doctor: what of a schema is enforced, what to mind, an instance, and where a given output breaks."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from grammask.cli.check import check_text
from grammask.explorer.compatibility import compatibility
from grammask.explorer.constraints import ConstraintSpec, byte_vocabulary
from grammask.explorer.fields import fields, text, whole
from grammask.explorer.findings import findings
from grammask.explorer.instances import random_instance
from grammask.explorer.json_place import place_in, schemas_at
from grammask.explorer.problems import Problem
from grammask.explorer.reasons import Reasons

MAX_OUTPUT = 500_000


def examine(request: Any) -> dict[str, Any]:
    """Reports on a schema.

    Args:
        request: ``constraint`` (of the kind json_schema), and ``seed`` for the random instance.

    Returns:
        ``problem`` if the schema cannot be enforced, ``entries`` per keyword with their ``counts``, ``findings``,
        ``instance`` (None if refused) and ``providers`` (none if refused).

    Raises:
        Problem: the schema is not JSON.
    """
    from grammask.constraints.json_schema.explain import explain

    request = fields(request)
    spec = ConstraintSpec.of({"kind": "json_schema", **fields(request.get("constraint"))})
    if spec.kind != "json_schema":
        raise Problem("constraint", "no schema", "the doctor looks at JSON Schemas")
    schema = spec.schema()
    if not isinstance(schema, (dict, bool)):
        raise Problem("constraint", "no schema", "a JSON Schema is an object, true or false", line=1, column=1)
    problem = None
    instance = None
    try:
        instance = _instance(spec, whole(request, "seed", 0, 0, 2**63))
    except Problem as found:
        problem = found
    try:
        entries = explain(schema)
    except ValueError as error:
        entries = []
        problem = problem or Problem.of_error(error, "constraint")
    counts = Counter(entry.status for entry in entries)
    return {
        "problem": None if problem is None else problem.as_json(),
        "entries": [entry._asdict() for entry in entries],
        "counts": {status: counts.get(status, 0) for status in ("enforced", "annotation", "refused")},
        "findings": [finding.as_json() for finding in findings(schema)],
        "instance": instance,
        "providers": compatibility(schema) if problem is None else [],
    }


def _instance(spec: ConstraintSpec, seed: int) -> str | None:
    """A random instance with a blank after each comma and colon.

    Raises:
        Problem: the schema cannot be enforced.
    """
    python_style = ConstraintSpec(spec.kind, spec.text, spec.property_order, "python")
    matcher = python_style.compile(byte_vocabulary()).matcher()
    data = random_instance(matcher, random.Random(seed))
    return None if data is None else data.decode("utf-8", "replace")


def judge(request: Any) -> dict[str, Any]:
    """Whether an output is valid under a constraint, and where it breaks.

    Args:
        request: ``constraint`` and ``output``.

    Returns:
        ``valid``; if not, ``byte``, ``line``, ``column``, ``found``, ``expected``, the offset ``character``, and for
        JSON the ``pointer`` of the value that is wrong and the places of the schema that speak about it.

    Raises:
        Problem: the constraint is no good.
    """
    request = fields(request)
    spec = ConstraintSpec.of(request.get("constraint"))
    output = text(request, "output", MAX_OUTPUT)
    data = output.encode("utf-8", "replace")
    try:
        verdict = check_text(spec.build(), data)
    except Problem:
        raise
    except ValueError as error:
        raise Problem.of_error(error, "constraint") from error
    told: dict[str, Any] = verdict.as_json()
    if verdict.place is not None:
        good = data[: verdict.place.byte]
        before = good.decode("utf-8", "ignore")
        told["character"] = len(before)
        vocabulary = byte_vocabulary()
        matcher = spec.compile(vocabulary).matcher()
        matcher.accept_bytes(good)
        told["expected"] = Reasons(spec, matcher, good, vocabulary).expected()
        if spec.is_json:
            place = place_in(before)
            told["pointer"] = place.pointer
            told["schema_pointers"] = [pointer or "(root)" for pointer, _ in schemas_at(spec.schema(), place.path)]
            if spec.kind == "json_schema" and spec.property_order == "schema":
                told["valid_in_any_order"] = _valid_in_any_order(spec, data)
    return told


def _valid_in_any_order(spec: ConstraintSpec, data: bytes) -> bool:
    import dataclasses

    try:
        return check_text(dataclasses.replace(spec, property_order="any").build(), data).valid
    except ValueError:
        return False
