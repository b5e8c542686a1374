"""Sequential Monte Carlo: outputs drawn from the model's own distribution among the valid ones.

Let p be the model and L the valid outputs. What one usually wants is p conditioned on L: p(x)/p(L) for x in L. Drawing
each token under the constraint's mask gives another distribution. A mask only looks at whether a beginning *can* be
completed, not at how likely the model is to complete it, so beginnings that lead the model into a corner come too
often.

The remedy carries n outputs ("particles") along. Each is drawn under masks, and its weight is the product, over its
steps, of the probability that the model gave to the tokens that the mask allowed: exactly the factor by which masking
drew it too often. When few particles carry most of the weight, they are resampled: the likely ones are continued
several times, the others are given up. In the end one particle is drawn by weight. As n grows, the output's
distribution tends to p conditioned on L.

The scheme is that of Loula et al. 2025 ("Syntactic and semantic control of large language models via sequential Monte
Carlo") and Lipkin et al. 2025 ("Fast controlled generation from language models with adaptive weighted rejection
sampling"). The latter estimate the weights by rejection, because their masks are expensive; here masks are exact and
cheap, so the weights are exact.

Covered by tests/decoding/test_smc.py.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grammask.decoding.output import Output, resolve_output
from grammask.decoding.result import FinishReason, InvalidValue, Result, Usage
from grammask.decoding.strategy import Interruption, Strategy
from grammask.decoding.streams import StreamEvent, TextStream
from grammask.sampling import SampledToken, Sampling
from grammask.sampling.random_numbers import uniform
from grammask.sampling.report import StepReport

if TYPE_CHECKING:
    from grammask._core import Matcher
    from grammask.models import LanguageModel, Model, Prompt, Session

_DRAW_RESAMPLING = 1
_LAST_STEP = 2**32 - 1
_PLAIN = {"temperature", "seed", "max_tokens", "order", "stop_token_ids"}
"""What ``Sampling`` may set: cuts and penalties would change the distribution that is aimed at."""


@dataclass(frozen=True)
class ParticleReport:
    """How it went.

    Attributes:
        outputs: (text, share of the weight) of all particles; a particle without a complete output has no weight.
        effective: the effective number of particles at the end, (Σw)²/Σw².
        resamplings: how often they were resampled.
        log_evidence: an estimate of the logarithm of p(L), the probability that the model by itself writes a valid
            output, in nats; its exponential is unbiased.
    """

    outputs: tuple[tuple[str, float], ...]
    effective: float
    resamplings: int
    log_evidence: float


@dataclass(frozen=True)
class SequentialMonteCarlo(Strategy):
    """``method="smc", particles=8``. ``Result.particles`` is the ParticleReport.

    Aimed at is the model's distribution at ``sampling.temperature`` (1 unless set), end of text included, conditioned
    on valid outputs of at most ``max_tokens`` tokens. Settings that cut the distribution are refused. Forced tokens
    are not skipped, because their probability counts.

    Attributes:
        particles: how many; each costs as much as an output.
        threshold: resample when the effective number falls below this share of them.
    """

    particles: int = 8
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.particles < 1:
            raise ValueError(f"particles is {self.particles}: use at least 1")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold is {self.threshold}: use a share from 0 to 1")

    def stream(
        self, model: LanguageModel, prompt: Prompt, constraint: Any, options: Mapping[str, Any]
    ) -> TextStream[Any]:
        from grammask.models.base import Model
        from grammask.models.errors import ModelError

        if not isinstance(model, Model):
            raise ModelError(f"{model.name} does not show its logits, so method='smc' cannot weigh outputs")
        self.check(options)
        sampling = options.get("sampling") or Sampling()
        output = resolve_output(constraint, model.vocabulary)
        interruption = Interruption(options.get("cancelled"), options.get("timeout"))
        run = _Run(self, model, prompt, output, sampling, dict(options), interruption)
        return TextStream(run.events(), cancel=interruption.cancel, partial=output.partial)

    def check(self, options: Mapping[str, Any]) -> None:
        for name in ("stop", "heal", "session"):
            if options.get(name):
                raise ValueError(f"{name} does not go together with method='smc': leave it out")
        sampling, neutral = options.get("sampling") or Sampling(), Sampling()
        if sampling.is_greedy:
            raise ValueError("method='smc' draws from a distribution: use a temperature above 0")
        for setting in dataclasses.fields(Sampling):
            name = setting.name
            if name not in _PLAIN and getattr(sampling, name) != getattr(neutral, name):
                raise ValueError(f"{name} changes the distribution that method='smc' aims at: leave it out")


@dataclass
class _Particle:
    session: Session
    matcher: Matcher
    logits: NDArray[np.float64]
    tokens: list[SampledToken] = field(default_factory=list)
    log_weight: float = 0.0
    ended: bool = False

    def copy(self) -> _Particle:
        return dataclasses.replace(
            self, session=self.session.fork(), matcher=self.matcher.copy(), tokens=self.tokens.copy()
        )


class _Run:
    def __init__(
        self,
        plan: SequentialMonteCarlo,
        model: Model,
        prompt: Prompt,
        output: Output,
        sampling: Sampling,
        options: dict[str, Any],
        interruption: Interruption,
    ) -> None:
        from grammask.decoding.generate import token_limit

        self._plan = plan
        self._model = model
        self._output = output
        self._temperature = sampling.temperature
        self._interruption = interruption
        self._prompt_ids = model.encode(prompt)
        self._max_tokens = token_limit(model, self._prompt_ids, options.get("max_tokens"), sampling)
        seed = options.get("seed")
        seed = sampling.seed if seed is None else seed
        self._seed: int = secrets.randbits(64) if seed is None else seed
        self._request: int = options.get("request", 0)
        vocabulary = model.vocabulary
        self._ends = sorted({*vocabulary.eos_token_ids, *sampling.stop_token_ids})
        self._mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
        self._calls = 0
        self._written = 0
        self._resamplings = 0
        self._log_evidence = 0.0

    def events(self) -> Generator[StreamEvent, None, Result[Any]]:
        start = time.perf_counter()
        particles = self._start()
        read = time.perf_counter() - start
        reason: FinishReason | None = None
        for step in range(self._max_tokens):
            reason = self._interruption.reason()
            if reason is not None or all(particle.ended for particle in particles):
                break
            for number, particle in enumerate(particles):
                if not particle.ended:
                    self._advance(particle, step, number)
            if step + 1 < self._max_tokens:
                particles = self._resampled(particles, step)
        result = self._result(particles, reason, time.perf_counter() - start, read)
        if result.text:
            yield StreamEvent(result.text)
        return result

    def _start(self) -> list[_Particle]:
        session = self._model.session()
        first = _Particle(session, self._output.compiled.matcher(), self._scaled(session.forward(self._prompt_ids)))
        self._calls += 1
        return [first, *(first.copy() for _ in range(self._plan.particles - 1))]

    def _scaled(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Log-probabilities at the temperature."""
        scaled = logits.astype(np.float64) / self._temperature
        scaled -= np.logaddexp.reduce(scaled)
        return scaled

    def _advance(self, particle: _Particle, step: int, number: int) -> None:
        """Draws one token of one particle and weighs it by the mass that the mask left."""
        allowed = self._allowed(particle.matcher)
        if not allowed.size:  # complete, and the vocabulary has no token to end with
            particle.ended = True
            return
        weights = np.exp(particle.logits[allowed])
        mass = float(weights.sum())
        if mass <= 0:
            particle.log_weight, particle.ended = -math.inf, True
            return
        particle.log_weight += math.log(mass)
        mark = uniform(self._seed, self._request, step, sample=number) * mass
        position = min(int(np.searchsorted(np.cumsum(weights), mark, side="right")), len(allowed) - 1)
        token_id = int(allowed[position])
        report = StepReport(step, min(1.0, mass), len(allowed), len(allowed))
        logprob = float(particle.logits[token_id])
        particle.tokens.append(SampledToken(token_id, logprob, logprob - math.log(mass), (), (), report))
        self._written += 1
        if token_id in self._ends:
            particle.ended = True
            return
        particle.matcher.accept(token_id)
        if step + 1 < self._max_tokens:
            particle.logits = self._scaled(particle.session.forward([token_id]))
            self._calls += 1

    def _allowed(self, matcher: Matcher) -> NDArray[np.int32]:
        allowed = matcher.allowed_token_ids()
        if matcher.is_complete:
            allowed = np.union1d(allowed, self._ends).astype(np.int32)
        return allowed

    def _resampled(self, particles: list[_Particle], step: int) -> list[_Particle]:
        """The particles, resampled (systematically) if few of them carry the weight."""
        shares, log_total = _shares(particles)
        if not shares.any() or _effective(shares) >= self._plan.threshold * len(particles):
            return particles
        count = len(particles)
        self._resamplings += 1
        self._log_evidence += log_total - math.log(count)
        marks = (np.arange(count) + uniform(self._seed, self._request, step, draw=_DRAW_RESAMPLING)) / count
        parents = np.minimum(np.searchsorted(np.cumsum(shares), marks, side="right"), count - 1)
        chosen: list[_Particle] = []
        for position, parent in enumerate(parents.tolist()):
            again = position > 0 and parents[position - 1] == parent
            particle = particles[parent].copy() if again else particles[parent]
            chosen.append(particle)
        for particle in chosen:
            particle.log_weight = 0.0
        return chosen

    def _result(
        self, particles: list[_Particle], reason: FinishReason | None, seconds: float, prompt_seconds: float
    ) -> Result[Any]:
        for particle in particles:
            if not particle.ended and not (particle.matcher.is_complete and not self._ends):
                particle.log_weight = -math.inf
        shares, log_total = _shares(particles)
        decode = self._output.compiled.vocabulary.decode
        texts = [
            decode(token.token_id for token in particle.tokens).decode("utf-8", "ignore") for particle in particles
        ]
        complete = bool(shares.any())
        chosen = 0
        if complete:
            mark = uniform(self._seed, self._request, _LAST_STEP)
            chosen = min(int(np.searchsorted(np.cumsum(shares), mark, side="right")), len(particles) - 1)
        report = ParticleReport(
            tuple(zip(texts, shares.tolist(), strict=True)),
            _effective(shares),
            self._resamplings,
            self._log_evidence + log_total - math.log(len(particles)),
        )
        particle = particles[chosen]
        value = None
        if complete:
            try:
                value = self._output.parse(texts[chosen])
            except ValueError as error:
                raise InvalidValue(texts[chosen], error) from error
        return Result(
            value=value,
            text=texts[chosen],
            complete=complete,
            finish_reason="stop" if complete else reason or "length",
            usage=Usage(len(self._prompt_ids), self._written, 0, self._calls),
            tokens=tuple(particle.tokens),
            pieces=tuple(decode([token.token_id]) for token in particle.tokens),
            seed=self._seed,
            seconds=seconds,
            prompt_seconds=prompt_seconds,
            particles=report,
        )


def _shares(particles: list[_Particle]) -> tuple[NDArray[np.float64], float]:
    """Each particle's share of the weight (all 0 if none has any), and the logarithm of the whole weight."""
    logs = np.array([particle.log_weight for particle in particles])
    if np.isneginf(logs).all():
        return np.zeros(len(particles)), -math.inf
    total = float(np.logaddexp.reduce(logs))
    return np.exp(logs - total), total


def _effective(shares: NDArray[np.float64]) -> float:
    squares = float(np.square(shares).sum())
    return float(shares.sum()) ** 2 / squares if squares > 0 else 0.0
