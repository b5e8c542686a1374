"""What each view answers, on small models whose every number is known."""

from __future__ import annotations

import json
import math
import random
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import grammask
from grammask.explorer import automaton, determinism, doctor, knobs, step, tokenization
from grammask.explorer.compatibility import fit
from grammask.explorer.constraints import ConstraintSpec, byte_vocabulary
from grammask.explorer.didactic import EXAMPLES as DISTRIBUTIONS
from grammask.explorer.examples import EXAMPLES
from grammask.explorer.findings import findings
from grammask.explorer.instances import random_instance
from grammask.explorer.problems import Problem
from grammask.explorer.workbench import Workbench
from grammask.hosted.subset import subset_for
from grammask.models import FunctionModel
from support.models import WritingModel
from support.models import byte_vocabulary as small_vocabulary

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "ok": {"type": "boolean"}},
    "required": ["name", "ok"],
    "additionalProperties": False,
}
CONSTRAINT = {"kind": "json_schema", "text": json.dumps(SCHEMA), "whitespace": "python"}
TEXT = '{"name": "Ada", "ok": true}'


@pytest.fixture(scope="module")
def bench() -> Workbench:
    return Workbench(WritingModel(TEXT, small_vocabulary([b'{"', b'"na', b"true", b'": "'])))


def request(**changes) -> dict:
    return {"prompt": "x", "chat": False, "constraint": CONSTRAINT, "sampling": {"temperature": 0}, **changes}


def run(bench: Workbench, wanted: dict, steps: int = 100, **options) -> tuple[list[dict], dict]:
    *chips, end = list(step.run(bench, step.StepRequest.of(wanted), steps, **options))
    return [item["chip"] for item in chips], end


class TestStep:
    def test_a_whole_output(self, bench: Workbench) -> None:
        chips, end = run(bench, request())
        assert "".join(chip["text"] for chip in chips) == TEXT
        assert end == {"end": "stop", "complete": True, "steps": len(chips)}
        assert any(chip["forced"] for chip in chips)
        assert all(0 <= chip["raw"] <= chip["masked"] <= 1.0001 and 0 < chip["kept"] <= 1 for chip in chips)

    def test_it_agrees_with_generate(self, bench: Workbench) -> None:
        """The same draws as the library's own loop: same constraint, settings and seed."""
        sampling = grammask.Sampling(temperature=1.5, seed=7)
        constraint = grammask.Choice(["yes", "yesterday", "no", "never"])
        result = bench.model.generate("x", constraint, sampling=sampling)
        wanted = request(
            constraint={"kind": "choice", "text": "yes\nyesterday\nno\nnever"},
            sampling={"temperature": 1.5},
            seed=7,
        )
        chips, _ = run(bench, wanted)
        text = "".join(chip["text"] for chip in chips if not chip.get("special"))
        assert text == result.text

    def test_going_on_and_going_back(self, bench: Workbench) -> None:
        """A path in pieces gives the same chips as one run, and known chips are left out."""
        chips, _ = run(bench, request())
        path = [chip["id"] for chip in chips]
        again, end = run(bench, request(path=path[:4]), steps=2)
        assert again == chips[:6]
        assert end["end"] == "steps"
        rest, _ = run(bench, request(path=path[:4]), steps=2, known=4)
        assert rest == chips[4:6]

    def test_one_position(self, bench: Workbench) -> None:
        told = step.inspect(bench, step.StepRequest.of(request()))
        raw = {one["id"]: one["raw"] for one in told["candidates"]}
        assert told["pointer"] == ""
        assert told["expected"] == "an object"
        assert told["allowed"] == 2
        row = bench.logits(bench.encode("x", chat=False)).astype(np.float64)
        shares = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        for token_id, share in raw.items():
            assert share == pytest.approx(shares[token_id])
        allowed = [one for one in told["candidates"] if one["allowed"]]
        assert {one["text"] for one in allowed} == {"{", '{"'}
        assert sum(one["masked"] for one in allowed) == pytest.approx(1)
        assert told["kept"] == pytest.approx(sum(one["raw"] for one in allowed))
        assert told["entropy"] == pytest.approx(-sum(p * math.log2(p) for p in shares if p > 0))
        assert all(one["why"] for one in told["candidates"] if not one["allowed"])
        assert [one["raw"] for one in told["candidates"]] == sorted(raw.values(), reverse=True)

    def test_the_end(self, bench: Workbench) -> None:
        chips, _ = run(bench, request())
        told = step.inspect(bench, step.StepRequest.of(request(path=[chip["id"] for chip in chips])))
        assert told["ended"]
        assert told["text"] == TEXT

    def test_a_path_that_is_not_possible(self, bench: Workbench) -> None:
        with pytest.raises(Problem, match="may not come at step 0") as caught:
            step.inspect(bench, step.StepRequest.of(request(path=[ord("x")])))
        assert caught.value.field == "path"
        with pytest.raises(Problem, match="may not come"):
            run(bench, request(path=[10**9]))

    def test_it_can_be_stopped(self, bench: Workbench) -> None:
        cancelled = threading.Event()
        items = step.run(bench, step.StepRequest.of(request()), 100, cancelled)
        assert "chip" in next(items)
        cancelled.set()
        assert [item["end"] for item in items] == ["cancelled"]

    def test_free_text_and_the_context(self) -> None:
        short = Workbench(WritingModel("a long text without an end", context_length=6))
        _, end = run(short, request(constraint=None))
        assert end["end"] == "context"

    @pytest.mark.parametrize(
        "wrong",
        [
            None,
            [],
            {"prompt": 3},
            {"path": "abc"},
            {"path": [True]},
            {"seed": -1},
            {"seed": "1"},
            {"constraint": "x"},
            {"constraint": {"kind": "sorcery"}},
            {"constraint": {"kind": "regex", "text": 5}},
            {"sampling": []},
            {"sampling": {"temperature": "hot"}},
            {"sampling": {"top_p": 7}},
            {"sampling": {"order": ["temperature"]}},
        ],
    )
    def test_malformed_requests(self, wrong) -> None:
        with pytest.raises(Problem):
            step.StepRequest.of(wrong)


