"""MaskBench cases, held to what maskbench_expected.json records.

Three figures for each case, on the bytes of its instances as json.dumps writes them:

``any``         property_order="any".
``schema``      property_order="schema", keys as they lie in the file.
``documented``  property_order="schema", the keys of valid instances put into the order that docs/json-schema.md gives
                them by ``support.property_order``, which shares no code with the compiler.

The record lists what is refused when compiling and which instances are refused wrongly; nothing may be accepted
wrongly. maskbench_orders.json says why instances are not in the schema's order as they lie in the file, which
``support.order_reasons`` tells without the compiler. ``make test`` looks at every STRIDE-th case, ``make maskbench``
at all of them. After progress ``python tests/json_schema/test_maskbench.py --update`` writes both records anew.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintError

EXPECTED = Path(__file__).with_name("maskbench_expected.json")
ORDERS = Path(__file__).with_name("maskbench_orders.json")
DOCUMENT = Path(__file__).parents[2] / "docs" / "json-schema.md"
FILE = "maskbench-dev.jsonl.gz"
STRIDE = int(os.environ.get("GRAMMASK_MASKBENCH_STRIDE", "25"))
VIEWS = ("any", "schema", "documented")


def cases(folder: Path, stride: int) -> Iterator[dict[str, Any]]:
    """Every stride-th case."""
    with gzip.open(folder / FILE, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % stride == 0:
                yield json.loads(line)


def compiled(schema: Any, order: Literal["schema", "any"], vocabulary: _core.Vocabulary) -> _core.Compiled | str:
    """The constraint, or the name of the error it is refused with."""
    builder = _core.Builder(vocabulary, max_seconds=600)  # a slow machine is not a wrong result
    try:
        return builder.compile(JsonSchema(schema, property_order=order).lower(builder))
    except (ConstraintError, _core.ConstraintTooLargeError, ValueError) as error:
        return type(error).__name__


def accepts(constraint: _core.Compiled, instance: Any) -> bool:
    matcher = constraint.matcher()
    text = json.dumps(instance, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return matcher.accept_bytes(text) and matcher.is_complete


def wrong(case: dict[str, Any], view: str, vocabulary: _core.Vocabulary) -> tuple[list[int], list[int]] | str:
    """(instances accepted wrongly, refused wrongly) of a case, or the error that compiling it ends with."""
    constraint = compiled(case["schema"], "any" if view == "any" else "schema", vocabulary)
    if isinstance(constraint, str):
        return constraint
    over, under = [], []
    for number, test in enumerate(case["tests"]):
        if not test["valid"]:
            if accepts(constraint, test["data"]):
                over.append(number)
        elif not any(accepts(constraint, instance) for instance in spellings(case["schema"], test["data"], view)):
            under.append(number)
    return over, under


def spellings(schema: Any, instance: Any, view: str) -> Iterator[Any]:
    """The instance as the view looks at it."""
    if view != "documented":
        yield instance
        return
    from support.property_order import Order

    for together in (False, True):
        yield Order(schema, together=together).of(instance)


def order_reason(case: dict[str, Any], under: list[int]) -> str | None:
    """Why the instances that are refused in the schema's order are not in it; None if one of them is."""
    from support.order_reasons import REASONS, reason

    reasons = {reason(case["schema"], case["tests"][number]["data"]) for number in under}
    return None if None in reasons else next(kind for kind in REASONS if kind in reasons)


@pytest.mark.parametrize("view", VIEWS)
def test_cases_come_out_as_recorded(data_dir: Path, byte_vocabulary: _core.Vocabulary, view: str) -> None:
    if not (data_dir / FILE).is_file():
        pytest.skip(f"no {FILE} in GRAMMASK_DATA")
    recorded, orders = json.loads(EXPECTED.read_text(encoding="utf-8")), json.loads(ORDERS.read_text(encoding="utf-8"))
    for case in cases(data_dir, STRIDE):
        outcome = wrong(case, view, byte_vocabulary)
        if isinstance(outcome, str):
            assert recorded["refused"].get(case["id"]) == outcome, case["id"]
            continue
        over, under = outcome
        assert not over, f"{case['id']}: accepted wrongly"
        assert case["id"] not in recorded["refused"], f"{case['id']} compiles now: run this file with --update"
        assert under == recorded["under"][view].get(case["id"], []), case["id"]
        if view == "schema" and under:
            assert case["id"] in orders.get(order_reason(case, under), ()), case["id"]


def test_reasons_are_those_of_the_record_and_of_the_documentation() -> None:
    recorded, orders = json.loads(EXPECTED.read_text(encoding="utf-8")), json.loads(ORDERS.read_text(encoding="utf-8"))
    assert sorted(case for cases in orders.values() for case in cases) == sorted(recorded["under"]["schema"])
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [reason for reason, cases in orders.items() if f"| {reason} | {len(cases)} |" not in text] == []


def update() -> None:
    vocabulary = _core.Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], 257)
    refused: dict[str, str] = {}
    under: dict[str, dict[str, list[int]]] = {view: {} for view in VIEWS}
    orders: dict[str, list[str]] = {}
    count = 0
    for case in cases(Path(os.environ["GRAMMASK_DATA"]), 1):
        count += 1
        for view in VIEWS:
            outcome = wrong(case, view, vocabulary)
            if isinstance(outcome, str):
                refused[case["id"]] = outcome
                continue
            assert not outcome[0], f"{case['id']}: accepted wrongly"
            if outcome[1]:
                under[view][case["id"]] = outcome[1]
                if view == "schema":
                    reason = order_reason(case, outcome[1])
                    assert reason is not None, f"{case['id']}: refused although in order"
                    orders.setdefault(reason, []).append(case["id"])
    record = {"cases": count, "refused": refused, "under": under}
    for path, value in ((EXPECTED, record), (ORDERS, orders)):
        path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for view in VIEWS:
        passed = count - len(refused) - len(under[view])
        print(f"{view}: {passed} of {count} cases ({passed / count:.2%}), {len(refused)} refused")
    for reason, names in orders.items():
        print(f"{reason}: {len(names)}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        raise SystemExit("usage: GRAMMASK_DATA=FOLDER python tests/json_schema/test_maskbench.py --update")
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    update()
