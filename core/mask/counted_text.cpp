#include "mask/counted_text.hpp"

#include <algorithm>
#include <unordered_set>

#include "mask/walk.hpp"

namespace grammask {

bool CountedText::applies(Arena& arena, ExprId unit, ExprId rest) {
  ExprPool& pool = arena.pool();
  if (pool.has(unit, ExprPool::kLetters) || pool.nullable(unit)) return false;
  // A table pays off for units that many tokens are made of; for the others (white space, digits) a walk is short.
  constexpr int kManyStarts = 64;
  if (arena.state(unit).start.count() < kManyStarts) return false;
  if (!((arena.state(unit).start & arena.state(rest).start) == ByteSet{})) return false;
  // A prefix code: no word goes on after a complete one.
  std::vector<ExprId> work{unit};
  std::unordered_set<ExprId> seen{unit};
  constexpr size_t kMostStates = 512;
  while (!work.empty()) {
    const ExprId e = work.back();
    work.pop_back();
    if (e == ExprPool::kEpsilonId) continue;
    if (pool.nullable(e) || seen.size() > kMostStates) return false;
    for (const ExprId next : arena.state(e).next) {
      if (next != ExprPool::kEmptyId && seen.insert(next).second) work.push_back(next);
    }
  }
  return true;
}

CountedText::CountedText(Arena& arena, const Vocabulary& vocabulary, ExprId unit, ExprId rest) {
  const Trie& trie = vocabulary.trie();
  const std::vector<uint32_t>& characters_in = vocabulary.characters();
  Stepper stepper(arena);
  Walker walker(stepper);
  const State& first = arena.state(unit);
  const State& after = arena.state(rest);
  rest_nullable_ = after.nullable;
  const Thread rest_thread{rest, Stack::kBottom};

  struct Entry {
    uint32_t node;
    uint32_t units;
    const State* state;  // inside a unit; null between units
    uint32_t characters;  // begun according to UTF-8, of which a unit may have several
  };
  std::vector<Entry> queue{{0, 0, nullptr, 0}};
  // Characters that are units. Where nothing else is below a node, the tokens' characters are counted instead of their paths
  // walked, unless it matters where between them a frame may return.
  const ByteSet characters = rest_nullable_ ? ByteSet{} : arena.characters_to(first, ExprPool::kEpsilonId);
  const ByteSet not_first = ByteSet::range(0x80, 0xbf);
  std::vector<Counted> inside;
  inside.reserve(vocabulary.size());
  std::vector<uint32_t> returns;
  for (size_t at = 0; at < queue.size(); ++at) {
    const Entry entry = queue[at];
    if (!entry.state && trie.whole_below(entry.node) &&
        (trie.bytes_below(entry.node) & ~characters & ~not_first).empty()) {
      for (const uint32_t id : trie.below(entry.node)) {
        inside.push_back({entry.units + characters_in[id] - entry.characters, id});
      }
      continue;
    }
    const State& s = entry.state ? *entry.state : first;
    const uint32_t units = entry.units + (entry.state ? 0 : 1);
    bool may_close = false;
    for (uint32_t x = trie.first_child[entry.node]; x < trie.first_child[entry.node] + trie.child_count[entry.node];
         ++x) {
      const ExprId next = s.next[s.class_of[trie.byte[x]]];
      if (!entry.state && after.start.has(trie.byte[x])) may_close = true;
      if (next == ExprPool::kEmptyId) continue;
      for (const uint32_t id : trie.own(x)) inside.push_back({units, id});
      if (trie.child_count[x] == 0) continue;
      const bool complete = next == ExprPool::kEpsilonId;
      const uint32_t begun = entry.characters + (not_first.has(trie.byte[x]) ? 0 : 1);
      queue.push_back({x, units, complete ? nullptr : &arena.state(next), begun});
      if (complete && rest_nullable_) leaving_.push_back({units, x});
    }
    if (!may_close) continue;
    returns.clear();
    walker.walk(
        trie, {&rest_thread, 1},
        [&](std::span<const uint32_t> tokens) {
          for (const uint32_t id : tokens) closing_.push_back({entry.units, id});
        },
        {&returns, nullptr, {}}, entry.node);
    for (const uint32_t x : returns) leaving_.push_back({entry.units, x});
  }
  size_t below = 0;
  for (const Counted& c : leaving_) below += trie.below(c.value).size();
  if (below > LocalMask::kManyBelow) {
    many_leave_ = true;
    leaving_ = {};
  }
  by_node_ = leaving_;
  std::sort(by_node_.begin(), by_node_.end(), [](const Counted& a, const Counted& b) { return a.value < b.value; });
  for (const Counted& c : leaving_) most_leaving_ = std::max(most_leaving_, c.units);
  std::vector<std::vector<uint32_t>> by_units(1);
  for (const Counted& c : inside) {
    if (c.units >= by_units.size()) by_units.resize(c.units + 1);
    by_units[c.units].push_back(c.value);
  }
  up_to_.push_back(std::make_shared<std::vector<uint32_t>>(vocabulary.words(), 0u));
  for (size_t units = 1; units < by_units.size(); ++units) {
    if (by_units[units].empty()) {
      up_to_.push_back(up_to_.back());
      continue;
    }
    auto words = std::make_shared<std::vector<uint32_t>>(*up_to_.back());
    for (const uint32_t id : by_units[units]) (*words)[id / 32] |= 1u << (id % 32);
    up_to_.push_back(std::move(words));
  }
}

std::unique_ptr<LocalMask> CountedText::mask(Arena& arena, uint32_t low, uint32_t high) {
  auto mask = std::make_unique<LocalMask>();
  mask->words = up_to_[std::min<size_t>(high, up_to_.size() - 1)];
  mask->returns_at_once = rest_nullable_ && low == 0;
  for (const Counted& c : closing_) {
    if (low <= c.units && c.units <= high) mask->ids.push_back(c.value);
  }
  if (many_leave_) {
    mask->walk_directly = true;
    return mask;
  }
  const std::pair<uint32_t, uint32_t> bounds{std::min(low, most_leaving_ + 1), std::min(high, most_leaving_)};
  auto& leaving = made_[bounds];
  if (!leaving) {
    std::vector<uint32_t> nodes;
    for (const Counted& c : leaving_) {
      if (bounds.first <= c.units && c.units <= bounds.second) nodes.push_back(c.value);
    }
    leaving = arena.leaving(std::move(nodes));
  }
  if (!leaving->nodes().empty()) mask->leaving = leaving;
  return mask;
}

uint32_t CountedText::units_before_leaving(uint32_t node) const {
  const auto it = std::lower_bound(by_node_.begin(), by_node_.end(), node,
                                   [](const Counted& c, uint32_t x) { return c.value < x; });
  return it != by_node_.end() && it->value == node ? it->units : most_units() + 1;
}

size_t CountedText::memory_bytes() const {
  size_t n = (closing_.capacity() + leaving_.capacity() + by_node_.capacity()) * sizeof(Counted);
  for (size_t i = 0; i < up_to_.size(); ++i) {
    if (i == 0 || up_to_[i] != up_to_[i - 1]) n += up_to_[i]->size() * 4;
  }
  return n;
}

}  // namespace grammask
