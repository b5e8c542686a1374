#pragma once

#include <vector>

#include "regular/words.hpp"
#include "vocabulary/trie.hpp"

namespace grammask {

// Walks a trie along the words of a range, both of which are sorted. No state of the automaton is made.
//
// visit(node) for every node that can be read, ended(node) after it where a word ends there.
template <typename Visit, typename Ended>
void walk_words(const Trie& trie, const WordMachine& words, WordMachine::Range start, Visit visit, Ended ended) {
  struct Entry {
    uint32_t node;
    WordMachine::Range range;
  };
  std::vector<Entry> work{{0, words.longer(start)}};
  while (!work.empty()) {
    auto [node, range] = work.back();
    work.pop_back();
    const uint32_t end = trie.first_child[node] + trie.child_count[node];
    for (uint32_t x = trie.first_child[node]; x < end && range.low < range.high;) {
      const uint8_t next = words.byte_at(range.low, range.depth);
      if (trie.byte[x] < next) {
        ++x;
      } else if (trie.byte[x] > next) {
        range.low = words.first_from(range, trie.byte[x]);
      } else {
        const WordMachine::Range below{range.low, words.first_from(range, next + 1), range.depth + 1};
        visit(x);
        if (words.ends(below)) ended(x);
        if (trie.child_count[x]) work.push_back({x, words.longer(below)});
        range.low = below.high;
        ++x;
      }
    }
  }
}

}  // namespace grammask
