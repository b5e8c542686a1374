#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mask/local_mask.hpp"

// Walks a trie with an expression without letters. There is nothing to call and nothing below the frame, so all that a
// walk needs of a state is where each byte leads: places of the walk are numbered as they are met, and a step is two
// look-ups in small tables. Where nearly every byte changes the state this is several times faster than Walker.
//
// Tests: tests/core/test_exactness.py, tests/core/test_real_vocabularies.py.

namespace grammask {

struct TextTokens {
  std::vector<uint32_t> words;    // the tokens that can be read
  size_t count = 0;               // how many these are, or more where a token was met twice
  std::vector<uint32_t> returns;  // nodes with children after which a word of the expression is complete
};

TextTokens walk_text(Arena& arena, const Vocabulary& vocabulary, const Trie& trie, ExprId e);

}  // namespace grammask
