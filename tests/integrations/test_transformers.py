"""The logits processor of transformers: on a tiny random model for every way of decoding, and on SmolLM2."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import pytest

import grammask
from support.engine_cases import CASES, PERSON

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammask.integrations.masking import apply_masks_, unpack_masks  # noqa: E402
from grammask.integrations.transformers import (  # noqa: E402
    ConstraintLogitsProcessor,
    HistoryError,
    constrain,
    generate,
)
from grammask.integrations.vocabularies import VocabularyMismatch, check_tokenizer  # noqa: E402

WORDS = [*"abcdefgh0123456789", "ab", "12", "345", "-", '"', "{", "}", ":", ",", " ", "[", "]"]
EOS, PAD, END_OF_TURN = len(WORDS), len(WORDS) + 1, len(WORDS) + 2
ROWS = len(WORDS) + 13
"""Columns of the logits: ten rows of padding beyond the tokens."""


@pytest.fixture(scope="module")
def tiny() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=ROWS,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        eos_token_id=[EOS, END_OF_TURN],
        pad_token_id=PAD,
        bos_token_id=EOS,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():
        model.lm_head.weight *= 30  # opinions
    return model


@pytest.fixture(scope="module")
def vocabulary() -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokens(
        [*(word.encode() for word in WORDS), None, None, None], [EOS], {"<pad>": PAD, "<end>": END_OF_TURN}, size=ROWS
    )


REGEX = r"[a-h]{2,4}-(12|345)+"


def text_of(vocabulary: grammask.Vocabulary, row: Any) -> str:
    """The text of an output up to its end, which it must have."""
    tokens = row.tolist()
    end = min(tokens.index(token) for token in (EOS, END_OF_TURN) if token in tokens)
    assert all(token == PAD for token in tokens[end + 1 :])
    return vocabulary.decode(tokens[:end]).decode()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True},
        {"do_sample": True, "temperature": 3.0, "num_return_sequences": 3},
        {"num_beams": 4, "num_return_sequences": 4},
        {"num_beams": 3, "do_sample": True},
        {"do_sample": False, "cache_implementation": "static"},
        {"do_sample": False, "use_cache": False},
        {"do_sample": True, "repetition_penalty": 1.5, "no_repeat_ngram_size": 3},
    ],
    ids=lambda options: "-".join(f"{key}={value}" for key, value in options.items()),
)
def test_every_output_matches(tiny: Any, vocabulary: grammask.Vocabulary, options: dict[str, Any], seed: int) -> None:
    compiled = grammask.compile(grammask.Regex(REGEX), vocabulary)
    processor = ConstraintLogitsProcessor(compiled, stop_ids=[EOS, END_OF_TURN])
    torch.manual_seed(seed)
    prompts = torch.tensor([[PAD, PAD, 3, 4], [5, 6, 7, 8]])
    outputs = tiny.generate(
        prompts, attention_mask=(prompts != PAD).long(), max_new_tokens=60, logits_processor=[processor], **options
    )
    for row in outputs[:, 4:]:
        assert re.fullmatch(REGEX, text_of(vocabulary, row))


def test_one_constraint_for_each_prompt_with_beams(tiny: Any, vocabulary: grammask.Vocabulary) -> None:
    patterns = ["[a-h]{3}", "[0-9]{5}", "(ab)+-"]
    compiled = [grammask.compile(grammask.Regex(pattern), vocabulary) for pattern in patterns]
    prompts = torch.tensor([[1, 2], [3, 4], [5, 6]])
    outputs = tiny.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=30,
        num_beams=3,
        num_return_sequences=3,
        logits_processor=[ConstraintLogitsProcessor(compiled, stop_ids=[EOS, END_OF_TURN])],
    )
    for pattern, group in zip(patterns, outputs[:, 2:].reshape(3, 3, -1), strict=True):
        for row in group:
            assert re.fullmatch(pattern, text_of(vocabulary, row))


@pytest.mark.parametrize("how", ["assistant", "lookup"])
@pytest.mark.parametrize("do_sample", [False, True])
def test_assisted_generation(tiny: Any, vocabulary: grammask.Vocabulary, how: str, do_sample: bool) -> None:
    torch.manual_seed(1)
    assistant = transformers.LlamaForCausalLM(tiny.config).eval()
    pattern = "([aceg][0-9]{1,3}-|[bdfh][a-h]{1,2},){4,6}"  # what may follow depends on which tokens came
    compiled = grammask.compile(grammask.Regex(pattern), vocabulary)
    prompts = torch.tensor([[1, 2, 21, 18, 19, 25]])
    options = {"assistant_model": assistant} if how == "assistant" else {"prompt_lookup_num_tokens": 3}
    outputs = [
        tiny.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            max_new_tokens=60,
            do_sample=do_sample,
            logits_processor=[ConstraintLogitsProcessor(compiled, stop_ids=[EOS, END_OF_TURN])],
            **more,
        )
        for more in ({}, options)
    ]
    for output in outputs:
        assert re.fullmatch(pattern, text_of(vocabulary, output[0, 6:]))
    if not do_sample:
        assert outputs[0].tolist() == outputs[1].tolist()


def test_beam_search_finds_the_best_outputs(tiny: Any, vocabulary: grammask.Vocabulary) -> None:
    """With as many beams as there are outputs, the best of them is found: compared with scoring them all."""
    choices = ["ab-12", "ab-345", "cd", "e0", "f9-", "gh7"]
    compiled = grammask.compile(grammask.Choice(choices), vocabulary)
    prompts = torch.tensor([[1, 2]])
    output = tiny.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        max_new_tokens=10,
        num_beams=16,
        length_penalty=0.0,
        logits_processor=[ConstraintLogitsProcessor(compiled, stop_ids=[EOS, END_OF_TURN])],
        return_dict_in_generate=True,
        output_scores=True,
    )
    assert text_of(vocabulary, output.sequences[0, 2:]) in choices

    def score(matcher: Any, ids: list[int]) -> list[float]:
        """Log-probabilities of all ways to spell all choices from here."""
        logits = tiny(torch.tensor([ids])).logits[0, -1].float().log_softmax(-1)
        found = []
        for token in matcher.allowed_token_ids().tolist():
            ends = [EOS, END_OF_TURN] if token == EOS else [token]
            for each in ends:
                gain = float(logits[each])
                if token == EOS:
                    found.append(gain)
                    continue
                matcher.accept(token)
                found += [gain + rest for rest in score(matcher, [*ids, token])]
                matcher.rollback(1)
        return found

    with torch.no_grad():
        best = max(score(compiled.matcher(), [1, 2]))
    assert float(output.sequences_scores[0]) == pytest.approx(best, abs=1e-4)


def test_raw_logits_stay_raw_unless_asked(tiny: Any, vocabulary: grammask.Vocabulary) -> None:
    compiled = grammask.compile(grammask.Regex("[a-h]"), vocabulary)
    scores = torch.zeros(1, ROWS)
    prompt = torch.tensor([[1, 2]])
    masked = ConstraintLogitsProcessor(compiled)(prompt, scores)
    assert scores.isfinite().all()
    assert masked.isfinite().sum() == 8
    assert ConstraintLogitsProcessor(compiled, in_place=True)(prompt, scores) is scores
    assert scores.isfinite().sum() == 8


def test_another_prompt_begins_anew(tiny: Any, vocabulary: grammask.Vocabulary) -> None:
    processor = ConstraintLogitsProcessor(
        grammask.compile(grammask.Regex(REGEX), vocabulary), stop_ids=[EOS, END_OF_TURN]
    )
    for prompt in ([1, 2], [3, 4, 5, 6], [7, 8, 9, 10], [1]):
        prompts = torch.tensor([prompt])
        options = {"attention_mask": torch.ones_like(prompts), "max_new_tokens": 60, "do_sample": False}
        output = tiny.generate(prompts, logits_processor=[processor], **options)
        assert re.fullmatch(REGEX, text_of(vocabulary, output[0, len(prompt) :]))


def test_every_end_waits_for_a_complete_output(vocabulary: grammask.Vocabulary) -> None:
    """One of three rows is complete after a token, one is not, and one ends; the padding after that is not read."""
    compiled = grammask.compile(grammask.Regex("[a-h]|1[0-9]"), vocabulary)
    processor = ConstraintLogitsProcessor(compiled, stop_ids=[EOS, END_OF_TURN])
    prompts = torch.tensor([[PAD, 3], [4, 5], [6, 7]])
    processor(prompts, torch.zeros(3, ROWS))
    letter, one = WORDS.index("a"), WORDS.index("1")
    outputs = torch.tensor([[letter], [one], [letter]])
    masked = processor(torch.hstack([prompts, outputs]), torch.zeros(3, ROWS))
    assert masked[0].isfinite().nonzero().flatten().tolist() == [EOS, END_OF_TURN]
    assert not masked[1, [EOS, END_OF_TURN, PAD]].isfinite().any()
    ends = torch.tensor([[END_OF_TURN], [WORDS.index("2")], [EOS]])
    masked = processor(torch.hstack([prompts, outputs, ends]), torch.zeros(3, ROWS))
    assert masked[[0, 2], :EOS].isfinite().all()
    padded = torch.hstack([prompts, outputs, ends, torch.tensor([[PAD, PAD], [EOS, PAD], [PAD, PAD]])])
    assert processor(padded, torch.zeros(3, ROWS))[:, :EOS].isfinite().all()
    only_eos = ConstraintLogitsProcessor(compiled)
    only_eos(prompts, torch.zeros(3, ROWS))
    assert not only_eos(torch.hstack([prompts, outputs]), torch.zeros(3, ROWS))[0, END_OF_TURN].isfinite()


def test_a_history_outside_the_constraint_is_an_error(tiny: Any, vocabulary: grammask.Vocabulary) -> None:
    processor = ConstraintLogitsProcessor(grammask.compile(grammask.Regex("[a-h]{3}"), vocabulary))
    processor(torch.tensor([[1, 2]]), torch.zeros(1, ROWS))
    with pytest.raises(HistoryError, match="new processor"):
        processor(torch.tensor([[1, 2, 9]]), torch.zeros(1, ROWS))


def test_logits_with_too_few_columns_are_an_error(vocabulary: grammask.Vocabulary) -> None:
    processor = ConstraintLogitsProcessor(grammask.compile(grammask.Regex("a"), vocabulary))
    with pytest.raises(VocabularyMismatch, match="columns"):
        processor(torch.tensor([[1]]), torch.zeros(1, EOS - 1))
    assert processor(torch.tensor([[1]]), torch.zeros(1, EOS + 3)).isfinite().sum() == 1
    assert processor(torch.tensor([[1]]), torch.zeros(1, ROWS + 40)).isfinite().sum() == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_masks_on_tensors(dtype: str) -> None:
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(5, 70, generator=generator) < 0.3
    allowed[3] = False
    words = torch.zeros(5, 3, dtype=torch.int64)
    for row, column in allowed.nonzero().tolist():
        words[row, column // 32] |= 1 << (column % 32)
    packed = torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
    assert torch.equal(unpack_masks(packed, 70), allowed)
    logits = torch.randn(5, 70, generator=generator).to(getattr(torch, dtype))
    expected = logits.masked_fill(~allowed, -math.inf)
    assert torch.equal(apply_masks_(logits.clone(), packed), expected)
    compiled = torch.compile(apply_masks_, fullgraph=True, backend="aot_eager")
    written = logits.clone()
    assert torch.equal(compiled(written, packed), expected)
    assert torch.equal(written, expected)  # in place, compiled as well


def test_the_constraint_has_the_last_word_where_nothing_else_is_left() -> None:
    logits = torch.tensor([[-math.inf, -math.inf, 1.0], [0.5, -math.inf, 1.0]])
    packed = torch.tensor([[0b011], [0b011]], dtype=torch.int32)
    expected = torch.tensor([[0.0, 0.0, -math.inf], [0.5, -math.inf, -math.inf]])
    assert torch.equal(apply_masks_(logits, packed), expected)


@dataclass
class Person:
    name: str
    age: int


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    model = grammask.load_model("smollm2")
    return model.module, model.tokenizer


@pytest.mark.model
class TestSmolLM2:
    def inputs(self, tokenizer: Any, prompts: list[str]) -> Any:
        tokenizer.padding_side = "left"
        texts = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
            )
            for prompt in prompts
        ]
        return tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)

    def test_ten_constraints_in_one_batch(self, loaded: tuple[Any, Any]) -> None:
        from grammask.integrations.wire import constraint_from_wire

        model, tokenizer = loaded
        inputs = self.inputs(tokenizer, [case.prompt for case in CASES])
        processor = constrain(model, tokenizer, [constraint_from_wire(case.wire) for case in CASES])
        outputs = model.generate(
            **inputs, max_new_tokens=80, do_sample=False, logits_processor=[processor], pad_token_id=0
        )
        for case, row in zip(CASES, outputs[:, inputs.input_ids.shape[1] :], strict=True):
            case.check(tokenizer.decode(row, skip_special_tokens=True))

    def test_generate_does_not_ask_for_what_is_certain(self, loaded: tuple[Any, Any]) -> None:
        result = generate(*loaded, [{"role": "user", "content": CASES[0].prompt}], Person, max_tokens=100)
        assert isinstance(result.value, Person)
        assert result.usage.forced_tokens > 0
        assert result.usage.model_calls < result.usage.completion_tokens

    def test_added_tokens_are_noticed(self, loaded: tuple[Any, Any]) -> None:
        import copy

        model, tokenizer = loaded
        compiled = grammask.compile(grammask.JsonSchema(PERSON), grammask.load_model("smollm2").vocabulary)
        constrain(model, tokenizer, compiled)
        changed = copy.deepcopy(tokenizer)
        changed.add_tokens(["<new>"])
        with pytest.raises(VocabularyMismatch, match="49153 tokens"):
            constrain(model, changed, grammask.JsonSchema(PERSON))
        with pytest.raises(VocabularyMismatch, match=r"token 49152 is None .* b'<new>' in the tokenizer"):
            check_tokenizer(compiled.vocabulary, changed)

    def test_values_of_a_type(self, loaded: tuple[Any, Any]) -> None:
        model, tokenizer = loaded
        inputs = self.inputs(tokenizer, [CASES[0].prompt])
        processor = constrain(model, tokenizer, Person)
        output = model.generate(**inputs, max_new_tokens=60, do_sample=False, logits_processor=[processor])
        assert set(json.loads(tokenizer.decode(output[0, inputs.input_ids.shape[1] :], skip_special_tokens=True))) == {
            "name",
            "age",
        }
