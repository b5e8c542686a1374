#include <algorithm>
#include <deque>

#include "regular/expr.hpp"

// Counting and finding words of a letter-free expression by walking its automaton.

namespace grammask {

namespace {

struct Successor {
  uint8_t byte;
  ExprId to;
  uint64_t bytes;  // how many bytes lead there
};

std::vector<Successor> successors(ExprPool& pool, ExprId e) {
  ExprPool::Classes classes;
  pool.byte_classes(e, classes);
  std::vector<uint64_t> sizes(classes.representative.size(), 0);
  for (const uint8_t c : classes.of) ++sizes[c];
  std::vector<Successor> out;
  for (size_t c = 0; c < sizes.size(); ++c) {
    const ExprId d = pool.derive(e, classes.representative[c]);
    if (pool.alive(d)) out.push_back({classes.representative[c], d, sizes[c]});
  }
  return out;
}

}  // namespace

uint64_t ExprPool::count_words(ExprId root, uint64_t limit) {
  if (!alive(root)) return 0;
  struct Visit {
    ExprId expr;
    std::vector<Successor> next;
    size_t at = 0;
    uint64_t total = 0;
  };
  constexpr uint64_t kOpen =
      ~0ull;  // on the path: meeting it again is a cycle of live states, so infinitely many words
  std::unordered_map<ExprId, uint64_t> counts;
  std::vector<Visit> path;
  const auto enter = [&](ExprId e) {
    uint64_t known = 0;
    if (nodes_[e].kind == Kind::kMachine && machine_of(e).count_words(nodes_[e].b, known)) {
      counts[e] = std::min(known, limit);
      return;
    }
    counts[e] = kOpen;
    path.push_back({e, successors(*this, e), 0, nullable(e) ? 1u : 0u});
  };
  enter(root);
  if (path.empty()) return counts[root];
  while (true) {
    Visit& v = path.back();
    if (v.total >= limit) return limit;
    if (v.at == v.next.size()) {
      const uint64_t total = v.total;
      counts[v.expr] = total;
      path.pop_back();
      if (path.empty()) return total;
      Visit& parent = path.back();
      const uint64_t ways = parent.next[parent.at].bytes;
      parent.total = total > limit / ways ? limit : std::min(limit, parent.total + ways * total);
      ++parent.at;
      continue;
    }
    const Successor s = v.next[v.at];
    const auto known = counts.find(s.to);
    if (known == counts.end()) {
      enter(s.to);
    } else if (known->second == kOpen) {
      return limit;
    } else {
      v.total = known->second > limit / s.bytes ? limit : std::min(limit, v.total + s.bytes * known->second);
      ++v.at;
    }
  }
}

bool ExprPool::shortest(ExprId root, std::string& out) {
  out.clear();
  if (!alive(root)) return false;
  const Expr& n = nodes_[root];
  std::string part;
  if (n.kind == Kind::kMachine && machine_of(root).shortest(n.b, out)) return true;
  if (n.kind == Kind::kConcat) {
    ExprId x = root;
    for (; nodes_[x].kind == Kind::kConcat; x = nodes_[x].b) {
      shortest(nodes_[x].a, part);
      out += part;
    }
    shortest(x, part);
    out += part;
    return true;
  }
  if (n.kind == Kind::kUnion) {
    bool found = false;
    for (const ExprId c : children(root)) {
      if (!shortest(c, part) || (found && part.size() >= out.size())) continue;
      found = true;
      out = part;
    }
    return true;
  }
  struct Step {
    ExprId from;
    uint8_t byte;
  };
  std::unordered_map<ExprId, Step> came;
  std::deque<ExprId> queue{root};
  came.emplace(root, Step{root, 0});
  while (!queue.empty()) {
    ExprId e = queue.front();
    queue.pop_front();
    if (nullable(e)) {
      for (; e != root; e = came.at(e).from) out.push_back(static_cast<char>(came.at(e).byte));
      std::reverse(out.begin(), out.end());
      return true;
    }
    for (const Successor& s : successors(*this, e)) {
      if (came.try_emplace(s.to, Step{e, s.byte}).second) queue.push_back(s.to);
    }
  }
  return false;
}

}  // namespace grammask
