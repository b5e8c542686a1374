#include "mask/bounded_text.hpp"

#include <algorithm>
#include <bit>

#include "matcher/stepper.hpp"

namespace grammask {

std::optional<BoundedText> bounded_text(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  ExprPool& pool = arena.pool();
  const Expr& n = pool.node(e);
  const ExprId both = n.kind == Kind::kConcat ? n.a : e;
  const ExprId rest = n.kind == Kind::kConcat ? n.b : ExprPool::kEpsilonId;
  if (pool.node(both).kind != Kind::kIntersection || !pool.has(both, ExprPool::kCounted)) return std::nullopt;
  if (pool.has(e, ExprPool::kLetters)) return std::nullopt;
  const std::vector<ExprId> parts(pool.children(both).begin(), pool.children(both).end());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr length = pool.node(parts[i]);
    if (length.kind != Kind::kRepeat || length.b != 0 || length.c == ExprPool::kUnbounded) continue;
    CountedText* const table = arena.counted_text(vocabulary, length.a, rest);
    if (!table) continue;
    std::vector<ExprId> others(parts);
    others[i] = pool.repeat(length.a, 0, ExprPool::kUnbounded);
    const ExprId text = pool.intersect(others);
    const uint32_t slack = arena.remoteness(text);
    if (slack >= length.c) return std::nullopt;
    return BoundedText{pool.concat(text, rest), length.c - slack, table};
  }
  return std::nullopt;
}

const LocalMask* bounded_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e, const BoundedText& text,
                              std::unique_ptr<LocalMask>& made) {
  const LocalMask& whole = local_mask(arena, vocabulary, text.relaxed);
  if (text.safe >= text.table->most_units()) return &whole;
  std::vector<uint32_t> words(vocabulary.words());
  whole.add_inside_to(words.data(), true);
  std::vector<uint32_t> questionable;
  const auto ask = [&](uint32_t id) {
    if (words[id / 32] >> (id % 32) & 1) questionable.push_back(id);
  };
  text.table->for_each_longer(text.safe, ask);
  constexpr size_t kMostRead = 2048;
  if (questionable.size() > kMostRead) return nullptr;
  Stepper stepper(arena);
  const Thread start{e, Stack::kBottom};
  std::vector<uint32_t> lost;
  for (const uint32_t id : questionable) {
    if (!stepper.can_read({&start, 1}, *vocabulary.token(id))) lost.push_back(id);
  }
  std::vector<uint32_t> leaving;
  bool all_leave = true;
  if (whole.leaving) {
    for (const uint32_t x : whole.leaving->nodes()) {
      if (text.table->units_before_leaving(x) > text.safe) {
        // Whether the frame may return after these bytes: they read on through every state, the last of which must be nullable.
        ExprId at = e;
        for (const char c : vocabulary.trie().path(x)) {
          const State& s = arena.state(at);
          at = s.next[s.class_of[static_cast<uint8_t>(c)]];
        }
        if (!arena.state(at).nullable) {
          all_leave = false;
          continue;
        }
      }
      leaving.push_back(x);
    }
  }
  if (lost.empty() && all_leave) return &whole;
  if (whole.inside_leaves_unlisted) return nullptr;
  std::sort(lost.begin(), lost.end());
  made = std::make_unique<LocalMask>();
  made->words = whole.words;
  made->walk_directly = whole.walk_directly;
  made->returns_at_once = whole.returns_at_once;
  std::set_union(whole.without.begin(), whole.without.end(), lost.begin(), lost.end(),
                 std::back_inserter(made->without));
  for (const uint32_t id : whole.ids) {
    if (!std::binary_search(lost.begin(), lost.end(), id)) made->ids.push_back(id);
  }
  if (all_leave) {
    made->leaving = whole.leaving;
  } else if (!leaving.empty()) {
    made->leaving = std::make_shared<Leaving>(std::move(leaving));
  }
  return nullptr;
}

}  // namespace grammask
