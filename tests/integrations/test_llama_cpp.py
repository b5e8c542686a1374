"""llama.cpp as a model of grammask, on SmolLM2's quantized file; the logits processor for llama-cpp-python."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
import pytest

import grammask
from grammask.integrations.llama_cpp_python import ConstraintLogitsProcessor
from grammask.integrations.vocabularies import VocabularyMismatch
from grammask.integrations.wire import constraint_from_wire
from grammask.models.errors import MissingDependency, ModelError, ModelNotFound
from grammask.models.gguf import smollm2_file
from support.engine_cases import CASES, PERSON


@pytest.fixture(scope="module")
def model() -> Any:
    try:
        return grammask.load_model("smollm2", engine="llama.cpp", threads=1)
    except MissingDependency as error:
        pytest.skip(f"llama.cpp is not here: {error}")


@pytest.mark.model
class TestModel:
    def test_ten_constraints(self, model: Any) -> None:
        for case in CASES:
            constraint = constraint_from_wire(case.wire)
            result = model.generate([{"role": "user", "content": case.prompt}], constraint, max_tokens=120)
            assert result.complete, result.text
            case.check(result.text)

    def test_tokens_and_chat_are_those_of_transformers(self, model: Any) -> None:
        transformers = pytest.importorskip("transformers")
        tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2_file().parent, gguf_file=smollm2_file().name)
        for text in ["Hello, world!", "Grüße 😀\n\n  x", "<|im_end|> is text here"]:
            assert model.vocabulary.decode(model.encode(text)).decode() == text
            if "<|" not in text:
                assert model.encode(text) == tokenizer(text).input_ids
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]
        ids = model.encode(messages)
        assert ids.count(model.vocabulary.special_tokens["<|im_start|>"]) >= 3

    def test_sessions_share_a_context_without_mixing(self, model: Any) -> None:
        prompts = [model.encode("The capital of France is"), model.encode("One two three four")]
        alone = []
        for prompt in prompts:
            session = model.session()
            alone.append(session.forward(prompt))
            session.close()
        first, second = model.session(), model.session()
        first.forward(prompts[0][:-1])
        second.forward(prompts[1][:-2])
        np.testing.assert_allclose(first.forward(prompts[0][-1:]), alone[0], atol=1e-2)
        np.testing.assert_allclose(second.forward(prompts[1][-2:]), alone[1], atol=1e-2)
        twin = first.fork()
        rows = twin.forward_all([5, 6, 7])
        assert rows.shape == (3, model.vocabulary.size)
        np.testing.assert_allclose(first.forward([5, 6, 7]), rows[2], atol=1e-2)
        first.truncate(len(prompts[0]) - 1)
        np.testing.assert_allclose(first.forward(prompts[0][-1:]), alone[0], atol=1e-2)
        assert first.tokens == tuple(prompts[0])
        with pytest.raises(ValueError, match="truncate"):
            first.truncate(99)
        with pytest.raises(ValueError, match="at least one"):
            first.forward([])

    def test_sessions_are_given_back(self, model: Any) -> None:
        gc.collect()
        sessions = [model.session() for _ in range(8)]
        with pytest.raises(ModelError, match="too many sessions"):
            model.session()
        del sessions
        gc.collect()
        model.session().close()

    def test_a_context_that_is_full_is_an_error_and_the_session_goes_on(self) -> None:
        from grammask.models.llama_cpp_model import LlamaCppModel

        try:
            small = LlamaCppModel(smollm2_file(), context=256, threads=1, sessions=1)
        except MissingDependency as error:
            pytest.skip(f"llama.cpp is not here: {error}")
        session = small.session()
        before = session.forward([1, 2, 3])
        with pytest.raises(ModelError, match="hold 3 of 256"):
            session.forward([5] * 300)
        assert session.length == 3
        session.truncate(2)
        np.testing.assert_allclose(session.forward([3]), before, atol=1e-2)

    def test_sampling_is_repeatable(self, model: Any) -> None:
        constraint = grammask.JsonSchema(PERSON)
        texts = {
            model.generate(CASES[0].prompt, constraint, sampling=grammask.Sampling(temperature=1), seed=4).text
            for _ in range(2)
        }
        assert len(texts) == 1
        CASES[0].check(texts.pop())


def test_what_llama_cpp_does_not_run_is_refused() -> None:
    with pytest.raises(ModelNotFound, match="gguf"):
        grammask.load_model("org/model", engine="llama.cpp")
    with pytest.raises(ModelError, match="no engine"):
        grammask.load_model("smollm2", engine="mlx")  # type: ignore[arg-type]


class TestProcessor:
    """The calls that llama-cpp-python makes: tokens so far, then logits to change."""

    WORDS = (b"a", b"b", b"ab", b"1")

    @pytest.fixture
    def vocabulary(self) -> grammask.Vocabulary:
        return grammask.Vocabulary.from_tokens([*self.WORDS, None], eos_token_ids=[4])

    def allowed(self, processor: ConstraintLogitsProcessor, tokens: list[int], size: int = 40) -> list[int]:
        scores = np.zeros(size, dtype=np.single)
        assert processor(np.array(tokens, dtype=np.intc), scores) is scores
        return np.flatnonzero(np.isfinite(scores)).tolist()

    def test_masks_of_a_completion_and_of_the_next(self, vocabulary: grammask.Vocabulary) -> None:
        processor = ConstraintLogitsProcessor(grammask.compile(grammask.Regex("ab1?"), vocabulary))
        assert self.allowed(processor, [3, 3]) == [0, 2]
        assert self.allowed(processor, [3, 3, 0]) == [1]
        assert self.allowed(processor, [3, 3, 0, 1]) == [3, 4]
        assert self.allowed(processor, [3, 3, 2]) == [3, 4]
        assert self.allowed(processor, [1, 1, 1]) == [0, 2]
        with pytest.raises(ValueError, match="does not satisfy"):
            self.allowed(processor, [1, 1, 1, 3])

    def test_a_model_with_fewer_tokens_is_an_error(self, vocabulary: grammask.Vocabulary) -> None:
        processor = ConstraintLogitsProcessor(grammask.compile(grammask.Regex("a"), vocabulary))
        with pytest.raises(VocabularyMismatch):
            self.allowed(processor, [0], size=3)

    def test_the_vocabulary_comes_from_the_file(self) -> None:
        from types import SimpleNamespace

        from grammask.integrations.llama_cpp_python import vocabulary_of

        loaded = SimpleNamespace(model_path=str(smollm2_file()), n_vocab=lambda: 49152)
        compiled = grammask.compile(grammask.JsonSchema(PERSON), vocabulary_of(loaded))
        processor = ConstraintLogitsProcessor(compiled, prompt_length=0)
        tokens: list[int] = []
        for _ in range(100):
            scores = np.random.default_rng(len(tokens)).normal(size=49152).astype(np.single)
            token = int(processor(np.array(tokens, dtype=np.intc), scores).argmax())
            if token in compiled.vocabulary.eos_token_ids:
                break
            tokens.append(token)
        assert json.loads(compiled.vocabulary.decode(tokens))