@pytest.mark.parametrize(
    ("kind", "text", "place"),
    [
        ("json_schema", '{"type": ', (1, 10)),
        ("json_schema", "", (1, 1)),
        ("regex", "(a", None),
        ("gbnf", 'root ::= "a" |\nother ::=', (2, None)),
        ("tools", "{", (1, 2)),
    ],
)
def test_problems_of_constraints(kind: str, text: str, place: tuple | None) -> None:
    with pytest.raises(Problem) as caught:
        ConstraintSpec(kind, text).compile(byte_vocabulary())  # type: ignore[arg-type]
    assert caught.value.field == "constraint"
    if place is not None:
        assert caught.value.line == place[0]
        assert place[1] is None or caught.value.column == place[1]


def test_a_problem_in_a_schema_has_its_pointer_and_its_line() -> None:
    backreference = {"type": "string", "pattern": r"(?<n>a)\k<n>"}
    schema = json.dumps({"type": "object", "properties": {"a": backreference}}, indent=1)
    with pytest.raises(Problem) as caught:
        ConstraintSpec("json_schema", schema).compile(byte_vocabulary())
    assert caught.value.pointer == "/properties/a/pattern"
    assert caught.value.line == 1 + schema[: schema.index("(?<n>a)")].count("\n")


@pytest.mark.parametrize("example", EXAMPLES, ids=[example["title"] for example in EXAMPLES])
def test_examples(example: dict[str, str]) -> None:
    """What the page offers compiles, its outputs are judged, and the automaton stands at its prefix."""
    constraint = {"kind": example["kind"], "text": example["text"]}
    told = automaton.automaton({"constraint": constraint, "text": example["prefix"]})
    assert told["rest"] == ""
    assert told["graph"]["nodes"]
    verdict = doctor.judge({"constraint": constraint, "output": example["output"]})
    assert verdict["valid"] == (not example["title"].startswith("A review"))


def no_model() -> Workbench:
    raise AssertionError("made-up distributions need no model")


