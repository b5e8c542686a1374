#include "regular/finite_words.hpp"

#include <algorithm>

#include "regular/words.hpp"

namespace grammask {

namespace {

constexpr size_t kMostWords = 4000;

bool collect(ExprPool& pool, ExprId e, std::string prefix, std::vector<std::string>& out) {
  while (true) {
    const Expr& n = pool.node(e);
    switch (n.kind) {
      case Kind::kEmpty: return true;
      case Kind::kEpsilon: out.push_back(std::move(prefix)); return out.size() <= kMostWords;
      case Kind::kSet:
        if (!pool.bytes(n.a).is_single()) return false;
        prefix.push_back(static_cast<char>(pool.bytes(n.a).lowest()));
        e = ExprPool::kEpsilonId;
        break;
      case Kind::kConcat: {
        const Expr& head = pool.node(n.a);
        if (head.kind != Kind::kSet || !pool.bytes(head.a).is_single()) return false;
        prefix.push_back(static_cast<char>(pool.bytes(head.a).lowest()));
        e = n.b;
        break;
      }
      case Kind::kUnion:
        return std::ranges::all_of(pool.children(e), [&](ExprId c) { return collect(pool, c, prefix, out); });
      case Kind::kMachine: {
        const auto* const words = dynamic_cast<const WordMachine*>(&pool.machine_of(e));
        if (!words) return false;
        const WordMachine::Range range = words->range(n.b);
        if (range.high - range.low > kMostWords) return false;
        for (uint32_t i = range.low; i < range.high; ++i)
          out.push_back(prefix + std::string(words->word(i).substr(range.depth)));
        return out.size() <= kMostWords;
      }
      default: return false;
    }
  }
}

}  // namespace

bool finite_words(ExprPool& pool, ExprId e, std::vector<std::string>& out) { return collect(pool, e, "", out); }

Exclusion Exclusion::of(const ExprPool& pool, ExprId intersection) {
  Exclusion found;
  for (const ExprId c : pool.children(intersection)) {
    if (pool.node(c).kind == Kind::kComplement) {
      found.excluded.push_back(pool.node(c).a);
    } else {
      found.included.push_back(c);
    }
  }
  return found;
}

}  // namespace grammask
