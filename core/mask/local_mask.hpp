#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/arena.hpp"
#include "vocabulary/trie.hpp"
#include "vocabulary/vocabulary.hpp"

namespace grammask {

// What a state alone decides about every token, whatever lies below its frame on the stack.
//
// A token is *inside* if it can be read without leaving the frame. A token that leaves the frame somewhere in its middle
// is decided by the frames below: those tokens are kept as a trie of what remains of them after the frame returned, in
// which equal remainders are one path. For an unconstrained JSON string the first kind is most of any vocabulary and the
// second about one token in a hundred.
struct LocalMask {
  std::vector<uint32_t> words;  // inside tokens as a bit set; empty when `ids` holds them
  std::vector<uint32_t> ids;    // inside tokens, when they are few
  bool returns_at_once = false;  // the state is nullable: every token may also belong to the frames below
  std::vector<uint32_t> returns_at;  // trie nodes after which the frame may return
  Trie remainders;

  void add_inside_to(uint32_t* out) const;
  size_t memory_bytes() const {
    return sizeof(*this) + (words.capacity() + ids.capacity() + returns_at.capacity()) * 4 + remainders.memory_bytes();
  }
};

// The local mask of a state, made on first use and kept in the arena.
const LocalMask& local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e);

}  // namespace grammask
