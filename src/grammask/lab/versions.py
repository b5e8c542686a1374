"""A recording of one greedy output, to be compared with one made elsewhere: another release, another machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grammask.lab.experiment import Counter, LabError, Options, asked, decode, setup_of
from grammask.lab.report import Result, Table
from grammask.lab.traces import PROMPT
from grammask.sampling import Sampling

if TYPE_CHECKING:
    from grammask.models import Model

STEPS = 32
KEPT = 20
"""So many of the highest logits of each step are kept."""


@dataclass(frozen=True)
class Step:
    """One step: its token, a digest of all logits, and the highest of them."""

    token: int
    digest: str
    ids: tuple[int, ...]
    logits: tuple[float, ...]


@dataclass(frozen=True)
class Comparison:
    """This recording beside an earlier one.

    Attributes:
        components: what differs between the fingerprints, name to (here, there).
        first_bits: the first step whose logits are not the same bits; None if all are.
        first_token: the first step with another token; None if there is none.
        largest: largest difference of a logit kept by both, up to first_token.
    """

    components: dict[str, tuple[str | None, str | None]]
    first_bits: int | None
    first_token: int | None
    largest: float


@dataclass(frozen=True)
class VersionsResult(Result):
    """The recording, and what it shows beside an earlier one if there was one."""

    NAME = "versions"
    TITLE = "Recording to compare versions and machines with"
    METHOD = (
        "One output is decoded greedily and recorded: tokens, digests of the logits, and the highest logits. Its JSON "
        "file, given with --against to a later run under other versions or on another machine, tells what differs."
    )

    recording: tuple[Step, ...]
    comparison: Comparison | None = None

    def findings(self) -> list[str]:
        if self.comparison is None:
            return [f"Recorded {len(self.recording)} steps under {self.setup.fingerprint}."]
        comparison = self.comparison
        changed = ", ".join(
            f"{name} {there or 'unknown'} → {here or 'unknown'}"
            for name, (here, there) in comparison.components.items()
        )
        found = [f"Changed since the earlier recording: {changed or 'nothing that the fingerprint sees'}."]
        if comparison.first_bits is None:
            found.append(f"All {len(self.recording)} steps have the same logits, bit for bit.")
        else:
            found.append(
                f"Logits differ from step {comparison.first_bits} on, by up to {comparison.largest:.1e}; "
                + (
                    "the tokens are the same."
                    if comparison.first_token is None
                    else f"another token comes at step {comparison.first_token}."
                )
            )
        return found

    def tables(self) -> list[Table]:
        components = tuple(sorted(self.setup.components.items()))
        tables = [Table(f"Fingerprint {self.setup.fingerprint}", ("component", "value"), components)]
        if self.comparison is not None:
            rows = tuple((name, here, there) for name, (here, there) in self.comparison.components.items())
            tables.append(Table("Beside the earlier recording", ("component", "here", "there"), rows))
        return tables


RESULT = VersionsResult


def run(model: Model, options: Options = Options()) -> VersionsResult:  # noqa: B008 - immutable
    """Records, and compares if there is something to compare with.

    Raises:
        LabError: what to compare with is no recording of this experiment, or of other steps.
    """
    earlier = None if options.against is None else _read(options.against)
    steps = options.steps or (len(earlier) if earlier else STEPS)
    counter = Counter(options.progress, steps)
    output = decode(
        model,
        asked(model, PROMPT),
        Sampling(temperature=0, min_tokens=steps),
        steps,
        seed=options.seed,
        counter=counter,
    )
    recording = tuple(_step(token, row) for token, row in zip(output.output_ids, output.rows, strict=True))
    setup = setup_of(model, steps, options.seed)
    if options.against is None or earlier is None:
        return VersionsResult(setup, recording)
    there = {str(name): str(value) for name, value in options.against["setup"]["components"].items()}
    return VersionsResult(setup, recording, compare(recording, earlier, setup.components, there))


def compare(
    here: tuple[Step, ...], there: tuple[Step, ...], components: dict[str, str], earlier: dict[str, str]
) -> Comparison:
    """Step by step, as far as both go."""
    from grammask.models.fingerprint import Fingerprint

    pairs = list(zip(here, there, strict=False))
    bits = [index for index, (a, b) in enumerate(pairs) if a.digest != b.digest]
    tokens = [index for index, (a, b) in enumerate(pairs) if a.token != b.token]
    comparable = pairs[: tokens[0] + 1] if tokens else pairs
    apart = [
        abs(value - dict(zip(b.ids, b.logits, strict=True))[token])
        for a, b in comparable
        for token, value in zip(a.ids, a.logits, strict=True)
        if token in b.ids
    ]
    return Comparison(
        Fingerprint(components).differences(earlier),
        bits[0] if bits else None,
        tokens[0] if tokens else None,
        max(apart, default=0.0),
    )


def _step(token: int, row: np.ndarray) -> Step:
    best = np.argsort(-row, kind="stable")[:KEPT]
    digest = hashlib.sha256(np.ascontiguousarray(row, dtype="<f4").tobytes()).hexdigest()[:16]
    return Step(token, digest, tuple(best.tolist()), tuple(float(value) for value in row[best]))


def _read(data: dict[str, Any]) -> tuple[Step, ...]:
    try:
        if data["experiment"] != VersionsResult.NAME:
            raise LabError(f"what to compare with is a result of {data['experiment']!r}, not of 'versions'")
        return tuple(
            Step(step["token"], step["digest"], tuple(step["ids"]), tuple(step["logits"])) for step in data["recording"]
        )
    except (KeyError, TypeError) as error:
        raise LabError(f"what to compare with is no recording of the experiment 'versions': {error!r}") from error
