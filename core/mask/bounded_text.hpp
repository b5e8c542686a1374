#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "mask/counted_text.hpp"
#include "mask/local_mask.hpp"

// Masks of (U{0,high} & A) R, as in a string with a pattern and a maximum length: U is one character, R the closing quote.
//
// Every number of characters left would be a state with a mask of its own. But wherever so many characters are left that
// no token comes near the end, the mask is that of (U* & A) R, which depends on A alone: it is shared. Nearer to the end
// only the longest tokens can differ, and those are read one by one.
//
// "Near" counts what A still needs: if every state of A is at most `slack` bytes away from a word, then a token after
// which at least that many characters are left leads to a dead end in one mask only if it does in the other.
//
// Tests: tests/core/test_exactness.py, tests/core/test_real_vocabularies.py.

namespace grammask {

struct BoundedText {
  ExprId relaxed;      // (U* & A) R
  uint32_t safe;       // tokens with at most so many characters are as in relaxed
  CountedText* table;  // how many characters tokens hold
};

// Whether e is such a text, far enough from its end. The caller holds the arena's mutex.
std::optional<BoundedText> bounded_text(Arena& arena, const Vocabulary& vocabulary, ExprId e);

// The mask of e: that of text.relaxed itself where no token is too long, else null with `made` set; both are null if too
// many tokens would have to be read.
const LocalMask* bounded_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e, const BoundedText& text,
                              std::unique_ptr<LocalMask>& made);

}  // namespace grammask
