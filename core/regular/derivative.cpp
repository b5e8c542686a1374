#include <algorithm>
#include <queue>
#include <tuple>

#include "regular/expr.hpp"

// Derivatives, the byte partition they induce, and questions answered by walking them.

namespace grammask {

ExprId ExprPool::letter_body(ExprId letter) {
  const Expr& n = nodes_[letter];
  return n.kind == Kind::kCall ? n.a : expander_->key_body(n.a, n.b, n.c);
}

ExprId ExprPool::expand(ExprId e) {
  if (!nodes_[e].expansion) {
    const ExprId expanded = expander_->expand(nodes_[e].a, nodes_[e].b);
    nodes_[e].expansion = expanded;
  }
  return nodes_[e].expansion;
}

ExprId ExprPool::derive(ExprId e, uint8_t byte) { return derive(e, Symbol{false, byte}); }
ExprId ExprPool::derive_letter(ExprId e, ExprId letter) { return derive(e, Symbol{true, letter}); }

ExprId ExprPool::derive(ExprId e, Symbol s) {
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kEmpty:
    case Kind::kEpsilon: return kEmptyId;
    case Kind::kSet: return !s.is_letter && byte_sets_[n.a].has(static_cast<uint8_t>(s.value)) ? kEpsilonId : kEmptyId;
    case Kind::kCall:
    case Kind::kRule:
    case Kind::kToken:
    case Kind::kKey: return s.is_letter && s.value == e ? kEpsilonId : kEmptyId;
    case Kind::kMachine:
      return s.is_letter ? kEmptyId : machine(n.a, machines_[n.a]->step(n.b, static_cast<uint8_t>(s.value)));
    case Kind::kFrame: return derive(expand(e), s);
    case Kind::kComplement: return complement(derive(n.a, s));
    case Kind::kRepeat: {
      const ExprId d = derive(n.a, s);
      if (d == kEmptyId) return kEmptyId;
      return concat(d, repeat(n.a, n.b == 0 ? 0 : n.b - 1, n.c == kUnbounded ? kUnbounded : n.c - 1));
    }
    case Kind::kConcat: {
      // a1 a2 a3 ... with nullable heads: a loop, not a recursion, over the chain.
      std::vector<ExprId> options;
      ExprId x = e;
      while (true) {
        if (nodes_[x].kind != Kind::kConcat) {
          options.push_back(derive(x, s));
          break;
        }
        const ExprId head = nodes_[x].a, rest = nodes_[x].b;
        const ExprId d = derive(head, s);
        if (d != kEmptyId) options.push_back(concat(d, rest));
        if (!nullable(head)) break;
        x = rest;
      }
      if (options.empty()) return kEmptyId;
      return options.size() == 1 ? options.front() : unite(options);
    }
    case Kind::kUnion: {
      std::vector<ExprId> options;
      for (const ExprId c : children(e)) {
        if (!s.is_letter && !byte_first(c).has(static_cast<uint8_t>(s.value))) continue;
        if (s.is_letter && !has(c, kLetters)) continue;
        const ExprId d = derive(c, s);
        if (d != kEmptyId) options.push_back(d);
      }
      if (options.empty()) return kEmptyId;
      return options.size() == 1 ? options.front() : unite(options);
    }
    case Kind::kIntersection: {
      std::vector<ExprId> options;
      for (const ExprId c : children(e)) {
        options.push_back(derive(c, s));
        if (options.back() == kEmptyId) return kEmptyId;
      }
      return intersect(options);
    }
  }
  return kEmptyId;
}

void ExprPool::letters(ExprId e, std::vector<ExprId>& out) {
  if (!has(e, kLetters)) return;
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kCall:
    case Kind::kRule:
    case Kind::kToken:
    case Kind::kKey:
      if (std::find(out.begin(), out.end(), e) == out.end()) out.push_back(e);
      return;
    case Kind::kFrame: return letters(expand(e), out);
    case Kind::kComplement:
    case Kind::kRepeat: return letters(n.a, out);
    case Kind::kConcat:
      for (ExprId x = e;;) {
        if (nodes_[x].kind != Kind::kConcat) return letters(x, out);
        letters(nodes_[x].a, out);
        if (!nullable(nodes_[x].a)) return;
        x = nodes_[x].b;
      }
    case Kind::kUnion:
    case Kind::kIntersection:
      for (const ExprId c : children(e)) letters(c, out);
      return;
    default: return;
  }
}

