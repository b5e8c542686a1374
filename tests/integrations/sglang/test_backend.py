"""The grammar backend against SGLang's own base classes and registry: ``make test-sglang``. SGLang's engine needs an
accelerator; its scheduler's calls are made here in its order."""

from __future__ import annotations

import json
import os
import random
from concurrent.futures import Future
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

from support.engine_cases import CASES, PERSON, Case

torch = pytest.importorskip("torch")
base = pytest.importorskip(
    "sglang.srt.constrained.base_grammar_backend", reason="SGLang is not installed: make test-sglang"
)

from grammask.integrations import sglang as integration  # noqa: E402


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    import transformers

    folder = os.environ.get("GRAMMASK_VLLM_MODEL")
    if not folder:
        pytest.skip("GRAMMASK_VLLM_MODEL names no folder with SmolLM2: make test-sglang")
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> Any:
    integration.register()
    arguments = SimpleNamespace(constrained_json_disable_any_whitespace=True)
    return base.GRAMMAR_BACKEND_REGISTRY["grammask"](arguments, tokenizer, 49152, {tokenizer.eos_token_id})


def test_sglang_finds_the_plugin() -> None:
    from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES

    found = [point for point in entry_points(group="sglang.srt.plugins") if point.name == "grammask"]
    assert found
    for _ in range(2):
        found[0].load()()
    assert GRAMMAR_BACKEND_CHOICES.count("grammask") == 1


KEYS = {"json_schema": "json", "regex": "regex", "gbnf": "ebnf", "lark": "ebnf"}


def key_of(case: Case) -> tuple[str, str] | None:
    for kind, name in KEYS.items():
        if kind in case.wire:
            value = case.wire[kind]
            return name, value if isinstance(value, str) else json.dumps(value)
    return None


def grammar_of(backend: Any, key: tuple[str, str]) -> Any:
    value, hit = backend.get_cached_or_future_value(key, False)
    if not hit:
        assert isinstance(value, Future)
        value = value.result()
        backend.set_cache(key, value.copy())
    return value


CONSTRAINED = [case for case in CASES if key_of(case) is not None]


@pytest.mark.parametrize("seed", range(3))
def test_a_batch_as_the_scheduler_runs_it(backend: Any, tokenizer: Any, seed: int) -> None:
    assert isinstance(backend, base.BaseGrammarBackend)
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    running = {case.name: (case, grammar_of(backend, key_of(case)), []) for case in CONSTRAINED}
    for _ in range(400):
        if not running:
            break
        requests = list(running.values())
        rows = rng.sample(range(len(requests) + 2), len(requests))
        mask = requests[0][1].allocate_vocab_mask(49152, len(requests) + 2, "cpu")
        entries = [base.GrammarRow(row, grammar) for row, (_, grammar, _) in zip(rows, requests, strict=True)]
        requests[0][1].fill_vocab_mask_batched(entries, mask)
        moved = requests[0][1].move_vocab_mask(mask, "cpu")
        logits = torch.randn((len(requests) + 2, 49152), generator=generator)
        # Ends are likely, so that outputs come to one.
        logits[:, tokenizer.eos_token_id] = 9
        before = logits.clone()
        base.GrammarMask(requests[0][1], moved).apply(logits)
        for row in set(range(len(requests) + 2)) - set(rows):
            assert torch.equal(logits[row], before[row])
        for row, (case, grammar, tokens) in zip(rows, requests, strict=True):
            token = int(logits[row].argmax())
            grammar.accept_token(token)
            tokens.append(token)
            if grammar.is_terminated():
                case.check(tokenizer.decode(tokens[:-1]))
                del running[case.name]
            elif len(tokens) > 1 and rng.random() < 0.2:
                back = rng.randint(1, len(tokens) - 1)
                grammar.rollback(back)
                for again in tokens[-back:]:
                    grammar.accept_token(again)
    assert not running


def test_copies_are_independent(backend: Any, tokenizer: Any) -> None:
    grammar = grammar_of(backend, ("regex", "ab|cd"))
    twin = grammar.copy()
    for token in tokenizer.encode("ab"):
        grammar.accept_token(token)
    mask = twin.allocate_vocab_mask(49152, 1, "cpu")
    twin.fill_vocab_mask(mask, 0)
    allowed = tokenizer.encode("c")[0]
    assert mask[0, allowed // 32] >> (allowed % 32) & 1


def test_a_token_outside_the_constraint_is_an_error_and_changes_nothing(backend: Any, tokenizer: Any) -> None:
    grammar = grammar_of(backend, ("regex", "ab"))
    with pytest.raises(ValueError, match="does not allow"):
        grammar.accept_token(tokenizer.encode("x")[0])
    for token in tokenizer.encode("ab"):
        grammar.accept_token(token)


def test_jump_forward(backend: Any, tokenizer: Any) -> None:
    key = ("json", json.dumps(PERSON))
    grammar = grammar_of(backend, key)
    helper = grammar.try_jump_forward(tokenizer)
    text, state = grammar.jump_forward_str_state(helper)
    assert text == '{"name":"'
    grammar.jump_and_retokenize([], tokenizer.encode(text), state)
    for token in tokenizer.encode('Ada","age":36}'):
        grammar.accept_token(token)
    assert grammar.try_jump_forward(tokenizer) is None
    grammar.accept_token(tokenizer.eos_token_id)
    assert grammar.is_terminated()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("json", '{"properties": {"a": {"type": "strin"}}}'), "/properties/a"),
        (("regex", "("), "column 1"),
        (("structural_tag", "{}"), "structural tag"),
    ],
)
def test_what_cannot_be_enforced_is_an_invalid_grammar(backend: Any, key: tuple[str, str], message: str) -> None:
    value, _ = backend.get_cached_or_future_value(key, False)
    result = value.result()
    assert isinstance(result, base.InvalidGrammarObject)
    assert message in result.error_message


def test_any_object(backend: Any, tokenizer: Any) -> None:
    grammar = grammar_of(backend, ("json", "$$ANY$$"))
    for token in [*tokenizer.encode('{"a":[1]}'), tokenizer.eos_token_id]:
        grammar.accept_token(token)
    assert grammar.is_terminated()
