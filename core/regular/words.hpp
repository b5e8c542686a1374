#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "regular/machine.hpp"

namespace grammask {

// A finite set of words, as many as millions, as an automaton that takes no time to build.
//
// The words lie sorted in one string. Those with a common prefix are then neighbours, so the state after a prefix is a
// range of them and the length of the prefix, and a step narrows the range by binary search. Nothing but the words is
// stored up front: states are numbered when they are reached. A state with one word left is known by the rest of that
// word, so that equal endings are equal states.
//
// Tests: core/tests/words_test.cpp, tests/algebra/test_choice.py.
class WordMachine final : public Machine {
 public:
  // Words from low to high - 1 begin with the same `depth` bytes; a word of just that length is the first.
  struct Range {
    uint32_t low, high, depth;
  };

  // words: sorted, without duplicates, at least one. Throws std::length_error where they take 4 GiB or more.
  explicit WordMachine(std::span<const std::string_view> words);

  uint32_t start() override { return number({0, size(), 0}); }
  uint32_t step(uint32_t state, uint8_t byte) override;
  bool accepts(uint32_t state) const override { return ends(states_[state]); }
  ByteSet alphabet(uint32_t state) const override;
  bool count_words(uint32_t state, uint64_t& count) const override;
  bool shortest(uint32_t state, std::string& out) const override;
  size_t memory_bytes() const override;

  bool equals(std::span<const std::string_view> words) const;
  uint32_t size() const { return static_cast<uint32_t>(begin_.size() - 1); }
  Range range(uint32_t state) const { return states_[state]; }
  // Whether the prefix of the range is a word.
  bool ends(Range r) const { return length(r.low) == r.depth; }
  // The words of a range that go on after its prefix.
  Range longer(Range r) const { return {r.low + (ends(r) ? 1u : 0u), r.high, r.depth}; }
  // Of words that all go on after the prefix, the first whose next byte is at least `byte`.
  uint32_t first_from(Range r, int byte) const;
  uint8_t byte_at(uint32_t word, uint32_t depth) const { return static_cast<uint8_t>(text_[begin_[word] + depth]); }
  std::string_view word(uint32_t i) const { return {text_.data() + begin_[i], length(i)}; }

 private:
  uint32_t length(uint32_t word) const { return begin_[word + 1] - begin_[word]; }
  std::string_view rest(Range r) const { return word(r.low).substr(r.depth); }
  uint32_t number(Range r);

  struct Hash {
    const WordMachine* machine;
    size_t operator()(uint32_t state) const;
  };
  struct Equal {
    const WordMachine* machine;
    bool operator()(uint32_t a, uint32_t b) const;
  };

  std::string text_;
  std::vector<uint32_t> begin_;  // per word, and the end of the last
  std::vector<Range> states_;
  std::unordered_set<uint32_t, Hash, Equal> index_;
};

// Sorts words and drops duplicates.
void sort_words(std::vector<std::string_view>& words);

uint64_t hash_words(std::span<const std::string_view> words);

}  // namespace grammask
