#include "vocabulary/trie.hpp"

#include <algorithm>
#include <unordered_map>

namespace grammask {

uint32_t Trie::child(uint32_t node, uint8_t b) const {
  const auto begin = byte.begin() + first_child[node];
  const auto end = begin + child_count[node];
  const auto found = std::lower_bound(begin, end, b);
  return found == end || *found != b ? 0 : static_cast<uint32_t>(found - byte.begin());
}

std::string Trie::path(uint32_t node) const {
  std::string out;
  while (node != 0) {
    out.push_back(static_cast<char>(byte[node]));
    // Children are numbered in the order of their parents, so the parent is the last node whose children start here or before.
    node =
        static_cast<uint32_t>(std::upper_bound(first_child.begin(), first_child.end(), node) - first_child.begin()) - 1;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void Trie::collect_bytes_below() {
  // Small subtrees are walked as fast as they are skipped.
  constexpr uint32_t kFew = 8;
  std::vector<ByteSet> below_sets(size());
  std::unordered_map<uint64_t, std::vector<uint32_t>> index;
  byte_sets.push_back(ByteSet::all());
  below_bytes.assign(size(), 0);
  // Children have larger numbers than their parents.
  for (uint32_t x = size(); x-- > 0;) {
    ByteSet& set = below_sets[x];
    for (uint32_t c = first_child[x]; c < first_child[x] + child_count[x]; ++c) {
      set.add(byte[c]);
      set = set | below_sets[c];
    }
    if (below_end[x] - token_end[x] < kFew) continue;
    auto& same = index[set.hash()];
    const auto known = std::find_if(same.begin(), same.end(), [&](uint32_t i) { return byte_sets[i] == set; });
    if (known != same.end()) {
      below_bytes[x] = *known;
      continue;
    }
    below_bytes[x] = static_cast<uint32_t>(byte_sets.size());
    same.push_back(below_bytes[x]);
    byte_sets.push_back(set);
  }
  byte_sets.shrink_to_fit();
}

Trie build_trie(std::vector<std::pair<std::string_view, uint32_t>> texts) {
  std::sort(texts.begin(), texts.end());
  struct Range {
    uint32_t begin, end, depth;
  };
  std::vector<Range> queue;
  queue.reserve(texts.size() * 2);
  uint32_t skip = 0;
  while (skip < texts.size() && texts[skip].first.empty()) ++skip;
  queue.push_back({skip, static_cast<uint32_t>(texts.size()), 0});
  Trie t;
  // Sorted texts are in depth-first order, so the tokens at and below a node are a range.
  t.tokens.reserve(texts.size() - skip);
  for (size_t i = skip; i < texts.size(); ++i) t.tokens.push_back(texts[i].second);
  t.byte.push_back(0);
  for (size_t at = 0; at < queue.size(); ++at) {
    auto [begin, end, depth] = queue[at];
    t.token_begin.push_back(begin - skip);
    t.below_end.push_back(end - skip);
    while (begin < end && texts[begin].first.size() == depth) ++begin;
    t.token_end.push_back(begin - skip);
    t.first_child.push_back(static_cast<uint32_t>(queue.size()));
    uint16_t children = 0;
    while (begin < end) {
      const char b = texts[begin].first[depth];
      uint32_t stop = begin + 1;
      while (stop < end && texts[stop].first[depth] == b) ++stop;
      queue.push_back({begin, stop, depth + 1});
      t.byte.push_back(static_cast<uint8_t>(b));
      ++children;
      begin = stop;
    }
    t.child_count.push_back(children);
  }
  t.collect_bytes_below();
  t.first_child.shrink_to_fit();
  t.child_count.shrink_to_fit();
  t.byte.shrink_to_fit();
  t.token_begin.shrink_to_fit();
  t.token_end.shrink_to_fit();
  t.below_end.shrink_to_fit();
  return t;
}

RemainderTrie build_remainder_trie(const Trie& trie, const std::vector<uint32_t>& nodes) {
  RemainderTrie out;
  Trie& t = out.trie;
  // Nodes are numbered when they are met; each stands for a range of origins.
  out.origins = nodes;
  out.origin_begin = {0, static_cast<uint32_t>(nodes.size())};
  t.byte.push_back(0);
  std::vector<std::pair<uint8_t, uint32_t>> children;
  for (size_t at = 0; at + 1 < out.origin_begin.size(); ++at) {
    t.token_begin.push_back(static_cast<uint32_t>(t.tokens.size()));
    children.clear();
    for (uint32_t i = out.origin_begin[at]; i < out.origin_begin[at + 1]; ++i) {
      const uint32_t x = out.origins[i];
      if (at > 0) {
        t.tokens.insert(t.tokens.end(), trie.own(x).begin(), trie.own(x).end());
      }
      for (uint32_t c = trie.first_child[x]; c < trie.first_child[x] + trie.child_count[x]; ++c) {
        children.emplace_back(trie.byte[c], c);
      }
    }
    t.token_end.push_back(static_cast<uint32_t>(t.tokens.size()));
    std::stable_sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    t.first_child.push_back(static_cast<uint32_t>(out.origin_begin.size()) - 1);
    uint16_t count = 0;
    for (size_t i = 0; i < children.size(); ++i) {
      out.origins.push_back(children[i].second);
      if (i + 1 < children.size() && children[i + 1].first == children[i].first) continue;
      out.origin_begin.push_back(static_cast<uint32_t>(out.origins.size()));
      t.byte.push_back(children[i].first);
      ++count;
    }
    t.child_count.push_back(count);
  }
  if (t.tokens.empty()) return {};
  return out;
}

}  // namespace grammask
