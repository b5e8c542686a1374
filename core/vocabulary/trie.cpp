#include "vocabulary/trie.hpp"

#include <algorithm>
#include <unordered_map>

#include "regular/utf8.hpp"

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

bool Trie::well_formed(uint32_t ids) const {
  const size_t n = byte.size();
  if (n == 0 || first_child.size() != n || child_count.size() != n || token_begin.size() != n ||
      token_end.size() != n || below_end.size() != n || below_bytes.size() != n) {
    return false;
  }
  // Children lie side by side in the order of their parents, after them, and sorted; the tokens of a node come before those
  // of its children, which come one after the other.
  if (token_begin[0] != 0 || token_end[0] != 0 || below_end[0] != tokens.size()) return false;
  size_t next = 1;
  for (size_t x = 0; x < n; ++x) {
    if (token_begin[x] > token_end[x] || token_end[x] > below_end[x] || (below_bytes[x] & ~kWhole) >= byte_sets.size())
      return false;
    const size_t end = next + child_count[x];
    if (first_child[x] != next || next <= x || end > n) return false;
    uint32_t place = token_end[x];
    for (size_t c = next; c < end; ++c) {
      if (token_begin[c] != place || below_end[c] < place || (c > next && byte[c - 1] >= byte[c])) return false;
      place = below_end[c];
    }
    if (place != below_end[x]) return false;
    next = end;
  }
  return next == n && std::all_of(tokens.begin(), tokens.end(), [&](uint32_t id) { return id < ids; });
}

void Trie::collect_bytes_below() {
  // Small subtrees are walked as fast as they are skipped.
  constexpr uint32_t kFew = 8;
  std::vector<ByteSet> below(size());
  std::vector<uint32_t> set_of(size(), 0);
  std::vector<ByteSet> sets{ByteSet::all()};
  std::unordered_map<uint64_t, std::vector<uint32_t>> index;
  std::vector<uint8_t> places(size());  // per node: the places in a character from which all that is below can be read
  // Children have larger numbers than their parents.
  for (uint32_t x = size(); x-- > 0;) {
    ByteSet& set = below[x];
    places[x] = utf8::kEveryPlace;
    for (uint32_t c = first_child[x]; c < first_child[x] + child_count[x]; ++c) {
      set.add(byte[c]);
      set = set | below[c];
      places[x] &= utf8::places_before(byte[c], places[c]);
    }
    if (below_end[x] - token_end[x] < kFew) continue;
    auto& same = index[set.hash()];
    const auto known = std::find_if(same.begin(), same.end(), [&](uint32_t i) { return sets[i] == set; });
    if (known != same.end()) {
      set_of[x] = *known;
      continue;
    }
    set_of[x] = static_cast<uint32_t>(sets.size());
    same.push_back(set_of[x]);
    sets.push_back(set);
  }
  for (uint32_t x = 0; x < size(); ++x) {
    if (places[x] >> utf8::kBetween & 1) set_of[x] |= kWhole;
  }
  sets.shrink_to_fit();
  below_bytes = std::move(set_of);
  byte_sets = std::move(sets);
}

namespace {

// A text with its first bytes as a number, by which most pairs of texts are told apart.
struct Keyed {
  uint64_t start;
  std::string_view text;
  uint32_t id;

  Keyed(std::string_view t, uint32_t i) : start(0), text(t), id(i) {
    for (size_t k = 0; k < std::min<size_t>(8, t.size()); ++k) {
      start |= static_cast<uint64_t>(static_cast<uint8_t>(t[k])) << (56 - 8 * k);
    }
  }
  bool operator<(const Keyed& other) const {
    if (start != other.start) return start < other.start;
    if (const int order = text.compare(other.text); order != 0) return order < 0;
    return id < other.id;
  }
};

}  // namespace

Trie build_trie(const std::vector<std::pair<std::string_view, uint32_t>>& pairs) {
  std::vector<Keyed> texts;
  texts.reserve(pairs.size());
  for (const auto& [text, id] : pairs) {
    if (!text.empty()) texts.emplace_back(text, id);
  }
  std::sort(texts.begin(), texts.end());
  struct Range {
    uint32_t begin, end, depth;
  };
  // Sorted texts are in depth-first order, so the tokens at and below a node are a range.
  std::vector<Range> queue{{0, static_cast<uint32_t>(texts.size()), 0}};
  queue.reserve(texts.size() * 2);
  std::vector<uint32_t> first_child, token_begin, token_end, below_end, tokens;
  std::vector<uint16_t> child_count;
  std::vector<uint8_t> byte{0};
  tokens.reserve(texts.size());
  for (const Keyed& each : texts) tokens.push_back(each.id);
  for (size_t at = 0; at < queue.size(); ++at) {
    auto [begin, end, depth] = queue[at];
    token_begin.push_back(begin);
    below_end.push_back(end);
    while (begin < end && texts[begin].text.size() == depth) ++begin;
    token_end.push_back(begin);
    first_child.push_back(static_cast<uint32_t>(queue.size()));
    uint16_t children = 0;
    while (begin < end) {
      const char b = texts[begin].text[depth];
      uint32_t stop = begin + 1;
      while (stop < end && texts[stop].text[depth] == b) ++stop;
      queue.push_back({begin, stop, depth + 1});
      byte.push_back(static_cast<uint8_t>(b));
      ++children;
      begin = stop;
    }
    child_count.push_back(children);
  }
  const auto fitted = [](auto& values) {
    values.shrink_to_fit();
    return std::move(values);
  };
  Trie t;
  t.first_child = fitted(first_child);
  t.child_count = fitted(child_count);
  t.byte = fitted(byte);
  t.token_begin = fitted(token_begin);
  t.token_end = fitted(token_end);
  t.tokens = fitted(tokens);
  t.below_end = fitted(below_end);
  t.collect_bytes_below();
  return t;
}

RemainderTrie build_remainder_trie(const Trie& trie, const std::vector<uint32_t>& nodes, std::optional<uint8_t> first) {
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
        t.tokens.append(trie.own(x));
      }
      if (at == 0 && first) {
        if (const uint32_t c = trie.child(x, *first)) children.emplace_back(*first, c);
        continue;
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
