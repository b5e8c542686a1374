"""How far outputs are from the model's own distribution among the valid ones, for masking and sequential Monte Carlo.

    python -m benchmarks.generation.smc [--publish]

A model over three letters, whose valid outputs and their exact probabilities can be enumerated. Distances are total
variation between the exact distribution and the frequencies of many runs, which itself has a little noise: "exact" is
the distance of as many draws from the exact distribution.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import grammask
from benchmarks.tables import Table

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "strategies.md"
PICTURE = ROOT / "docs" / "images" / "smc-distance.svg"

A, B, C, END = range(4)
CONSTRAINT = grammask.Regex("(a[ab]?b|[bc]{1,3})c?")
RUNS = 2000
PARTICLES = (1, 2, 4, 8, 16, 32, 64)


def toy_model() -> grammask.FunctionModel:
    """Begins with "a" most of the time, wants "c" after it, which is never valid, and ends after an odd number of
    letters."""
    vocabulary = grammask.Vocabulary.from_tokens([b"a", b"b", b"c", None], eos_token_ids=[END])

    def logits(tokens: Sequence[int]) -> Any:
        written = list(tokens)[1:]
        row = np.array([-2.0, -3.0, 2.0, -2.0]) if written and written[-1] == A else np.array([1.5, 0.0, 0.0, -1.0])
        if len(written) % 2:
            row[END] += 2.0
        return row

    return grammask.FunctionModel(vocabulary, logits)


def exact_distribution(model: grammask.FunctionModel) -> dict[str, float]:
    """The probabilities of all valid outputs, normalized."""
    compiled = grammask.compile(CONSTRAINT, model.vocabulary)
    found = {}
    for length in range(1, 6):
        for letters in product((A, B, C), repeat=length):
            matcher = compiled.matcher()
            if not (all(matcher.accept(letter) for letter in letters) and matcher.is_complete):
                continue
            tokens, logprob = model.encode("a"), 0.0
            for token in (*letters, END):
                row = model.session().forward(tokens).astype(float)
                logprob += float(row[token] - np.logaddexp.reduce(row))
                tokens = [*tokens, token]
            found["".join("abc"[letter] for letter in letters)] = float(np.exp(logprob))
    total = sum(found.values())
    return {text: probability / total for text, probability in found.items()}


def distance(counts: Counter[str], truth: dict[str, float]) -> float:
    """Total variation."""
    total = sum(counts.values())
    return 0.5 * sum(abs(counts[text] / total - probability) for text, probability in truth.items())


def measure() -> tuple[dict[str, float], dict[int, float]]:
    """Distances of masking and of exact draws by name, and of sequential Monte Carlo by number of particles."""
    model = toy_model()
    truth = exact_distribution(model)
    compiled = grammask.compile(CONSTRAINT, model.vocabulary)

    def draws(**options: Any) -> Counter[str]:
        sampling = grammask.Sampling(temperature=1, seed=1)
        return Counter(
            model.generate("a", compiled, sampling=sampling, request=run, **options).text for run in range(RUNS)
        )

    texts = list(truth)
    ideal = Counter(np.random.default_rng(1).choice(texts, size=RUNS, p=[truth[text] for text in texts]).tolist())
    fixed = {"masking": distance(draws(), truth), "exact": distance(ideal, truth)}
    return fixed, {count: distance(draws(method="smc", particles=count), truth) for count in PARTICLES}


def table(fixed: dict[str, float], particles: dict[int, float]) -> Table:
    """Distances for people."""
    rows: list[Sequence[str]] = [["masking", f"{fixed['masking']:.3f}"]]
    rows += [[f"{count} particle{'s' * (count > 1)}", f"{value:.3f}"] for count, value in particles.items()]
    rows.append(["drawn from the exact distribution", f"{fixed['exact']:.3f}"])
    note = f"{RUNS:,} outputs each."
    return Table("Total variation distance to the exact distribution", ["", "distance"], rows, note)


def plot(fixed: dict[str, float], particles: dict[int, float], path: Path) -> None:
    """Distance by number of particles."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "grammask"
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 3.2), layout="constrained")
    axis.plot(list(particles), list(particles.values()), "o-", color="#00796b", label="sequential Monte Carlo")
    axis.axhline(fixed["masking"], color="#d84315", label="masking")
    axis.axhline(fixed["exact"], color="#888888", linestyle=":", label="noise of the measurement")
    axis.set(xscale="log", xlabel="particles", ylabel="total variation distance", ylim=(0, None))
    axis.set_xticks(list(particles), [str(count) for count in particles])
    axis.minorticks_off()
    axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--publish", action="store_true", help="put table and picture into the documentation")
    fixed, particles = measure()
    found = table(fixed, particles)
    found.show()
    if parser.parse_args().publish:
        from benchmarks.publish import filled

        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), {"smc": found.markdown()}), encoding="utf-8")
        plot(fixed, particles, PICTURE)


if __name__ == "__main__":
    main()
