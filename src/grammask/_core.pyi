"""The native core: byte-level languages, the token trie, masks and matchers.

The core knows regular languages, grammars, JSON-like collection frames and tokens. What a JSON Schema, a regular
expression dialect or a Python type *means* is decided in ``grammask.constraints``, which talks to the core through
``Builder``.
"""

from collections.abc import Sequence
from mmap import mmap
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Expr = int
"""An interned expression: equal languages built the same way have equal numbers. Valid with the Builder that made it
and with every other Builder of the same Vocabulary generation; never construct one by hand."""

Spelling = Literal["utf8", "json", "json-canonical"]
"""How a code point is spelled in bytes.

``utf8``            its UTF-8 bytes.
``json``            every spelling RFC 8259 allows between the quotes of a JSON string: raw UTF-8 where raw is legal
                    (not ``"``, ``\\`` or below U+0020), the short escapes (``\\n``, ``\\/`` ...), ``\\uXXXX`` in either
                    case, surrogate pairs for astral code points.
``json-canonical``  exactly one spelling: raw where legal, else the short escape, else ``\\u00xx`` in lower case
                    (what ``json.dumps(ensure_ascii=False)`` writes).
Surrogate code points (U+D800 to U+DFFF) have no spelling: they are dropped from any class.
"""

class ConstraintTooLargeError(Exception):
    """A budget of the Builder or of the compiled constraint was exceeded."""

class Vocabulary:
    """Token bytes, the token trie and the caches that constraints over this vocabulary share.

    tokens: the bytes of each token id; None for ids that never match text (special tokens, padding rows).
    """

    def __init__(self, tokens: Sequence[bytes | None], eos_token_ids: Sequence[int], size: int) -> None: ...
    @staticmethod
    def from_arrays(data: bytes | memoryview, offsets: NDArray[np.uint32], eos_token_ids: Sequence[int]) -> Vocabulary:
        """From the bytes of all tokens in one, where each begins and where the last ends: size + 1 offsets. Both are
        used where they lie. Ids without bytes never match text; end-of-text tokens are among them."""
    @staticmethod
    def load(block: bytes | mmap) -> tuple[Vocabulary, bytes]:
        """A vocabulary that reads what ``to_block`` returned where it lies, and the notes. ValueError if the block is
        damaged, or of another version or byte order."""
    def to_block(self, notes: bytes) -> bytes:
        """The vocabulary with its trie as one block, laid out as it is used; notes go with it."""
    @property
    def data(self) -> NDArray[np.uint8]:
        """The bytes of all tokens, read only."""
    @property
    def offsets(self) -> NDArray[np.uint32]:
        """Where each token begins in ``data``, and where the last ends, read only."""
    @property
    def size(self) -> int: ...
    @property
    def eos_token_ids(self) -> list[int]: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...
    def tokenize_greedy(self, text: bytes) -> list[int]: ...
    cache_budget: int
    """Bytes of states and masks that constraints share before new constraints start with empty caches."""
    def memory_bytes(self) -> dict[str, int]: ...

