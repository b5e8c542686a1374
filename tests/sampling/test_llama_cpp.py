"""The preset ``llama.cpp`` against llama.cpp's own samplers, one by one and as its default chain, on random logits.

They are called through the C interface of ``libllama``, from whichever package brings it: ``xllamacpp`` (wheels on
PyPI) or ``llama-cpp-python`` (built from source). One combination is left out: their typical sampling after
``top_n_sigma``, which leaves excluded tokens in the list, multiplies zero by infinity and orders tokens by NaN.
"""

from __future__ import annotations

import ctypes
import importlib.util
import math
from ctypes import POINTER, Structure, byref, c_bool, c_float, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from pathlib import Path

import numpy as np
import pytest

from grammask.sampling import PRESETS, Sampler, Sampling
from sampling import oracle

VOCABULARY = 500
NO_SEED = 0


class TokenData(Structure):
    _fields_ = (("id", c_int32), ("logit", c_float), ("p", c_float))


class TokenArray(Structure):
    _fields_ = (("data", POINTER(TokenData)), ("size", c_size_t), ("selected", c_int64), ("sorted", c_bool))


class Bias(Structure):
    _fields_ = (("token", c_int32), ("bias", c_float))


class Vector(Structure):
    """``std::vector`` of any type, as the Itanium ABI has it."""

    _fields_ = (("begin", c_void_p), ("end", c_void_p), ("room", c_void_p))


class ChainParameters(Structure):
    _fields_ = (("no_perf", c_bool),)


def libraries() -> list[Path]:
    found = []
    for package, pattern in (("xllamacpp", "*.so"), ("llama_cpp", "lib/libllama.*")):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            found += sorted(Path(folder).glob(pattern))
    return found


@pytest.fixture(scope="module", params=["xllamacpp", "llama_cpp"])
def library(request):
    paths = [path for path in libraries() if request.param in path.parts]
    if not paths:
        pytest.skip(f"{request.param} is not installed")
    if request.param == "llama_cpp":
        import llama_cpp  # noqa: F401  (its libraries depend on each other, and it knows in which order)
    library = ctypes.CDLL(str(paths[0]))
    signatures = {
        "top_k": (c_int32,),
        "top_p": (c_float, c_size_t),
        "min_p": (c_float, c_size_t),
        "typical": (c_float, c_size_t),
        "temp": (c_float,),
        "xtc": (c_float, c_float, c_size_t, c_uint32),
        "top_n_sigma": (c_float,),
        "penalties": (c_int32, c_float, c_float, c_float),
        "logit_bias": (c_int32, c_int32, POINTER(Bias)),
    }
    for name, arguments in signatures.items():
        function = getattr(library, f"llama_sampler_init_{name}")
        function.argtypes, function.restype = arguments, c_void_p
    library.llama_sampler_apply.argtypes = (c_void_p, POINTER(TokenArray))
    library.llama_sampler_accept.argtypes = (c_void_p, c_int32)
    library.llama_sampler_free.argtypes = (c_void_p,)
    library.llama_sampler_chain_init.argtypes, library.llama_sampler_chain_init.restype = (ChainParameters,), c_void_p
    library.llama_sampler_chain_add.argtypes = (c_void_p, c_void_p)
    _find_form_of_penalties(library)
    return library


def _find_form_of_penalties(library) -> None:
    """Releases from 2026 on take the size of the vocabulary first. One that does not takes it for the window: so after
    two tokens, with a window of one, the first is penalized there alone."""
    function = library.llama_sampler_init_penalties
    function.argtypes = (c_int32, c_int32, c_float, c_float, c_float)
    with Chain(library) as chain:
        chain.add(function(VOCABULARY, 1, 1.0, 0.0, 1.0))
        chain.accept([3, 5])
        first_is_size = chain.apply(np.ones(VOCABULARY, dtype=np.float32))[1][3] == 1
    if not first_is_size:
        function.argtypes = (c_int32, c_float, c_float, c_float)
    library.penalties = (lambda *rest: function(VOCABULARY, *rest)) if first_is_size else function


