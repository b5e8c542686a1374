"""The official JSON-Schema-Test-Suite, held to what suite_expected.json records.

Every instance is written with json.dumps and fed as bytes, with property_order="any". The record lists the tests that
do not come out right, by outcome; all others must pass. After progress run
``python tests/json_schema/test_suite.py --update``.

Outcomes, worst first: over (accepted wrongly), under (refused wrongly), unsupported (refused with an error).
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grammask import _core
from grammask.constraints.json_schema import JsonSchema
from grammask.engine.errors import ConstraintError, UnsatisfiableConstraint

EXPECTED = Path(__file__).with_name("suite_expected.json")
ARCHIVE = "json-schema-test-suite.tar.gz"
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def read_archive(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """({"draft7/minItems.json": groups}, {URI: remote document})."""
    tests, remotes = {}, {}
    with tarfile.open(path) as archive:
        for member in archive:
            parts = member.name.removeprefix("./").split("/")
            if not member.name.endswith(".json") or len(parts) < 2:
                continue
            source = archive.extractfile(member)
            assert source is not None
            document = json.load(source)
            if parts[0] == "remotes":
                remotes["http://localhost:1234/" + "/".join(parts[1:])] = document
            elif parts[0] == "tests" and parts[1] in DRAFTS:
                tests["/".join(parts[1:])] = document
    return tests, remotes


def outcomes(
    groups: list[Any], file: str, remotes: dict[str, Any], vocabulary: _core.Vocabulary
) -> Iterator[tuple[str, str]]:
    """(test name, outcome) for each test of a file."""
    # In the required files formats are annotations; the optional ones assert them.
    options = {"property_order": "any", "registry": remotes, "format_assertion": not file.endswith("/format.json")}
    for group in groups:
        schema = group["schema"]
        if isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": DRAFTS[file.split("/")[0]], **schema}
        compiled: _core.Compiled | None = None
        satisfiable = supported = True
        builder = _core.Builder(vocabulary)
        try:
            compiled = builder.compile(JsonSchema(schema, **options).lower(builder))  # type: ignore[arg-type]
        except UnsatisfiableConstraint:
            satisfiable = False
        except ConstraintError:
            supported = False
        for test in group["tests"]:
            name = f"{file}: {group['description']}: {test['description']}"
            if not supported:
                yield name, "unsupported"
                continue
            accepted = False
            if satisfiable:
                assert compiled is not None
                matcher = compiled.matcher()
                text = json.dumps(test["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")
                accepted = matcher.accept_bytes(text) and matcher.is_complete
            yield name, "pass" if accepted == test["valid"] else "over" if accepted else "under"


@pytest.fixture(scope="module")
def suite(data_dir: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    path = data_dir / ARCHIVE
    if not path.is_file():
        pytest.skip(f"GRAMMASK_DATA holds no {ARCHIVE}")
    return read_archive(path)


@pytest.mark.parametrize("draft", DRAFTS)
def test_outcomes_are_as_recorded(
    suite: tuple[dict[str, Any], dict[str, Any]], byte_vocabulary: _core.Vocabulary, draft: str
) -> None:
    tests, remotes = suite
    recorded = json.loads(EXPECTED.read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    count = 0
    for file, groups in tests.items():
        if file.startswith(draft + "/"):
            for name, outcome in outcomes(groups, file, remotes, byte_vocabulary):
                count += 1
                if outcome != "pass":
                    found[name] = outcome
    expected = {name: outcome for name, outcome in recorded["not_passed"].items() if name.startswith(draft + "/")}
    worse = {name: outcome for name, outcome in found.items() if expected.get(name) != outcome}
    better = sorted(expected.keys() - found.keys())
    assert not worse, "regressions"
    assert not better, "progress that is not recorded yet: run this file with --update"
    assert count == recorded["tests"][draft]


def update() -> None:
    tests, remotes = read_archive(Path(os.environ["GRAMMASK_DATA"]) / ARCHIVE)
    vocabulary = _core.Vocabulary([bytes([byte]) for byte in range(256)] + [None], [256], 257)
    counts = dict.fromkeys(DRAFTS, 0)
    not_passed = {}
    for file in sorted(tests):
        for name, outcome in outcomes(tests[file], file, remotes, vocabulary):
            counts[file.split("/")[0]] += 1
            if outcome != "pass":
                not_passed[name] = outcome
    record = {"tests": counts, "not_passed": not_passed}
    EXPECTED.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    required = [outcome for name, outcome in not_passed.items() if "/optional/" not in name]
    print(f"{sum(counts.values())} tests, {len(not_passed)} not passed, of them {len(required)} required")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        raise SystemExit("usage: GRAMMASK_DATA=FOLDER python tests/json_schema/test_suite.py --update")
    update()