class TestKnobs:
    @pytest.mark.parametrize("name", DISTRIBUTIONS)
    def test_made_up_distributions(self, name: str) -> None:
        told = knobs.knobs(no_model, {"source": name, "sampling": {"temperature": 0.7, "top_k": 5}})
        assert told["survivors"] == 5
        words = DISTRIBUTIONS[name].words
        logits = sorted((logit for _, logit in words), reverse=True)
        weights = [math.exp(logit / 0.7) for logit in logits[:5]]
        best = max(token["shares"][-1] for token in told["tokens"])
        assert best == pytest.approx(weights[0] / sum(weights), rel=1e-5)
        assert [stage["stage"] for stage in told["stages"]] == ["model", "temperature", "top_k"]
        assert [one["temperature"] for one in told["temperatures"]] == [0.3, 0.7, 1.0, 1.5]
        for one in told["temperatures"]:
            assert sum(one["shares"]) == pytest.approx(1)

    def test_the_order_matters(self) -> None:
        settings = {"temperature": 0.5, "top_p": 0.849}
        first = knobs.knobs(no_model, {"source": "open", "sampling": settings})
        other = {**settings, "order": ["mask", "top_p", "temperature"]}
        second = knobs.knobs(no_model, {"source": "open", "sampling": other})
        assert first["survivors"] < second["survivors"]

    def test_penalties_count_the_history(self) -> None:
        settings = {"presence_penalty": 4, "penalize_structured": True}
        told = knobs.knobs(no_model, {"source": "loop", "sampling": settings})
        good = next(token for token in told["tokens"] if token["text"] == " good")
        great = next(token for token in told["tokens"] if token["text"] == " great")
        assert good["shares"][0] > great["shares"][0]
        assert good["shares"][-1] < great["shares"][-1]

    def test_the_models_own(self, bench: Workbench) -> None:
        told = knobs.knobs(lambda: bench, {"source": "model", "position": request(path=[])})
        assert told["survivors"] == 2
        assert "mask" in told["active"]

    def test_out_of_range(self) -> None:
        with pytest.raises(Problem, match="min_p"):
            knobs.knobs(no_model, {"source": "open", "sampling": {"min_p": 3}})
        with pytest.raises(Problem, match="no example"):
            knobs.knobs(no_model, {"source": "sorcery"})


class TestAutomaton:
    def test_a_pattern(self) -> None:
        told = automaton.automaton({"constraint": {"kind": "regex", "text": "ab?c"}, "text": "a"})
        labels = {(edge["from"], edge["label"]) for edge in told["graph"]["edges"]}
        assert labels == {(0, "'b'"), (0, "'c'"), (1, "'c'")}
        assert told["next"]["bytes"] == [ord("b"), ord("c")]
        assert [node["complete"] for node in told["graph"]["nodes"]] == [False, False, True]

    def test_a_loop(self) -> None:
        graph = automaton.automaton({"constraint": {"kind": "regex", "text": "(ab)*"}, "text": ""})["graph"]
        assert len(graph["nodes"]) == 2
        assert {(edge["from"], edge["to"]) for edge in graph["edges"]} == {(0, 1), (1, 0)}

    def test_where_the_text_leaves_the_constraint(self) -> None:
        told = automaton.automaton({"constraint": CONSTRAINT, "text": '{"name": 7'})
        assert (told["text"], told["rest"]) == ('{"name": ', "7")
        assert told["expected"] == "a string (/name)"
        assert told["schema_pointers"] == ["/properties/name"]

    def test_the_rules_of_a_grammar(self) -> None:
        gbnf = 'root ::= expr\nexpr ::= term ("+" term)*\nterm ::= number | "(" expr ")"\nnumber ::= [0-9]+'
        told = automaton.automaton({"constraint": {"kind": "gbnf", "text": gbnf}, "text": "1+(2"})
        assert told["rules"][0]["names"] == ["root", "expr", "term", "expr", "term", "number"]
        assert told["rules"][0]["lines"] == [1, 2, 3, 2, 3, 4]
        assert told["expected"].endswith("(rule number, in term)")

    def test_the_stack_grows_and_shrinks(self) -> None:
        gbnf = 'root ::= "(" root ")" | "x"'
        told = automaton.automaton({"constraint": {"kind": "gbnf", "text": gbnf}, "text": "((x))"})
        heights = [one["height"] for one in told["heights"]]
        assert heights.index(max(heights)) in (1, 2)
        assert heights[-1] < max(heights)
        assert told["complete"]

    def test_it_is_bounded(self) -> None:
        graph = automaton.automaton({"constraint": {"kind": "json", "text": ""}, "text": "", "depth": 6})["graph"]
        assert graph["cut"]
        assert len(graph["nodes"]) == automaton.MAX_NODES


