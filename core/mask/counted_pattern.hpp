#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mask/local_mask.hpp"

// Masks of (U{low,high} & P) R, as in a string with a pattern and a maximum length: U is one character, P a pattern of
// such characters, R the closing quote.
//
// Every count left times every state of the pattern would be a state with a mask of its own. But a token fits if and only if
// the pattern reads it and can be completed with a number of characters that the count leaves. So one walk over the
// vocabulary, through the pattern alone, sorts tokens by how many characters they hold and where in the pattern they end;
// with how many characters the pattern can be completed from there is known for all of its states; and the mask for any
// bounds is a look-up. Tokens that close the text are decided by their number of characters alone.
//
// Tests: tests/core/test_exactness.py, tests/core/test_real_vocabularies.py.

namespace grammask {

class CountedPattern {
 public:
  static constexpr uint32_t kMostCount = 255;

  // The parts of such an expression; the caller holds the arena's mutex.
  struct Form {
    ExprId unit, pattern, rest;
    uint32_t low, high;
  };
  static std::optional<Form> form_of(Arena& arena, ExprId e);

  CountedPattern(Arena& arena, const Vocabulary& vocabulary, ExprId unit, ExprId pattern, ExprId rest);
  // Whether the pattern has so few states that the table was made.
  bool made() const { return inside_ != nullptr; }
  // How many bytes at most the shortest way from anywhere in the pattern to its end has, of those with the fewest characters.
  uint32_t way_out() const { return way_out_; }

  std::unique_ptr<LocalMask> mask(Arena& arena, uint32_t low, uint32_t high) const;
  size_t memory_bytes() const;

 private:
  using Lengths = std::bitset<kMostCount + 1>;
  struct Group {
    uint32_t units;  // begun
    uint32_t place;  // in lengths_
    uint32_t begin;  // in tokens_, up to where the next group begins
  };
  struct Counted {
    uint32_t units;
    uint32_t value;
  };

  uint32_t way_out_ = 0;
  std::vector<Lengths> lengths_;  // per place in the pattern: with how many more characters it can be completed
  std::vector<Group> groups_;     // and one at the end
  std::vector<uint32_t> tokens_;
  std::shared_ptr<const std::vector<uint32_t>> inside_;  // all of tokens_
  std::vector<Counted> closing_;                         // tokens that end inside rest
  std::vector<Counted> leaving_;                         // trie nodes after which the frame may return
  bool many_leave_ = false;  // leaving_ would be most of the vocabulary, and is empty
};

}  // namespace grammask