class Builder:
    """Builds expressions for one constraint.

    An expression denotes a language over bytes. Expressions are hash-consed, so building the same thing twice is cheap
    and yields the same number. Methods raise ConstraintTooLargeError when ``limits`` are exceeded.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        max_expressions: int = 2_000_000,
        max_seconds: float = 30.0,
    ) -> None: ...

    # -- leaves
    @property
    def empty(self) -> Expr: ...  # no word at all
    @property
    def epsilon(self) -> Expr: ...  # the empty word only
    def literal(self, data: bytes) -> Expr: ...
    def literals(self, words: Sequence[bytes]) -> Expr:
        """One of these words. Millions are fine: they are kept as a sorted list that serves as an automaton, whose
        memory is that of the words, of 4 bytes for each, and of the states that were visited."""
    def byte_set(self, ranges: Sequence[tuple[int, int]]) -> Expr: ...  # one byte out of inclusive ranges
    def chars(self, ranges: Sequence[tuple[int, int]], spelling: Spelling = "utf8") -> Expr:
        """One code point out of inclusive ranges, spelled as told."""
    def text(self, text: str, spelling: Spelling = "utf8") -> Expr:
        """Exactly this text, each code point spelled as told."""
    def decimal(
        self,
        *,
        minimum: str | None = None,
        maximum: str | None = None,
        exclusive_minimum: bool = False,
        exclusive_maximum: bool = False,
        multiple_of: str | None = None,
        integer: bool = False,
        point: bool = True,
        exponent: bool = True,
        scientific: bool = False,
        plain: bool = True,
        places: int | None = None,
        within_reach: bool = False,
    ) -> Expr:
        """JSON number texts whose exact decimal value lies within the bounds and is a multiple of multiple_of.

        Bounds and multiple are decimal texts such as "-12.5" or "1e-3". integer: the value is whole (1.0 counts).
        point=False leaves out texts with a point or an exponent, exponent=False those with an exponent, and
        scientific=True texts with an exponent that have other than one digit before the point, or a nonzero one after
        0: 1.5e+22 is in, 15e21 is not. plain=False leaves out texts without an exponent. places limits the digits after
        the point and exponents to three digits; it needs exponent=False, or scientific=True and plain=False, so that a
        language of both kinds is a union. within_reach=True takes the texts of every set from one language, for
        differences of sets; which texts with an exponent those are, core/regular/decimal.hpp says.
        """

    # -- combinators
    def concat(self, parts: Sequence[Expr]) -> Expr: ...
    def union(self, parts: Sequence[Expr]) -> Expr: ...
    def intersection(self, parts: Sequence[Expr]) -> Expr: ...
    def complement(self, e: Expr) -> Expr: ...  # relative to all byte strings
    def repeat(self, e: Expr, low: int, high: int | None) -> Expr: ...
    def optional(self, e: Expr) -> Expr: ...

    # -- frames and recursion
    def call(self, e: Expr) -> Expr:
        """The language of e, matched in a frame of its own.

        Inside intersection and complement a call is a single letter: the operation is over words whose letters are
        bytes and calls. Use it for every value of a collection: equal bodies then share their states and masks across
        grammars. Include the white space that may stand before a value in the body of the call.
        """
    def rule(self, name: str) -> Expr:
        """A call to a rule that is defined later (recursion). name appears in diagnostics only."""
    def define(self, rule: Expr, body: Expr) -> None: ...
    def special_token(self, token_id: int) -> Expr:
        """Exactly this token, by id; never matched by text."""
    def object(
        self,
        members: Sequence[tuple[bytes | Expr, bool, Sequence[tuple[Expr, int]]]],
        *,
        open: Expr,
        colon: Expr,
        comma: Expr,
        close: Expr,
        min_members: int = 0,
        max_members: int | None = None,
        ordered: bool = True,
        obligations: int = 0,
        dependencies: Sequence[tuple[int, Sequence[int]]] = (),
    ) -> Expr:
        """A JSON object frame: open [member (comma member)*] close, where member is key colon value.

        members: (key, required, values).
            key: bytes, one literal key with its quotes in its only spelling: it may appear at most once; or an Expr, a
                family of keys (call-free, with quotes): any number of distinct keys from it, always after the literal
                ones when ``ordered``. Families and literals must be pairwise disjoint languages (the caller's duty).
            required: literal keys only.
            values: alternatives (value, mask): a value expression (normally a call) and the bit set of obligations
                that a member with this value fulfils.
        ordered: literal members appear in the order given (families last); else in any order.
        obligations: how many obligation bits there are; the object may close only when every bit has been fulfilled.
        dependencies: (i, [j...]): if literal member i is present, members j (literal, indices into members) must be.
        close: must not match the empty text.
        Dead ends are never entered: a key is offered only if the object can still be completed after it. Returns
        ``empty`` if no object exists.
        """
    def unique_array(
        self,
        item: Expr,
        *,
        open: Expr,
        comma: Expr,
        close: Expr,
        prefix: Sequence[Expr] = (),
        min_items: int = 0,
        max_items: int | None = None,
    ) -> Expr:
        """A JSON array whose items are pairwise different as JSON values (1 equals 1.0, key order ignored).

        prefix: items by position; ``item`` is for those after them (``empty`` for none).
        """
    def counted_array(
        self,
        kinds: Sequence[Expr],
        positions: Sequence[Sequence[tuple[int, int]]],
        *,
        open: Expr,
        comma: Expr,
        close: Expr,
        counts: Sequence[tuple[int, int | None]] = (),
        repeats: bool = False,
        min_items: int = 0,
        max_items: int | None = None,
        before_item: Expr | None = None,
    ) -> Expr:
        """A JSON array whose items are counted, and pairwise different; or, with ``repeats``, two of them are equal.

        kinds: items; no JSON value may have texts in two of them (the caller's duty).
        positions: what may stand at the first positions, and with the last one at all others: pairs of a kind and the
            bit set of the counts that such an item adds to (at most 32).
        counts: (least, most) of each count.
        before_item: the blanks that every kind begins with.

        An item that must be equal to an earlier one, for want of room, may be spelled in any way if it is a scalar or
        its kind a regular language; objects and arrays of other kinds are repeated as they were written.

        Raises ConstraintTooLargeError where it takes too many combinations of counts to tell what can be completed.
        """

    # -- what constraints over one vocabulary keep for each other (format automata, the rule for any JSON value ...)
    def memo_get(self, key: str) -> Expr | None: ...
    def memo_set(self, key: str, e: Expr) -> None: ...

    # -- questions
    def is_empty(self, e: Expr) -> bool: ...
    def is_nullable(self, e: Expr) -> bool: ...
    def count_words(self, e: Expr, limit: int) -> int:
        """How many words a call-free expression has, counted up to limit (limit when there are at least that many)."""
    def shortest(self, e: Expr) -> bytes | None:
        """A shortest word, None if there is none."""
    def matches(self, e: Expr, data: bytes) -> bool:
        """Whether a call-free expression matches exactly these bytes."""
    def show(self, e: Expr) -> str:
        """A readable form, for tests and debugging."""
    def compile(self, root: Expr) -> Compiled:
        """Checks that every rule is defined, drops unproductive ones. Raises ValueError if the language is empty."""

class Compiled:
    """Immutable, shareable between threads."""

    work_seconds: float
    """Wall time for one mask or one token; beyond it matchers raise ``ConstraintTooLargeError``."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    def matcher(self) -> Matcher: ...
    def memory_bytes(self) -> dict[str, int]: ...

class Matcher:
    """The position of one sequence inside a compiled constraint. One thread at a time."""

    def fill_mask(self, out: NDArray[np.int32]) -> None: ...
    def allowed_token_ids(self) -> NDArray[np.int32]: ...
    def accept(self, token_id: int) -> bool: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def matched_prefix(self, data: bytes) -> int:
        """How many of these bytes could be accepted from here; the matcher is not changed."""
    def next_bytes(self) -> bytes:
        """All bytes that may come next, ascending."""
    def rollback(self, n_tokens: int) -> None: ...
    def forced_bytes(self, limit: int = 65536) -> bytes:
        """The bytes that are certain to come next (empty when the output could also end here)."""
    def forced_tokens(self) -> list[int]: ...
    def shortest_completion(self) -> list[int] | None:
        """Tokens that complete the output from here, without end-of-text: those of a short text, as few as spell it.

        Empty if the output is complete, None if no completion was found: texts of millions of bytes, items of a unique
        array that recurse, or a search that grew too large (50,000 new expressions, a quarter of a second).
        """
    @property
    def is_complete(self) -> bool: ...
    @property
    def is_terminated(self) -> bool: ...  # an end-of-text token was accepted
    def copy(self) -> Matcher: ...
    def stack(self) -> list[str]:
        """The frames, outermost first, in readable form."""

def fill_masks(matchers: Sequence[Matcher], out: NDArray[np.int32], threads: int | None = None) -> None: ...
