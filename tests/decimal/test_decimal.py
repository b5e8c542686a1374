"""Decimal expressions against exact fractions: which texts they accept, and which prefixes they keep alive."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammask import _core
from support.decimal_oracle import REACH, DecimalOracle, number_prefixes

ALPHABET = "0123456789-+.eE"
VOCABULARY = _core.Vocabulary([bytes([value]) for value in range(256)], [], 256)

MULTIPLES = ["1", "2", "3", "7", "10", "12", "125", "300", "1e3", "0.1", "0.5", "2.5", "0.25", "0.02", "0.03", "1e-3"]
MULTIPLES += ["0.007", "64e-3", "16e-5", "1e20", "1e-30", "1048576", "48828125"]
SHORT_PREFIXES = list(number_prefixes("01259-.+e", 4))


class Reader:
    """Reads texts with the native core."""

    def __init__(self, numbers: DecimalOracle, *, compiled: bool = True) -> None:
        self.builder = _core.Builder(VOCABULARY)
        self.expression = self.builder.decimal(**asdict(numbers))
        self.empty = self.builder.is_empty(self.expression)
        self.matcher = None if self.empty or not compiled else self.builder.compile(self.expression).matcher()

    def accepts(self, text: str) -> bool:
        return self.builder.matches(self.expression, text.encode())

    def alive(self, prefix: str) -> bool:
        return self.matcher is not None and self.matcher.matched_prefix(prefix.encode()) == len(prefix)


def random_number(rng: random.Random, digits: int) -> str:
    """Digits that borrow and carry (0, 1, 9) are as frequent at the end as all others; some numbers are scaled up."""
    if rng.random() < 0.15:
        return rng.choice(["0", "-0", "1", "-1", "10", "-10", "0.1", "100"])
    mantissa = str(rng.randrange(1, 10 ** rng.randrange(1, digits + 1)))
    if rng.random() < 0.5:
        mantissa += "".join(rng.choice("00119") for _ in range(rng.randrange(1, 4)))
    sign = "-" if rng.random() < 0.35 else ""
    scale = 4 if rng.random() < 0.7 else 40
    return f"{sign}{mantissa}e{rng.randrange(-len(mantissa) - 4, scale)}"


def plain(value: Fraction) -> str:
    """The spelling without an exponent, for denominators that divide a power of ten."""
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(value * 10**places))).zfill(places + 1)
    sign = "-" if value < 0 else ""
    return sign + digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")


def spellings(value: Fraction) -> Iterator[str]:
    """With the point in its place, with zeros after it, and with the point elsewhere."""
    text = plain(value)
    yield text
    yield text + ("0" if "." in text else ".00")
    for exponent in (-3, 1, 2, 26):
        yield f"{plain(value / Fraction(10) ** exponent)}e{exponent}"
    magnitude = len(text.lstrip("-").partition(".")[0]) - 1
    yield f"{plain(value / 10**magnitude)}E+{magnitude}"


def random_set(rng: random.Random, digits: int) -> DecimalOracle:
    low = random_number(rng, digits) if rng.random() < 0.6 else None
    high = random_number(rng, digits) if rng.random() < 0.6 else None
    if low is not None and rng.random() < 0.3:  # a narrow interval
        mantissa, exponent = low.split("e") if "e" in low else (low, "0")
        if mantissa.lstrip("-").isdigit():
            high = f"{int(mantissa) + rng.randrange(3)}e{exponent}"
    if low is not None and high is not None and Fraction(low) > Fraction(high):
        low, high = high, low
    places = rng.choice([None, None, 0, 1, 3, 30])
    exponent = rng.random() < 0.7
    return DecimalOracle(
        minimum=low,
        maximum=high,
        exclusive_minimum=rng.random() < 0.5,
        exclusive_maximum=rng.random() < 0.5,
        multiple_of=rng.choice(MULTIPLES) if rng.random() < 0.5 else None,
        integer=rng.random() < 0.25,
        point=rng.random() < 0.85,
        exponent=exponent,
        scientific=rng.random() < 0.3 or (exponent and places is not None),
        plain=rng.random() < 0.9 if places is None else not exponent,
        places=places,
        within_reach=rng.random() < 0.15 and places is None,
    )


@pytest.mark.parametrize("seed", range(24))
def test_every_short_text(seed: int) -> None:
    numbers = random_set(random.Random(seed), 4)
    reader = Reader(numbers)
    assert reader.empty is not numbers.alive("")
    alive = {""} if not reader.empty else set()
    for text in SHORT_PREFIXES[1:]:
        if text[:-1] in alive:
            assert reader.alive(text) is numbers.alive(text), (numbers, text)
            if reader.alive(text):
                alive.add(text)
        assert reader.accepts(text) is numbers.accepts(text), (numbers, text)


@pytest.mark.parametrize("seed", range(12))
def test_numbers_around_the_bounds(seed: int) -> None:
    """The bounds of random sets and their neighbours, near and one digit off at any place, in several spellings."""
    rng = random.Random(seed)
    for _ in range(25):
        numbers = random_set(rng, rng.choice([1, 3, 17]))
        if rng.random() < 0.5:
            numbers = replace(numbers, multiple_of=None, integer=False, point=True)
        bounds = [Fraction(bound) for bound in (numbers.minimum, numbers.maximum) if bound is not None]
        reader = Reader(numbers, compiled=False)
        for bound in bounds:
            exact = plain(bound)
            lowest = -len(exact.partition(".")[2])
            for place in {lowest - 3, lowest, rng.randrange(lowest, len(exact) + 1)}:
                for change in (-10, -9, -1, 0, 1, 8, 9):
                    for text in spellings(bound + change * Fraction(10) ** place):
                        assert reader.accepts(text) is numbers.accepts(text), (numbers, text)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), digits=st.sampled_from([3, 20, REACH - 1, REACH, REACH + 2]))
def test_long_walks(seed: int, digits: int) -> None:
    """A walk that prefers the digits of a bound, or zeros; at some of its steps every next byte is judged."""
    rng = random.Random(seed)
    numbers = random_set(rng, digits)
    reader = Reader(numbers)
    assert reader.empty is not numbers.alive("")
    if reader.empty or reader.matcher is None:
        return
    wanted = rng.choice(["0" * 60, *[bound for bound in (numbers.minimum, numbers.maximum) if bound is not None]])
    text = ""
    for step in range(rng.choice([6, 30, REACH + 8])):
        follow = [char for char in ALPHABET if reader.alive(text + char)]
        if step < 3 or rng.random() < 0.1 or len(text) in (REACH - 1, REACH, REACH + 1):
            assert follow == [char for char in ALPHABET if numbers.alive(text + char)], (numbers, text)
        assert reader.accepts(text) is numbers.accepts(text), (numbers, text)
        if not follow or "e" in text.lower():
            break
        preferred = wanted[len(text) : len(text) + 1]
        if preferred and preferred in follow and rng.random() < 0.9:
            text += preferred
        else:
            digits_only = [char for char in follow if char.isdigit()] if rng.random() < 0.9 else follow
            text += rng.choice(digits_only or follow)
    assert numbers.alive(text), (numbers, text)


def test_printed_floats_belong_to_the_numbers_and_to_their_own_interval() -> None:
    rng = random.Random(7)
    anything = Reader(DecimalOracle(within_reach=True))
    for _ in range(200):
        text = repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300))
        assert anything.accepts(text)
        assert Reader(DecimalOracle(minimum=text, maximum=text)).accepts(text)


def test_numbers_that_are_no_multiple() -> None:
    """A complement is exact relative to the texts that every set has in common."""
    builder = _core.Builder(VOCABULARY)
    common = builder.decimal(within_reach=True)
    others = builder.intersection([common, builder.complement(builder.decimal(multiple_of="0.5"))])
    judge, everything = DecimalOracle(multiple_of="0.5"), DecimalOracle(within_reach=True)
    for text in SHORT_PREFIXES:
        assert builder.matches(others, text.encode()) is (everything.accepts(text) and not judge.accepts(text)), text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minimum": "1,5"}, 'minimum "1,5" is not a JSON number'),
        ({"maximum": "007"}, 'maximum "007" has a leading zero'),
        ({"maximum": "1e1000"}, "400 places"),
        ({"multiple_of": "0"}, 'multiple "0" is not positive'),
        ({"places": -1}, "places are 0 to 400"),
        ({"places": 3}, "places limit texts without exponents, or scientific ones"),
        ({"multiple_of": "1.0000000000000000001"}, "more than 18 significant digits"),
    ],
)
def test_refused(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.Builder(VOCABULARY).decimal(**arguments)  # type: ignore[arg-type]