const ByteSet& ExprPool::byte_first(ExprId e) {
  if (nodes_[e].first) return byte_sets_[nodes_[e].first];
  ByteSet s;
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kSet: s = byte_sets_[n.a]; break;
    case Kind::kMachine:
      machines_[n.a]->alphabet(n.b).for_each([&](uint8_t b) {
        if (machines_[n.a]->step(n.b, b) != Machine::kDead) s.add(b);
      });
      break;
    case Kind::kFrame: s = byte_first(expand(e)); break;
    case Kind::kComplement: s = ByteSet::all(); break;
    case Kind::kRepeat: s = byte_first(n.a); break;
    case Kind::kConcat:
      for (ExprId x = e;;) {
        if (nodes_[x].kind != Kind::kConcat) {
          s = s | byte_first(x);
          break;
        }
        s = s | byte_first(nodes_[x].a);
        if (!nullable(nodes_[x].a)) break;
        x = nodes_[x].b;
      }
      break;
    case Kind::kUnion:
      for (const ExprId c : children(e)) s = s | byte_first(c);
      break;
    case Kind::kIntersection:
      s = ByteSet::all();
      for (const ExprId c : children(e)) s = s & byte_first(c);
      break;
    default: break;
  }
  // Index 0 means "unknown", so an empty set stays uncomputed: it is cheap.
  nodes_[e].first = intern_bytes(s);
  return byte_sets_[nodes_[e].first];
}

void ExprPool::collect_classes(ExprId e, ByteSet& singles, std::vector<uint32_t>& sets, std::vector<ExprId>& machines) {
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kSet: {
      const ByteSet& s = byte_sets_[n.a];
      if (s.count() == 1) {
        singles.add(s.lowest());
      } else if (std::find(sets.begin(), sets.end(), n.a) == sets.end()) {
        sets.push_back(n.a);
      }
      return;
    }
    case Kind::kMachine: machines.push_back(e); return;
    case Kind::kFrame: return collect_classes(expand(e), singles, sets, machines);
    case Kind::kComplement:
    case Kind::kRepeat: return collect_classes(n.a, singles, sets, machines);
    case Kind::kConcat:
      for (ExprId x = e;;) {
        if (nodes_[x].kind != Kind::kConcat) return collect_classes(x, singles, sets, machines);
        collect_classes(nodes_[x].a, singles, sets, machines);
        if (!nullable(nodes_[x].a)) return;
        x = nodes_[x].b;
      }
    case Kind::kUnion:
    case Kind::kIntersection:
      for (const ExprId c : children(e)) collect_classes(c, singles, sets, machines);
      return;
    default: return;
  }
}

namespace {

// Two-way split: class c becomes (c, in) and (c, out). Returns the number of classes.
int split(std::array<uint8_t, 256>& of, const ByteSet& set) {
  std::array<int16_t, 256> in_id, out_id;
  in_id.fill(-1);
  out_id.fill(-1);
  int fresh = 0;
  for (size_t b = 0; b < 256; ++b) {
    int16_t& id = set.has(static_cast<uint8_t>(b)) ? in_id[of[b]] : out_id[of[b]];
    if (id < 0) id = static_cast<int16_t>(fresh++);
    of[b] = static_cast<uint8_t>(id);
  }
  return fresh;
}

void set_representatives(ExprPool::Classes& classes, int count) {
  classes.representative.assign(static_cast<size_t>(count), 0);
  for (int b = 255; b >= 0; --b) classes.representative[classes.of[static_cast<size_t>(b)]] = static_cast<uint8_t>(b);
}

}  // namespace

