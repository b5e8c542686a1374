"""Random numbers that depend on nothing but (seed, request, sample, step, draw).

Philox 4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011) turns a 128-bit
counter and a 64-bit key into 128 random bits by ten rounds of multiplication and exclusive or. There is no state: what
a request draws at a step is the same in any batch, on any platform, with any library version.

    key      the seed, low word first
    counter  word 0: draw (low 8 bits) and sample (high 24 bits); word 1: step; words 2 and 3: request, low word first
"""

from __future__ import annotations

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF
_ROUNDS = 10

DRAW_TOKEN = 0
"""The draw of the token itself."""
DRAW_XTC = 1
"""The coin that decides whether XTC acts at this step."""


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Four random 32-bit words from four counter words and two key words (ten rounds)."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0 = _MULTIPLIERS[0] * c0
        product1 = _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (
            (product1 >> 32) ^ c1 ^ k0,
            product1 & _WORD,
            (product0 >> 32) ^ c3 ^ k1,
            product0 & _WORD,
        )
        k0 = (k0 + _WEYL[0]) & _WORD
        k1 = (k1 + _WEYL[1]) & _WORD
    return c0, c1, c2, c3


def uniform(seed: int, request: int, step: int, *, sample: int = 0, draw: int = DRAW_TOKEN) -> float:
    """A number from [0, 1) with 53 random bits.

    Args:
        seed, request: 64 bits each; step: 32 bits; sample: 24 bits; draw: 8 bits.
    """
    counter = (draw | sample << 8, step, request & _WORD, request >> 32)
    low, high, _, _ = philox4x32(counter, (seed & _WORD, seed >> 32))
    return ((high << 32 | low) >> 11) * 2.0**-53