@pytest.fixture(scope="module")
def tokenizers() -> tokenization.Tokenizers:
    words = [b'{"', b'":', b"na", b"name", b"\xc3\xa9", b'"}']
    return tokenization.Tokenizers(small_vocabulary(words), "small", {})


class TestTokenization:
    def test_all_spellings_are_accepted(self, tokenizers: tokenization.Tokenizers) -> None:
        told = tokenization.tokenizations(
            tokenizers,
            {"text": TEXT, "tokenizers": ["small"], "constraint": CONSTRAINT, "samples": 6},
        )["tokenizers"][0]
        assert len(told["spellings"]) > 4
        for spelling in told["spellings"]:
            assert "".join(token["text"] for token in spelling["tokens"]) == TEXT
            assert spelling["complete"]

    def test_counts_against_enumeration(self, tokenizers: tokenization.Tokenizers) -> None:
        _, pieces = tokenizers.get("small")

        def ways(data: bytes) -> int:
            return 1 if not data else sum(ways(data[n:]) for n in range(1, len(data) + 1) if data[:n] in pieces.ids)

        for data in (b"name", b'{"name":', 'é"}'.encode()):
            assert tokenization.Lattice(data, pieces).count == ways(data)

    def test_samples_are_uniform(self, tokenizers: tokenization.Tokenizers) -> None:
        _, pieces = tokenizers.get("small")
        lattice = tokenization.Lattice(b"name", pieces)
        draw = random.Random(0)
        seen: dict[tuple[int, ...], int] = {}
        for _ in range(3000):
            ids = tuple(lattice.sample(draw))
            seen[ids] = seen.get(ids, 0) + 1
        assert len(seen) == lattice.count
        assert max(seen.values()) - min(seen.values()) < 200

    def test_marks(self, tokenizers: tokenization.Tokenizers) -> None:
        told = tokenization.tokenizations(tokenizers, {"text": '{"name": "é"}', "tokenizers": ["small"]})
        spelling = told["tokenizers"][0]["spellings"][0]
        cut = {token["text"]: token["parts"] for token in spelling["tokens"] if "parts" in token}
        assert cut == {'{"': ["{", "key"], '":': ["key", ":"], '"}': ["string", "}"]}
        single = told["tokenizers"][0]["spellings"][-1]
        assert [token["text"] for token in single["tokens"] if token.get("half")] == ["\\xc3", "\\xa9"]

    def test_a_spelling_that_is_refused(self, tokenizers: tokenization.Tokenizers) -> None:
        told = tokenization.tokenizations(
            tokenizers, {"text": '{"name": 1}', "tokenizers": ["small"], "constraint": CONSTRAINT}
        )
        assert not any(spelling["complete"] for spelling in told["tokenizers"][0]["spellings"])

    def test_unknown_tokenizers(self, tokenizers: tokenization.Tokenizers) -> None:
        with pytest.raises(Problem, match="no tokenizer"):
            tokenization.tokenizations(tokenizers, {"text": "a", "tokenizers": ["large"]})


