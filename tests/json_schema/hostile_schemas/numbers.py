"""Bounds of many digits, divisors that are coprime."""

from __future__ import annotations

import functools
from decimal import Decimal

from json_schema.hostile_schemas.row import EITHER, EMPTY, TOO_LARGE, Row

PRIMES = [n for n in range(3, 80) if all(n % d for d in range(2, n))]


NUMBERS = {
    **{
        f"number with {name}": Row(functools.partial(dict, {"type": "number"}, **part), EITHER | EMPTY)
        for name, part in {
            "a bound of 300 digits": {"minimum": 10**300 + 7, "maximum": 10**301},
            "a bound of 3,000 digits": {"minimum": 10**3000},
            "bounds far apart": {"minimum": Decimal("-1e300"), "maximum": Decimal("1e-300")},
            "a multiple of 300 digits": {"multipleOf": 10**300 + 7},
            "a multiple of 18 digits": {"multipleOf": 10**17 + 3},
            "a small multiple of 300 places": {"multipleOf": Decimal("1e-300")},
            "a multiple of 40 digits": {"multipleOf": Decimal("1.2345678901234567890123456789012345678901")},
            "a multiple and bounds": {"multipleOf": 999_999_937, "minimum": 1, "maximum": 10**18},
            "a multiple that none is": {"multipleOf": 999_999_937, "minimum": 1, "maximum": 999_999_936},
            "an exponent of nine digits": {"maximum": Decimal("1e999999999")},
            "a large divisor and small steps": {"multipleOf": Decimal("0.000000007"), "exclusiveMinimum": 0},
        }.items()
    },
    "coprime multiples": Row(
        lambda: {"type": "number", "allOf": [{"multipleOf": Decimal(n) / 1000} for n in (7, 11, 13, 17, 19, 23, 29)]},
        EITHER,
    ),
    "coprime multiples beyond the limit": Row(
        lambda: {"type": "number", "allOf": [{"multipleOf": n} for n in PRIMES]}, TOO_LARGE
    ),
    "none of coprime multiples": Row(
        lambda: {"type": "integer", "allOf": [{"not": {"multipleOf": n}} for n in PRIMES]}, EITHER
    ),
    "none of coprime multiples in a range": Row(
        lambda: {
            "type": "integer",
            "minimum": 2,
            "maximum": 10**12,
            "allOf": [{"not": {"multipleOf": n}} for n in (2, *PRIMES)],
        },
        EITHER,
    ),
    "one of coprime multiples": Row(
        lambda: {"type": "integer", "oneOf": [{"multipleOf": n} for n in PRIMES[:8]]}, EITHER
    ),
    "a draft 4 integer of a large multiple": Row(
        lambda: {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "not": {"type": "integer"},
            "multipleOf": 99_991,
        },
        EITHER,
    ),
}
