#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "mask/counted_text.hpp"
#include "mask/local_mask.hpp"

// Masks of texts with large counts, as in a string with a pattern and a maximum length, or in (\S+\s+){0,99}\S+.
//
// Every count left would be a state with a mask of its own. But wherever counts are so far from their ends that no token
// comes near them, the mask is that of the same expression without those upper bounds, which is shared by all of them.
// Nearer to the end only the longest tokens can differ, and those are read one by one.
//
// "Near" counts what is still needed: if without the bounds every state is at most `slack` bytes away from a word, then
// a token after which at least that many bytes fit leads to a dead end in one mask only if it does in the other.
//
// There are two ways to see how far a token goes: by its bytes, for counts of anything; and by its characters, which are
// fewer, for (U{0,high} & A) R, where U is one character and R the closing quote.
//
// Tests: tests/core/test_exactness.py, tests/core/test_real_vocabularies.py.

namespace grammask {

struct BoundedText {
  ExprId relaxed;      // without the bounds
  uint32_t safe;       // tokens with at most so many bytes, or characters, are as in relaxed
  CountedText* table;  // how many characters tokens hold; null if bytes are counted
};

// Whether e is such a text, far enough from its ends. The caller holds the arena's mutex.
std::optional<BoundedText> bounded_text(Arena& arena, const Vocabulary& vocabulary, ExprId e);

// The same for (U{0,high} & A) R where A holds counts of its own: relaxed keeps U's bound, but not those.
std::optional<BoundedText> bounded_pattern(Arena& arena, const Vocabulary& vocabulary, ExprId e);

// The mask of e: that of text.relaxed itself where no token is too long, else null with `made` set; both are null if too
// many tokens would have to be read.
const LocalMask* bounded_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e, const BoundedText& text,
                              std::unique_ptr<LocalMask>& made);

}  // namespace grammask
