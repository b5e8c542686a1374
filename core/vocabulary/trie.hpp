#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace grammask {

// A byte trie over tokens, in breadth-first order so that the children of a node lie side by side.
// Node 0 is the root. A node may stand for several tokens (equal bytes, or equal remainders).
struct Trie {
  std::vector<uint32_t> first_child;   // per node
  std::vector<uint16_t> child_count;   // per node
  std::vector<uint8_t> byte;           // per node: the byte that leads to it
  std::vector<uint32_t> token_begin;   // per node + 1: into tokens
  std::vector<uint32_t> tokens;

  uint32_t size() const { return static_cast<uint32_t>(byte.size()); }
  // The child of a node by a byte, 0 (the root) if there is none.
  uint32_t child(uint32_t node, uint8_t b) const;
  // The bytes that lead to a node.
  std::string path(uint32_t node) const;
  bool empty() const { return byte.empty(); }
  size_t memory_bytes() const {
    return first_child.capacity() * 4 + child_count.capacity() * 2 + byte.capacity() + token_begin.capacity() * 4 +
           tokens.capacity() * 4;
  }
};

// The trie of all texts; ids may repeat a text. Empty texts are left out.
Trie build_trie(std::vector<std::pair<std::string_view, uint32_t>> texts);

// The trie of what remains of the tokens of `trie` below the given nodes: equal remainders are one path.
struct RemainderTrie {
  Trie trie;
  // The nodes of the token trie that a node stands for: origins[origin_begin[x]] to origins[origin_begin[x + 1] - 1].
  std::vector<uint32_t> origin_begin;
  std::vector<uint32_t> origins;
};
RemainderTrie build_remainder_trie(const Trie& trie, const std::vector<uint32_t>& nodes);

}  // namespace grammask
