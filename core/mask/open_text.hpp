#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mask/local_mask.hpp"

// Masks of texts that may go on with any unit: U* Y | ..., as in a string that must contain a pattern somewhere, or whose
// pattern has been matched already.
//
// Every token made of units alone fits, whatever the pattern is waiting for, so only tokens with something else in them
// (the closing quote) have to be walked: they are kept as a trie of their own, a few per cent of the whole.
//
// Tests: tests/core/test_exactness.py.

namespace grammask {

class OpenText {
 public:
  // The unit U if e is U* Y or a union with such a member, U is a character with many starts and e is free of letters.
  static ExprId unit_of(Arena& arena, ExprId e);
  OpenText(Arena& arena, const Vocabulary& vocabulary, ExprId unit);

  std::unique_ptr<LocalMask> mask(Arena& arena, ExprId e) const;
  size_t memory_bytes() const { return others_.memory_bytes() + origin_.capacity() * 4 + inside_->capacity() * 4; }

 private:
  std::shared_ptr<const std::vector<uint32_t>> inside_;  // tokens of units, the last one possibly unfinished
  Trie others_;                                          // the other tokens
  std::vector<uint32_t> origin_;                         // node of others_ -> node of the vocabulary's trie
};

}  // namespace grammask
