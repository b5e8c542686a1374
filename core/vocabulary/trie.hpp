#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regular/byte_set.hpp"
#include "vocabulary/column.hpp"

namespace grammask {

// A byte trie over tokens, in breadth-first order so that the children of a node lie side by side.
// Node 0 is the root. A node may stand for several tokens (equal bytes, or equal remainders).
struct Trie {
  Column<uint32_t> first_child;   // per node
  Column<uint16_t> child_count;   // per node
  Column<uint8_t> byte;           // per node: the byte that leads to it
  Column<uint32_t> token_begin;   // per node: into tokens, where its own begin
  Column<uint32_t> token_end;     // per node: where its own end
  Column<uint32_t> tokens;
  // Only in tries of whole vocabularies: the tokens below a node follow its own, up to below_end, and the bytes on the way
  // to them are bytes_below(node): all bytes, as if unknown, where there are few. Of below_bytes, per node, the highest bit
  // says that they spell whole characters of UTF-8, the last of which may be unfinished, and the others which set it is.
  Column<uint32_t> below_end;
  Column<uint32_t> below_bytes;
  Column<ByteSet> byte_sets;

  // The tokens that end at a node.
  std::span<const uint32_t> own(uint32_t node) const {
    return {tokens.data() + token_begin[node], token_end[node] - token_begin[node]};
  }
  // Those that end below it; only where below_end is known.
  std::span<const uint32_t> below(uint32_t node) const {
    return {tokens.data() + token_end[node], below_end[node] - token_end[node]};
  }
  static constexpr uint32_t kWhole = 1u << 31;
  const ByteSet& bytes_below(uint32_t node) const { return byte_sets[below_bytes[node] & ~kWhole]; }
  bool whole_below(uint32_t node) const { return below_bytes[node] & kWhole; }
  // Fills below_bytes and byte_sets.
  void collect_bytes_below();
  uint32_t size() const { return static_cast<uint32_t>(byte.size()); }
  // The child of a node by a byte, 0 (the root) if there is none.
  uint32_t child(uint32_t node, uint8_t b) const;
  // The bytes that lead to a node.
  std::string path(uint32_t node) const;
  bool empty() const { return byte.empty(); }
  // Whether a walk over this trie of a vocabulary of that many ids stays inside its arrays and ends: what must hold of one
  // that was not built here.
  bool well_formed(uint32_t ids) const;
  size_t memory_bytes() const {
    return first_child.memory_bytes() + child_count.memory_bytes() + byte.memory_bytes() + token_begin.memory_bytes() +
           token_end.memory_bytes() + tokens.memory_bytes() + below_end.memory_bytes() + below_bytes.memory_bytes() +
           byte_sets.memory_bytes();
  }
};

// The trie of all texts; ids may repeat a text. Empty texts are left out.
Trie build_trie(const std::vector<std::pair<std::string_view, uint32_t>>& texts);

// The trie of what remains of the tokens of `trie` below the given nodes: equal remainders are one path.
struct RemainderTrie {
  Trie trie;
  // The nodes of the token trie that a node stands for: origins[origin_begin[x]] to origins[origin_begin[x + 1] - 1].
  std::vector<uint32_t> origin_begin;
  std::vector<uint32_t> origins;
};
// first: only remainders that begin with this byte.
RemainderTrie build_remainder_trie(const Trie& trie, const std::vector<uint32_t>& nodes,
                                   std::optional<uint8_t> first = std::nullopt);

}  // namespace grammask
