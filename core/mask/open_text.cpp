#include "mask/open_text.hpp"

#include <algorithm>

#include "mask/text_walk.hpp"
#include "mask/walk.hpp"

namespace grammask {

namespace {

// The unit of U* Y, or of a member of a union that may come first in e.
ExprId find_unit(ExprPool& pool, ExprId e) {
  const Expr& n = pool.node(e);
  switch (n.kind) {
    case Kind::kConcat: return pool.alive(n.b) ? find_unit(pool, n.a) : ExprPool::kEmptyId;
    case Kind::kRepeat: {
      // Most of ASCII at least, and the blank, which half of a vocabulary begins with: else many tokens hold something else.
      constexpr int kManyStarts = 90;
      if (n.b != 0 || n.c != ExprPool::kUnbounded || pool.nullable(n.a) || pool.has(n.a, ExprPool::kBoolean)) break;
      if (const ByteSet& starts = pool.byte_first(n.a); starts.count() >= kManyStarts && starts.has(' ')) return n.a;
      break;
    }
    case Kind::kUnion: {
      // Of several candidates the one with the most starts leaves the fewest tokens to walk.
      ExprId best = ExprPool::kEmptyId;
      for (const ExprId c : pool.children(e)) {
        const ExprId u = find_unit(pool, c);
        if (u == ExprPool::kEmptyId) continue;
        if (best == ExprPool::kEmptyId || pool.byte_first(u).count() > pool.byte_first(best).count()) best = u;
      }
      return best;
    }
    default: break;
  }
  return ExprPool::kEmptyId;
}

}  // namespace

ExprId OpenText::unit_of(Arena& arena, ExprId e) {
  ExprPool& pool = arena.pool();
  if (pool.has(e, ExprPool::kLetters)) return ExprPool::kEmptyId;
  return find_unit(pool, e);
}

OpenText::OpenText(Arena& arena, const Vocabulary& vocabulary, ExprId unit) {
  const Trie& trie = vocabulary.trie();
  ExprId units = 0;
  {
    const std::lock_guard lock(arena.mutex());
    units = arena.pool().repeat(unit, 0, ExprPool::kUnbounded);
  }
  auto words = std::make_shared<std::vector<uint32_t>>(walk_text(arena, vocabulary, trie, units).words);
  const auto is_inside = [&](uint32_t id) { return (*words)[id / 32] >> (id % 32) & 1; };
  inside_ = words;

  // The other tokens, still depth first; which of them begin before a place among all tokens.
  std::vector<uint32_t> place{0};
  for (const uint32_t id : trie.tokens) {
    if (!is_inside(id)) others_.tokens.push_back(id);
    place.push_back(static_cast<uint32_t>(others_.tokens.size()));
  }
  if (others_.tokens.empty()) return;
  const auto kept = [&](uint32_t x) { return place[trie.token_begin[x]] < place[trie.below_end[x]]; };
  origin_.push_back(0);
  others_.byte.push_back(0);
  for (size_t at = 0; at < origin_.size(); ++at) {
    const uint32_t x = origin_[at];
    others_.token_begin.push_back(place[trie.token_begin[x]]);
    others_.token_end.push_back(place[trie.token_end[x]]);
    others_.below_end.push_back(place[trie.below_end[x]]);
    others_.first_child.push_back(static_cast<uint32_t>(origin_.size()));
    uint16_t children = 0;
    for (uint32_t c = trie.first_child[x]; c < trie.first_child[x] + trie.child_count[x]; ++c) {
      if (!kept(c)) continue;
      origin_.push_back(c);
      others_.byte.push_back(trie.byte[c]);
      ++children;
    }
    others_.child_count.push_back(children);
  }
  others_.collect_bytes_below();
}

std::unique_ptr<LocalMask> OpenText::mask(Arena& arena, ExprId e) const {
  auto mask = std::make_unique<LocalMask>();
  mask->words = inside_;
  mask->inside_leaves_unlisted = true;
  mask->returns_at_once = arena.state(e).nullable;
  // Nodes that lead to inside tokens only are not in the trie: whatever returns there, those tokens are allowed anyway.
  Stepper stepper(arena);
  std::vector<uint32_t> returns;
  const Thread start{e, Stack::kBottom};
  Walker(stepper).walk(
      others_, {&start, 1},
      [&](std::span<const uint32_t> tokens) { mask->ids.insert(mask->ids.end(), tokens.begin(), tokens.end()); },
      {&returns, nullptr, {}});
  if (mask->ids.size() > inside_->size() / 2) {
    auto words = std::make_shared<std::vector<uint32_t>>(*inside_);
    for (const uint32_t id : mask->ids) (*words)[id / 32] |= 1u << (id % 32);
    mask->words = std::move(words);
    mask->ids = {};
  }
  for (uint32_t& x : returns) x = origin_[x];
  if (!returns.empty()) mask->leaving = arena.leaving(std::move(returns));
  return mask;
}

}  // namespace grammask