class TestDoctor:
    @pytest.mark.parametrize(
        ("schema", "message", "pointer"),
        [
            (
                {"properties": {"answer": {}, "reasoning": {}}, "additionalProperties": False},
                '"reasoning" comes after "answer"',
                "/properties/reasoning",
            ),
            ({"properties": {"a": {}}}, "additionalProperties is missing, so members of any name may follow", ""),
            ({"enum": list(range(600))}, "600 listed values", "/enum"),
            (
                {"properties": {"a": {"minlength": 3}}, "additionalProperties": False},
                '"minlength" is no keyword, so nothing enforces it',
                "/properties/a/minlength",
            ),
            (
                {"properties": {"a": {}}, "required": ["b"], "additionalProperties": False},
                '"b" must be there, and properties says nothing about it',
                "/required",
            ),
            ({"type": "array"}, "an array of any length", ""),
            ({"items": {"type": "string"}}, "a string of any length", "/items"),
        ],
    )
    def test_findings(self, schema: dict, message: str, pointer: str) -> None:
        found = {finding.message: finding.pointer for finding in findings(schema)}
        assert found[message] == pointer

    @pytest.mark.parametrize(
        "schema",
        [
            {
                "properties": {"reasoning": {}, "answer": {}},
                "required": ["reasoning", "answer"],
                "additionalProperties": False,
            },
            {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 4}},
            {"enum": ["a", "b"]},
            {"title": "x", "description": "y", "x-origin": 1, "type": "integer"},
            True,
        ],
    )
    def test_nothing_to_mind(self, schema) -> None:
        assert findings(schema) == []

    def test_a_report(self) -> None:
        told = doctor.examine({"constraint": {"text": json.dumps(SCHEMA)}})
        assert told["problem"] is None
        assert told["counts"] == {"enforced": 7, "annotation": 0, "refused": 0}
        assert {"name", "ok"} == json.loads(told["instance"]).keys()
        fits = {one["name"].partition("/")[0]: one["fit"] for one in told["providers"]}
        assert fits["openai"]["kind"] == "partly"
        assert fits["openai"]["notes"] == ["maxLength at /properties/name is not enforced"]
        assert fits["vllm"]["kind"] == "as it is"

    @pytest.mark.parametrize(
        ("changes", "kind", "note"),
        [
            ({}, "whole", None),
            ({"additionalProperties": True}, "partly", "the object at (root) may have no further members"),
            ({"required": []}, "partly", "/properties/a must be there, and may be null instead of absent"),
            (None, "partly", "the value must be wrapped into an object"),
            (True, "none", "at (root): any value may stand here"),
        ],
    )
    def test_how_a_schema_fares_in_a_subset(self, changes, kind: str, note: str | None) -> None:
        schema = changes if changes is True else {"type": "integer"}
        if isinstance(changes, dict):
            closed = {"type": "object", "required": ["a"], "additionalProperties": False}
            schema = {**closed, "properties": {"a": schema}, **changes}
        told = fit(schema, subset_for("openai"))
        assert told["kind"] == kind
        assert told["notes"] == ([note] if note else [])
        assert told["source"].startswith("https://")

    def test_a_schema_that_is_refused(self) -> None:
        told = doctor.examine({"constraint": {"text": '{"allOf": [{"type": "string"}, {"type": "null"}]}'}})
        assert told["problem"]["kind"] == "unsatisfiable constraint"
        assert told["instance"] is None
        assert told["counts"]["refused"] == 1

    def test_where_an_output_breaks(self) -> None:
        output = '{"name": "Ada", "ok": "yes"}'
        told = doctor.judge({"constraint": CONSTRAINT, "output": output})
        assert not told["valid"]
        assert output[told["character"] :] == '"yes"}'
        assert told["pointer"] == "/ok"
        assert told["expected"] == "true or false (/ok)"
        assert told["schema_pointers"] == ["/properties/ok"]

    def test_only_the_order(self) -> None:
        output = '{"ok": true, "name": "Ada"}'
        told = doctor.judge({"constraint": CONSTRAINT, "output": output})
        assert not told["valid"]
        assert told["valid_in_any_order"]

    @pytest.mark.parametrize(
        "text",
        [
            '{"properties": 5}',
            '{"properties": {"a": 7}, "required": 3}',
            '{"$ref": 5}',
            '{"$ref": "#/nowhere"}',
            '{"enum": 3, "items": "x", "type": 9}',
            '{"type": "object", "properties": {"answer": null}, "required": [null, 3]}',
            '{"a":' * 400 + "1" + "}" * 400,
            '{"not": ' * 300 + "true" + "}" * 300,
        ],
    )
    def test_schemas_that_are_not_well_formed(self, text: str) -> None:
        told = doctor.examine({"constraint": {"text": text}})
        json.dumps(told)
        assert told["instance"] or told["problem"]

    @pytest.mark.parametrize("text", ["", "{", "[1]", '"a"'])
    def test_no_schema(self, text: str) -> None:
        with pytest.raises(Problem):
            doctor.examine({"constraint": {"text": text}})