class Chain:
    """A chain of samplers, and what it makes of a row."""

    def __init__(self, library) -> None:
        self.library = library
        self.pointer = library.llama_sampler_chain_init(ChainParameters(True))

    def __enter__(self) -> Chain:
        return self

    def __exit__(self, *_) -> None:
        self.library.llama_sampler_free(self.pointer)

    def add(self, sampler: int) -> None:
        self.library.llama_sampler_chain_add(self.pointer, sampler)

    def accept(self, tokens) -> None:
        for token in tokens:
            self.library.llama_sampler_accept(self.pointer, token)

    def apply(self, row):
        """Ids that are left, ascending, and the logit of each. Logits of -inf are left out from the beginning: their
        typical sampling multiplies zero probability by infinite information."""
        present = [(token, float(logit), 0.0) for token, logit in enumerate(row) if logit > -math.inf]
        data = (TokenData * len(present))(*present)
        array = TokenArray(data, len(present), -1, False)
        self.library.llama_sampler_apply(self.pointer, byref(array))
        kept = sorted((array.data[i].id, array.data[i].logit) for i in range(array.size))
        kept = [(token, logit) for token, logit in kept if logit > -math.inf]
        return [token for token, _ in kept], np.array([logit for _, logit in kept], dtype=np.float32)


def dry(library, multiplier, base, allowed, window, breakers):
    """Their sampler for tests, whose breakers are given as tokens instead of through a model's vocabulary."""
    name = "_Z30llama_sampler_init_dry_testingffiiRKSt6vectorIS_IiSaIiEESaIS1_EE"
    try:
        function = getattr(library, name)
    except AttributeError:
        pytest.skip("this build does not export the DRY sampler that takes breakers as tokens")
    function.argtypes, function.restype = (c_float, c_float, c_int32, c_int32, POINTER(Vector)), c_void_p
    arrays = [(c_int32 * len(breaker))(*breaker) for breaker in breakers]
    inner = (Vector * len(arrays))()
    for vector, array in zip(inner, arrays, strict=True):
        start = ctypes.addressof(array)
        vector.begin, vector.end, vector.room = start, start + ctypes.sizeof(array), start + ctypes.sizeof(array)
    start = ctypes.addressof(inner)
    end = start + ctypes.sizeof(inner)
    return function(multiplier, base, allowed, window, byref(Vector(start, end, end)))


def theirs(library, sampling: Sampling, row, tokens, allowed):
    """Their default chain with these settings; the grammar's mask before it, as where a grammar is drawn with first."""
    with Chain(library) as chain:
        if sampling.logit_bias:
            biases = (Bias * len(sampling.logit_bias))(*sampling.logit_bias.items())
            chain.add(library.llama_sampler_init_logit_bias(VOCABULARY, len(biases), biases))
        window = sampling.penalty_window or 64
        penalties = sampling.repetition_penalty, sampling.frequency_penalty, sampling.presence_penalty
        chain.add(library.penalties(window, *penalties))
        if sampling.dry_multiplier:
            breakers = [[token] for token in sampling.dry_breakers]
            shape = sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length
            chain.add(dry(library, *shape, sampling.dry_window or 10_000, breakers))
        chain.add(library.llama_sampler_init_top_n_sigma(sampling.top_n_sigma or -1.0))
        chain.add(library.llama_sampler_init_top_k(sampling.top_k or 0))
        chain.add(library.llama_sampler_init_typical(sampling.typical_p or 1.0, 0))
        chain.add(library.llama_sampler_init_top_p(sampling.top_p or 1.0, 0))
        chain.add(library.llama_sampler_init_min_p(sampling.min_p or 0.0, 0))
        chain.add(library.llama_sampler_init_xtc(sampling.xtc_probability, sampling.xtc_threshold, 0, NO_SEED))
        chain.add(library.llama_sampler_init_temp(sampling.temperature))
        chain.accept(tokens)
        ids, logits = chain.apply(np.where(allowed, row, -np.inf).astype(np.float32))
    return ids, oracle.softmax(logits)