void ExprPool::refine(Classes& classes, const std::vector<ByteSet>& sets) {
  int count = static_cast<int>(classes.representative.size());
  for (const ByteSet& s : sets) count = split(classes.of, s);
  set_representatives(classes, count);
}

void ExprPool::byte_classes(ExprId e, Classes& out) {
  ByteSet singles;
  std::vector<uint32_t> sets;
  std::vector<ExprId> machine_states;
  collect_classes(e, singles, sets, machine_states);

  out.of.fill(0);
  int count = 1;
  for (const uint32_t i : sets) count = split(out.of, byte_sets_[i]);
  for (const ExprId m : machine_states) {
    const Expr& n = nodes_[m];
    std::array<int, 256> key;
    for (size_t b = 0; b < 256; ++b) key[b] = out.of[b];
    std::unordered_map<uint64_t, int> ids;
    machines_[n.a]->alphabet(n.b).for_each([&](uint8_t b) {
      const uint64_t step = uint64_t{out.of[b]} << 32 | machines_[n.a]->step(n.b, b);
      key[b] = 256 + ids.try_emplace(step, static_cast<int>(ids.size())).first->second;
    });
    std::array<int, 512> number;
    number.fill(-1);
    count = 0;
    for (size_t b = 0; b < 256; ++b) {
      int& id = number[static_cast<size_t>(key[b])];
      if (id < 0) id = count++;
      out.of[b] = static_cast<uint8_t>(id);
    }
  }
  // Bytes that stand alone in some set get classes of their own, unless the partition already isolates them.
  std::array<uint16_t, 256> sizes{};
  for (int b = 0; b < 256; ++b) ++sizes[out.of[static_cast<size_t>(b)]];
  singles.for_each([&](uint8_t b) {
    const uint8_t c = out.of[b];
    if (sizes[c] > 1) {
      --sizes[c];
      out.of[b] = static_cast<uint8_t>(count);
      sizes[static_cast<size_t>(count)] = 1;
      ++count;
    }
  });
  set_representatives(out, count);
}

// -- emptiness

bool ExprPool::alive(ExprId e) {
  const Expr& n = nodes_[e];
  if (e == kEmptyId) return false;
  if (!(n.flags & kBoolean) || (n.flags & kNullable)) return true;
  if (n.alive) return n.alive == 1;
  bool result = false;
  switch (n.kind) {
    case Kind::kConcat: {
      result = true;
      ExprId x = e;
      for (; result && nodes_[x].kind == Kind::kConcat; x = nodes_[x].b) result = alive(nodes_[x].a);
      result = result && alive(x);
      break;
    }
    case Kind::kUnion: {
      const auto plainly = [&](ExprId c) {
        const Expr& m = nodes_[c];
        return c != kEmptyId && ((m.flags & kNullable) || !(m.flags & kBoolean) || m.alive == 1);
      };
      const auto members = children(e);
      result = std::any_of(members.begin(), members.end(), plainly) ||
               std::any_of(members.begin(), members.end(), [&](ExprId c) { return alive(c); });
      break;
    }
    case Kind::kRepeat: result = n.b == 0 || alive(n.a); break;
    default: result = search_alive(e); break;
  }
  nodes_[e].alive = result ? 1 : 2;
  return result;
}

// At least so many bytes and letters are in every word of e; 0 where that is not known at a glance.
uint32_t ExprPool::least_length(ExprId e) {
  constexpr uint32_t kMost = 0xfffe;
  if (least_.size() < nodes_.size()) least_.resize(nodes_.size(), 0);
  if (least_[e]) return least_[e] - 1u;
  const Expr& n = nodes_[e];
  uint64_t least = 0;
  switch (n.kind) {
    case Kind::kConcat: {
      ExprId x = e;
      for (; nodes_[x].kind == Kind::kConcat && least < kMost; x = nodes_[x].b) least += least_length(nodes_[x].a);
      if (least < kMost) least += least_length(x);
      break;
    }
    case Kind::kUnion:
      least = kMost;
      for (const ExprId c : children(e)) least = std::min<uint64_t>(least, least_length(c));
      break;
    case Kind::kIntersection:
      for (const ExprId c : children(e)) least = std::max<uint64_t>(least, least_length(c));
      break;
    case Kind::kRepeat: least = n.b == 0 ? 0 : uint64_t{n.b} * least_length(n.a); break;
    case Kind::kSet:
    case Kind::kCall:
    case Kind::kRule:
    case Kind::kToken:
    case Kind::kKey: least = 1; break;
    default: least = (n.flags & kNullable) || n.kind == Kind::kComplement ? 0 : 1; break;
  }
  least = std::min<uint64_t>(least, kMost);
  least_[e] = static_cast<uint16_t>(least + 1);
  return static_cast<uint32_t>(least);
}