class TestDeterminism:
    def test_an_experiment_with_progress(self) -> None:
        model = WritingModel("abcdef")
        items = list(determinism.measure(model, {"experiment": "seeds", "steps": 4}, threading.Event()))
        assert items[0]["done"] >= 1
        result = items[-1]["result"]
        assert result["name"] == "seeds"
        assert result["findings"]
        json.dumps(items)

    def test_it_can_be_stopped(self) -> None:
        cancelled = threading.Event()

        class Waiting(WritingModel):
            """Its second forward pass takes until the experiment is stopped."""

            def _next(self, tokens: Sequence[int]) -> NDArray[np.float32]:
                if self.reads:
                    cancelled.wait()
                return super()._next(tokens)

        model = Waiting("abcdef" * 20)
        items = determinism.measure(model, {"experiment": "seeds", "steps": 40}, cancelled)
        assert next(items)["done"] == 1
        cancelled.set()
        assert list(items) == [{"end": "cancelled"}]
        assert len(model.reads) == 2

    def test_a_model_that_it_cannot_run_on(self) -> None:
        with pytest.raises(Problem):
            list(determinism.measure(WritingModel("a"), {"experiment": "batching"}, threading.Event()))

    def test_unknown_experiments(self) -> None:
        with pytest.raises(Problem, match="no experiment"):
            next(determinism.measure(WritingModel("a"), {"experiment": "alchemy"}, threading.Event()))


class TestWorkbench:
    def test_a_shared_beginning_is_read_once(self) -> None:
        model = WritingModel("abc")
        bench = Workbench(model)
        bench.logits([1, 2, 3])
        bench.logits([1, 2, 3])
        assert model.reads == [3]
        bench.logits([1, 2, 3, 4])
        bench.logits([1, 2, 9])
        assert model.reads == [3, 4, 3]

    def test_rows_are_those_of_a_fresh_session(self) -> None:
        vocabulary = small_vocabulary()
        model = FunctionModel(
            vocabulary, lambda tokens: np.random.default_rng(list(tokens)).normal(size=vocabulary.size)
        )
        bench = Workbench(model)
        for path in ([1], [1, 2], [1, 3], [1, 2, 5], [7], [1]):
            expected = model.session().forward(path)
            assert np.array_equal(bench.logits(path), expected)

    def test_longer_than_the_context(self) -> None:
        bench = Workbench(WritingModel("abc", context_length=2))
        with pytest.raises(Problem, match="context"):
            bench.logits([1, 2, 3])


SCHEMAS = [example["text"] for example in EXAMPLES if example["kind"] == "json_schema"]


DATES = json.dumps({"type": "array", "items": {"type": "string", "format": "date"}})


@pytest.mark.parametrize("text", [*SCHEMAS, DATES])
def test_random_instances_are_valid(text: str) -> None:
    import jsonschema

    schema = json.loads(text)
    matcher = ConstraintSpec("json_schema", text, whitespace="python").compile(byte_vocabulary()).matcher()
    checker = jsonschema.Draft202012Validator(schema)
    different = set()
    for seed in range(12):
        data = random_instance(matcher, random.Random(seed))
        assert data is not None
        assert checker.is_valid(json.loads(data)), data
        different.add(data)
    assert len(different) > 6


def test_an_instance_without_room_takes_the_shortest_way_out() -> None:
    matcher = ConstraintSpec("json_schema", json.dumps(SCHEMA)).compile(byte_vocabulary()).matcher()
    data = random_instance(matcher, random.Random(1), room=1)
    assert json.loads(data).keys() == {"name", "ok"}
