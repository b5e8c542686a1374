#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mask/local_mask.hpp"

// Masks of U{low,high} R, as in a string of bounded length: U is one character, R the closing quote.
//
// Every count left would be a state with a mask of its own. But which tokens fit depends only on how many characters a
// token holds, so one walk over the vocabulary sorts tokens by that number, and the mask for any bounds is a look-up.
//
// Tests: tests/core/test_exactness.py (strings with bounds on small and real vocabularies).

namespace grammask {

class CountedText {
 public:
  // unit must be a prefix code without letters whose words start with other bytes than those of rest.
  static bool applies(Arena& arena, ExprId unit, ExprId rest);
  CountedText(Arena& arena, const Vocabulary& vocabulary, ExprId unit, ExprId rest);

  std::unique_ptr<LocalMask> mask(Arena& arena, uint32_t low, uint32_t high);
  // All tokens that are units only, the last one possibly unfinished.
  const std::shared_ptr<const std::vector<uint32_t>>& inside() const { return up_to_.back(); }
  // The most units that a token holds.
  uint32_t most_units() const { return static_cast<uint32_t>(up_to_.size()) - 1; }
  // Calls f for every token that holds more units than so many.
  template <typename F>
  void for_each_longer(uint32_t units, F&& f) const {
    const std::vector<uint32_t>& shorter = *up_to_[std::min<size_t>(units, up_to_.size() - 1)];
    for (uint32_t i = 0; i < shorter.size(); ++i) {
      for (uint32_t w = (*up_to_.back())[i] & ~shorter[i]; w; w &= w - 1)
        f(i * 32 + static_cast<uint32_t>(std::countr_zero(w)));
    }
    for (const Counted& c : closing_) {
      if (c.units > units) f(c.value);
    }
  }
  // How many units lie before a trie node after which the frame may return.
  uint32_t units_before_leaving(uint32_t node) const;
  size_t memory_bytes() const;

 private:
  struct Counted {
    uint32_t units;  // begun
    uint32_t value;
  };
  std::vector<std::shared_ptr<const std::vector<uint32_t>>>
      up_to_;  // by number of units: tokens inside with at most so many
  std::vector<Counted> closing_;  // tokens that end inside rest
  std::vector<Counted> leaving_;  // trie nodes after which the frame may return
  std::vector<Counted> by_node_;  // leaving_ in the order of nodes
  uint32_t most_leaving_ = 0;
  bool rest_nullable_ = false;
  bool many_leave_ = false;  // leaving_ would be most of the vocabulary, and is empty
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<const Leaving>> made_;
};

}  // namespace grammask