// Searches derivatives for a nullable one: everything on the way to it is alive; if none is reachable, everything visited
// is dead. Three searches share the work, turn by turn: A* (Hart, Nilsson & Raphael 1968) finds a shortest word where the
// others run into long detours; a greedy one and a depth-first one find some word where the shorter ways are too many.
bool ExprPool::search_alive(ExprId root) {
  struct Entry {
    uint32_t rank, depth, order;
    ExprId expr;
    // The lowest rank is taken first, then the deepest.
    bool operator<(const Entry& o) const {
      return std::tuple(o.rank, depth, o.order) < std::tuple(rank, o.depth, order);
    }
  };
  struct Reached {
    ExprId from;
    bool expanded = false;
  };
  std::array<std::priority_queue<Entry>, 3> queues;
  std::unordered_map<ExprId, Reached> came;
  const auto mark_way_to = [&](ExprId e) {
    for (; e != kEmptyId; e = came.at(e).from) nodes_[e].alive = 1;
    return true;
  };
  came.emplace(root, Reached{kEmptyId});
  queues[0].push({0, 0, 0, root});
  uint32_t order = 0;
  std::vector<ExprId> heads;
  // All queues hold the same entries but for those that were expanded, so all run empty together.
  for (size_t turn = 0; !queues[0].empty() || !queues[1].empty() || !queues[2].empty(); ++turn) {
    std::priority_queue<Entry>& queue = queues[turn % 3];
    if (queue.empty()) continue;
    const Entry entry = queue.top();
    queue.pop();
    const ExprId e = entry.expr;
    Reached& reached = came.at(e);
    if (reached.expanded) continue;
    reached.expanded = true;
    if (turn % 64 == 0) check_deadline();
    // Other kinds are decided by their parts, whose boolean operations are nested less deeply than root's.
    if (e != root && nodes_[e].kind != Kind::kIntersection && nodes_[e].kind != Kind::kComplement) {
      if (alive(e)) return mark_way_to(e);
      continue;
    }
    bool found = false;
    const auto add = [&](ExprId d) {
      const Expr& n = nodes_[d];
      if (found || d == kEmptyId || n.alive == 2) return;
      found = (n.flags & kNullable) || !(n.flags & kBoolean) || n.alive == 1;
      if (found || !came.emplace(d, Reached{e}).second) return;
      const uint32_t left = least_length(d), depth = entry.depth + 1;
      queues[0].push({depth + left, depth, ++order, d});
      queues[1].push({left, depth, order, d});
      queues[2].push({0, depth, order, d});
    };
    Classes classes;
    byte_classes(e, classes);
    for (const uint8_t b : classes.representative) {
      if (!found) add(derive(e, b));
    }
    heads.clear();
    letters(e, heads);
    for (const ExprId letter : heads) {
      if (!found) add(derive_letter(e, letter));
    }
    if (found) return mark_way_to(e);
  }
  for (const auto& [e, unused] : came) nodes_[e].alive = 2;
  return false;
}

bool ExprPool::matches(ExprId e, std::string_view bytes) {
  for (const char c : bytes) {
    e = derive(e, static_cast<uint8_t>(c));
    if (e == kEmptyId) return false;
  }
  return nullable(e);
}

}  // namespace grammask
