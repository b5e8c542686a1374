"""The processor of the second model runner, driven through vLLM's own interface classes by a stand-in for the runner
that keeps slots, recycles them, drafts tokens and rejects them: many steps, each mask compared with a fresh matcher's.
The runner itself is in test_second_runner."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from vllm import SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext, LogitsProcessor, LogitsProcRequestState
from vllm.v1.worker.gpu.sample.logits_processor.loader import build_custom_logits_processors_params_validator

import grammask
from grammask.integrations.vllm import slot_processor
from grammask.integrations.vllm.processor import ConstraintLogitsProcessor
from grammask.integrations.vllm.slot_processor import SlotProcessor
from grammask.integrations.wire import constraint_from_wire
from support.engine_cases import CASES, Case

SLOTS, LENGTH = 4, 512


class Runner:
    """Requests in slots; every step gives each one row for its last token and one for each drafted token."""

    def __init__(self, vocabulary: grammask.Vocabulary, seed: int) -> None:
        self.rng = random.Random(seed)
        self.vocabulary = vocabulary
        self.tokens = torch.zeros((SLOTS, LENGTH), dtype=torch.int32)
        self.prompt_len = np.zeros(SLOTS, dtype=np.int32)
        self.total = [0] * SLOTS
        self.free = list(range(SLOTS))
        state = LogitsProcRequestState(
            device=torch.device("cpu"),
            max_num_reqs=SLOTS,
            vocab_size=vocabulary.size,
            all_token_ids=SimpleNamespace(gpu=self.tokens),  # type: ignore[arg-type]
            prompt_len=SimpleNamespace(np=self.prompt_len),  # type: ignore[arg-type]
            prefill_len=SimpleNamespace(np=self.prompt_len),  # type: ignore[arg-type]
            total_len=SimpleNamespace(gpu=torch.tensor(self.total)),  # type: ignore[arg-type]
        )
        self.processor: Any = ConstraintLogitsProcessor(None, state)

    def add(self, params: SamplingParams, prompt: list[int], output: list[int]) -> int:
        slot = self.free.pop(self.rng.randrange(len(self.free)))
        history = prompt + output
        self.tokens[slot, : len(history)] = torch.tensor(history, dtype=torch.int32)
        self.prompt_len[slot] = len(prompt)
        self.total[slot] = len(history)
        assert self.processor.add_request(slot, params) == (params.extra_args is not None)
        return slot

    def output(self, slot: int) -> list[int]:
        return self.tokens[slot, self.prompt_len[slot] : self.total[slot]].tolist()

    def step(self, drafts: dict[int, list[int]]) -> tuple[list[tuple[int, int]], torch.Tensor]:
        """Returns (slot, offset) of every row, and the allowed tokens of every row."""
        order = self.rng.sample(sorted(drafts), len(drafts))
        rows = [(slot, offset) for slot in order for offset in range(len(drafts[slot]) + 1)]
        read = [int(self.tokens[s, self.total[s] - 1]) if k == 0 else drafts[s][k - 1] for s, k in rows]
        context = LogitsContext(
            expanded_idx_mapping=torch.tensor([slot for slot, _ in rows]),
            idx_mapping=torch.tensor(order),
            idx_mapping_np=np.array(order),
            expanded_local_pos=torch.tensor([offset for _, offset in rows]),
            input_ids=torch.tensor(read),
            pos=torch.tensor([self.total[slot] - 1 + offset for slot, offset in rows]),
            seq_lens_upper_bound_np=np.array([self.total[slot] for slot in order]),
        )
        logits = torch.zeros((len(rows), self.vocabulary.size))
        return rows, self.processor.apply(logits, context) > -1

    def take(self, slot: int, tokens: list[int]) -> None:
        start = self.total[slot]
        self.tokens[slot, start : start + len(tokens)] = torch.tensor(tokens, dtype=torch.int32)
        self.total[slot] += len(tokens)

    def remove(self, slot: int) -> None:
        self.free.append(slot)


@pytest.fixture(scope="module")
def vocabulary(model_folder: Path) -> grammask.Vocabulary:
    return grammask.Vocabulary.from_tokenizers(model_folder)


@pytest.fixture(autouse=True)
def without_an_engine(vocabulary: grammask.Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_processor, "vocabulary_of_engine", lambda config: vocabulary)


def test_the_class_satisfies_both_interfaces() -> None:
    assert issubclass(ConstraintLogitsProcessor, LogitsProcessor)
    validate = build_custom_logits_processors_params_validator(None)
    validate(SamplingParams(extra_args={"grammask": CASES[0].wire}))
    with pytest.raises(VLLMValidationError, match="grammask"):
        validate(SamplingParams(extra_args={"grammask": {"regex": "("}}))


@pytest.mark.parametrize("seed", range(4))
def test_masks_of_slots_that_come_and_go_with_drafts(vocabulary: grammask.Vocabulary, seed: int) -> None:
    """Every mask of a row whose drafts were possible is the mask of a fresh matcher after the same tokens."""
    rng = random.Random(seed)
    runner = Runner(vocabulary, seed)
    assert isinstance(runner.processor, SlotProcessor)
    waiting: list[tuple[Case | None, list[int], list[int]]] = [
        (case, [rng.randrange(100, 900) for _ in range(rng.randint(1, 9))], []) for case in [*CASES, None, None]
    ]
    running: dict[int, tuple[Case | None, list[int]]] = {}
    finished = 0
    for _ in range(3000):
        while waiting and runner.free:
            case, prompt, output = waiting.pop(rng.randrange(len(waiting)))
            extra = None if case is None else {"grammask": case.wire}
            running[runner.add(SamplingParams(extra_args=extra), prompt, output)] = (case, prompt)
        if not running:
            break
        drafts = {slot: drafted(rng, vocabulary, runner, slot, case) for slot, (case, _) in running.items()}
        rows, allowed = runner.step(drafts)
        for slot, (case, prompt) in list(running.items()):
            mine = [allowed[row] for row, (owner, _) in enumerate(rows) if owner == slot]
            taken = judged(rng, vocabulary, runner.output(slot), case, drafts[slot], mine)
            runner.take(slot, taken)
            output = runner.output(slot)
            if output[-1] in vocabulary.eos_token_ids or (case is None and len(output) > 20):
                if case is not None:
                    case.check(vocabulary.decode(output).decode())
                finished += 1
                runner.remove(slot)
                del running[slot]
            elif rng.random() < 0.05:
                # Preempted: it comes back later with what it has, perhaps in another slot.
                runner.remove(slot)
                waiting.append((case, prompt, output))
                del running[slot]
    assert finished == len(CASES) + 2


def matcher_after(vocabulary: grammask.Vocabulary, case: Case, tokens: list[int]) -> Any | None:
    matcher = grammask.compile(constraint_from_wire(case.wire), vocabulary).matcher()
    return matcher if all(matcher.accept(token) for token in tokens) else None


def drafted(
    rng: random.Random, vocabulary: grammask.Vocabulary, runner: Runner, slot: int, case: Case | None
) -> list[int]:
    """Some draft tokens, right and wrong ones."""
    tokens: list[int] = []
    matcher = None if case is None else matcher_after(vocabulary, case, runner.output(slot))
    for _ in range(rng.randint(0, 3)):
        if matcher is None or rng.random() < 0.2:
            tokens.append(rng.randrange(300, 5000))
            matcher = None
            continue
        token = shortest(rng, vocabulary, matcher)
        tokens.append(token)
        if token in vocabulary.eos_token_ids:
            break
        matcher.accept(token)
    return tokens


def shortest(rng: random.Random, vocabulary: grammask.Vocabulary, matcher: Any) -> int:
    """An allowed token; the end where it is allowed, so that outputs come to one."""
    allowed = matcher.allowed_token_ids().tolist()
    ends = [token for token in allowed if token in vocabulary.eos_token_ids]
    return ends[0] if ends and rng.random() < 0.7 else rng.choice(allowed)


def judged(
    rng: random.Random,
    vocabulary: grammask.Vocabulary,
    output: list[int],
    case: Case | None,
    drafts: list[int],
    masks: list[torch.Tensor],
) -> list[int]:
    """Checks the masks, and takes drafts as long as they are allowed (sometimes fewer), then one token of the mask."""
    taken: list[int] = []
    for offset, mask in enumerate(masks):
        if case is None:
            assert mask.all()
            return [*taken, rng.randrange(300, 5000)]
        matcher = matcher_after(vocabulary, case, output + taken)
        assert matcher is not None
        expected = torch.zeros(vocabulary.size, dtype=torch.bool)
        expected[torch.from_numpy(matcher.allowed_token_ids()).long()] = True
        assert torch.equal(mask, expected)
        if offset < len(drafts) and mask[drafts[offset]] and rng.random() < 0.8:
            taken.append(drafts[offset])
            if drafts[offset] in vocabulary.eos_token_ids:
                return taken
            continue
        return [*taken, shortest(rng, vocabulary, matcher)]
    raise AssertionError("a step ends with a token of its own")