SETTINGS = [
    {"temperature": 0.7},
    {"temperature": 0.0},
    {"top_k": 40},
    {"top_k": 1},
    {"top_p": 0.9},
    {"top_p": 0.05},
    {"min_p": 0.1},
    {"typical_p": 0.9},
    {"typical_p": 0.3},
    {"top_n_sigma": 1.5},
    {"xtc_probability": 1.0, "xtc_threshold": 0.05},
    {"repetition_penalty": 1.3},
    {"repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.25},
    {"frequency_penalty": 1.5, "penalty_window": 7},
    {"logit_bias": {3: 2.5, 17: -4.0, 99: -20.0}},
    {"dry_multiplier": 0.8, "dry_breakers": [3]},
    {"dry_multiplier": 0.8, "dry_base": 2.0, "dry_allowed_length": 1, "dry_breakers": [3, 4], "dry_window": 30},
    {"temperature": 1.5, "top_k": 60, "typical_p": 0.95, "top_p": 0.95, "min_p": 0.02},
    {
        "temperature": 0.8,
        "top_k": 80,
        "top_p": 0.98,
        "min_p": 0.01,
        "top_n_sigma": 2.5,
        "xtc_probability": 1.0,
        "xtc_threshold": 0.1,
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.1,
        "dry_multiplier": 0.5,
        "dry_breakers": [0],
        "logit_bias": {5: 1.0, 6: -1.0},
    },
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: "-".join(settings))
@pytest.mark.parametrize("masked", [False, True], ids=["free", "masked"])
def test_distribution(library, settings, masked):
    sampling = Sampling(order="llama.cpp", **settings)
    for seed in range(25):
        generator = np.random.default_rng(seed)
        row = (generator.standard_normal(VOCABULARY) * generator.choice([1.0, 3.0, 6.0])).astype(np.float32)
        tokens = generator.integers(0, 6, 60).tolist()
        allowed = generator.random(VOCABULARY) < 0.5 if masked else np.ones(VOCABULARY, dtype=np.bool_)
        expected_ids, expected = theirs(library, sampling, row, tokens, allowed)
        sampler = Sampler(sampling, VOCABULARY)
        state = sampler.start(tokens[:40], seed=seed)
        for token in tokens[40:]:
            state.append(token)
        ids, probabilities = sampler.distribution(row, state, oracle.pack(allowed))
        assert ids.tolist() == expected_ids
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_breakers_that_span_tokens(library):
    """Strings over two tokens, here and there, on texts of few letters."""
    letters = [b"a", b"b", b"\n"]
    row = np.zeros(VOCABULARY, dtype=np.float32)
    sampling = Sampling(
        order="llama.cpp", dry_multiplier=1.0, dry_base=2.0, dry_allowed_length=1, dry_breakers=["ab", "\n"]
    )
    pieces = [letters[token] if token < 3 else None for token in range(VOCABULARY)]
    sampler = Sampler(sampling, VOCABULARY, token_bytes=pieces.__getitem__)
    for seed in range(50):
        tokens = np.random.default_rng(seed).choice(3, 40, p=[0.6, 0.3, 0.1]).tolist()
        with Chain(library) as chain:
            chain.add(dry(library, 1.0, 2.0, 1, 10_000, [[0, 1], [2]]))
            chain.accept(tokens)
            _, expected = chain.apply(row)
        ids, probabilities = sampler.distribution(row, sampler.start(tokens))
        assert len(ids) == VOCABULARY
        np.testing.assert_allclose(probabilities, oracle.softmax(expected), atol=1e-6)


def test_the_order_is_their_default():
    xllamacpp = pytest.importorskip("xllamacpp")
    names = {"typ_p": ("typical_p",), "penalties": ("repetition", "presence_frequency")}
    chain = xllamacpp.CommonParams().sampling.samplers.split(";")
    stages = [stage for name in chain for stage in names.get(name, (name,))]
    assert PRESETS["llama.cpp"].stages == ("logit_bias", "mask", *stages)
    assert PRESETS["llama.cpp"].window == xllamacpp.CommonParams().sampling.penalty_last_n
