#include "mask/open_text.hpp"

#include <algorithm>

#include "mask/walk.hpp"

namespace grammask {

namespace {

// The unit of U* Y, or of a member of a union that may come first in e.
ExprId find_unit(ExprPool& pool, ExprId e) {
  const Expr& n = pool.node(e);
  switch (n.kind) {
    case Kind::kConcat: return pool.alive(n.b) ? find_unit(pool, n.a) : ExprPool::kEmptyId;
    case Kind::kRepeat: {
      constexpr int kManyStarts = 64;
      if (n.b != 0 || n.c != ExprPool::kUnbounded || pool.nullable(n.a) || pool.has(n.a, ExprPool::kBoolean)) break;
      if (pool.byte_first(n.a).count() >= kManyStarts) return n.a;
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
  Stepper stepper(arena);
  // A node is inside if units* can be read up to it; the tokens there need no walk.
  std::vector<bool> is_inside(trie.size(), false);
  is_inside[0] = true;
  ExprId units = 0;
  {
    const std::lock_guard lock(arena.mutex());
    units = arena.pool().repeat(unit, 0, ExprPool::kUnbounded);
  }
  const Thread start{units, Stack::kBottom};
  auto words = std::make_shared<std::vector<uint32_t>>(vocabulary.words(), 0u);
  Walker(stepper).walk(trie, {&start, 1}, [&](uint32_t x) {
    is_inside[x] = true;
    for (uint32_t k = trie.token_begin[x]; k < trie.token_begin[x + 1]; ++k)
      (*words)[trie.tokens[k] / 32] |= 1u << (trie.tokens[k] % 32);
  });
  inside_ = std::move(words);

  // Keep the nodes at or above a token that is not inside. Children have larger numbers than their parents.
  std::vector<bool> keep(trie.size(), false);
  for (uint32_t x = trie.size(); x-- > 0;) {
    bool kept = !is_inside[x] && trie.token_begin[x] < trie.token_begin[x + 1];
    for (uint32_t c = trie.first_child[x]; !kept && c < trie.first_child[x] + trie.child_count[x]; ++c) kept = keep[c];
    keep[x] = kept;
  }
  if (!keep[0]) return;
  origin_.push_back(0);
  others_.byte.push_back(0);
  for (size_t at = 0; at < origin_.size(); ++at) {
    const uint32_t x = origin_[at];
    others_.token_begin.push_back(static_cast<uint32_t>(others_.tokens.size()));
    if (!is_inside[x]) {
      for (uint32_t k = trie.token_begin[x]; k < trie.token_begin[x + 1]; ++k) others_.tokens.push_back(trie.tokens[k]);
    }
    others_.first_child.push_back(static_cast<uint32_t>(origin_.size()));
    uint16_t children = 0;
    for (uint32_t c = trie.first_child[x]; c < trie.first_child[x] + trie.child_count[x]; ++c) {
      if (!keep[c]) continue;
      origin_.push_back(c);
      others_.byte.push_back(trie.byte[c]);
      ++children;
    }
    others_.child_count.push_back(children);
  }
  others_.token_begin.push_back(static_cast<uint32_t>(others_.tokens.size()));
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
  Walker(stepper).walk(others_, {&start, 1},
                       [&](uint32_t x) {
                         for (uint32_t k = others_.token_begin[x]; k < others_.token_begin[x + 1]; ++k)
                           mask->ids.push_back(others_.tokens[k]);
                       },
                       {&returns, nullptr, {}});
  for (uint32_t& x : returns) x = origin_[x];
  if (!returns.empty()) mask->leaving = std::make_shared<Leaving>(std::move(returns));
  return mask;
}

}  // namespace grammask
