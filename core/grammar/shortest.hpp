#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/arena.hpp"

namespace grammask {

// Short words of expressions: how soon a text can be completed, and with what.
//
// Lengths follow the structure of an expression (Knuth 1977, "A generalization of Dijkstra's algorithm"): a union takes
// its shortest member, a concatenation adds up, a rule is a least fixpoint. Intersections, complements and machines are
// searched state by state. A frame has too many ways to its end to compare them all: it is asked for a direct one
// (Frame::onward), so a length is exact but for frames, where it is that of a word that exists.
//
// Tests: core/tests/shortest_test.cpp, tests/core/test_shortest.py.
class ShortestWords {
 public:
  // A byte, or kToken plus the id of a special token.
  using Symbol = uint32_t;
  static constexpr Symbol kToken = 256;
  // Each symbol weighs kSymbol, each call of a rule 1: so no shortest derivation runs in a circle of empty texts.
  using Length = uint64_t;
  static constexpr Length kSymbol = 1u << 16;
  static constexpr Length kUnspellable = kSymbol << 6;
  static constexpr Length kNever = ~Length{0};

  // spellable: bytes that are tokens by themselves; the others are avoided.
  // The caller holds the arena's mutex during every call.
  ShortestWords(Arena& arena, const ByteSet& spellable) : arena_(arena), pool_(arena.pool()), spellable_(spellable) {}

  // The length of a short word, kNever if none was found.
  Length length(ExprId e);
  // Appends a word of that length; false if there is none.
  bool append(ExprId e, std::vector<Symbol>& out);

 private:
  struct Step {  // of a search: how a state was reached
    ExprId from;
    ExprId letter;  // kEmptyId for a byte
    uint8_t byte;
    Length length;
  };
  Length measure(ExprId e);
  Length measure_one(ExprId e);  // an expression that is neither a chain nor a frame
  uint8_t plainest(const ByteSet& bytes) const;
  Length weight(uint8_t byte) const { return spellable_.has(byte) ? kSymbol : kUnspellable; }
  Length weight(std::string_view text) const;
  Length search(ExprId e, std::vector<Step>* path);
  ExprId best_of(ExprId united);
  Length ranking(ExprId e);
  ExprId onward(ExprId frame);
  ExprId after_shortest_key(ExprId key, Length& key_length);

  Arena& arena_;
  ExprPool& pool_;
  const ByteSet spellable_;
  std::unordered_map<ExprId, Length> lengths_;
  std::unordered_map<uint32_t, Length> rules_;  // by rule; provisional until no pass changes one
  std::vector<uint32_t> provisional_;
  int depth_ = 0;
};

}  // namespace grammask
