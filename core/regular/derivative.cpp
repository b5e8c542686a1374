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

namespace {

// Deep inside an expression whose conditions share their parts there are more paths than nodes: from this depth on, what was met is
// remembered until the outermost call returns.
constexpr int kShallow = 6;

struct Deeper {
  int& depth;
  explicit Deeper(int& d) : depth(d) { ++depth; }
  ~Deeper() { --depth; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
};

// Empties a table that is asked to be empty far more often than it holds anything. The table's own clear() takes time in the most
// that it ever held.
template <typename Table>
void forget(Table& table) {
  if (!table.empty()) table = Table();
}

}  // namespace

ExprId ExprPool::derive(ExprId e, Symbol s) {
  const Deeper deeper(derive_depth_);
  if (derive_depth_ == 1) forget(derived_);
  if (derive_depth_ <= kShallow || nodes_[e].kind == Kind::kSet) return derive_node(e, s);
  const uint64_t key = uint64_t{e} << 33 | uint64_t{s.is_letter} << 32 | s.value;
  const auto known = derived_.find(key);
  if (known != derived_.end()) return known->second;
  const ExprId made = derive_node(e, s);
  derived_.emplace(key, made);
  return made;
}

ExprId ExprPool::derive_node(ExprId e, Symbol s) {
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
  const Deeper deeper(collect_depth_);
  if (collect_depth_ == 1) forget(collected_);
  if (collect_depth_ > kShallow && !collected_.insert(e).second) return;
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kSet: {
      const ByteSet& s = byte_sets_[n.a];
      if (s.is_single()) {
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

void split(std::vector<ByteSet>& classes, const ByteSet& set) {
  const size_t n = classes.size();
  for (size_t c = 0; c < n; ++c) {
    const ByteSet in = classes[c] & set;
    if (in.empty() || in == classes[c]) continue;
    classes[c] = classes[c] & ~set;
    classes.push_back(in);
  }
}

// The numbers and representatives of the classes, from their bytes.
void number(ExprPool::Classes& classes) {
  classes.of.fill(0);
  classes.representative.clear();
  for (size_t c = 0; c < classes.bytes.size(); ++c) {
    classes.representative.push_back(classes.bytes[c].lowest());
    if (c > 0) classes.bytes[c].for_each([&](uint8_t b) { classes.of[b] = static_cast<uint8_t>(c); });
  }
}

}  // namespace

void ExprPool::refine(Classes& classes, const std::vector<ByteSet>& sets) {
  for (const ByteSet& s : sets) split(classes.bytes, s);
  number(classes);
}

// The classes of some byte sets. States of one pattern ask for few different ones.
const std::vector<ByteSet>& ExprPool::partition(std::vector<uint32_t> sets) {
  constexpr size_t kMost = 1024;
  std::sort(sets.begin(), sets.end());
  const auto known = partitions_.find(sets);
  if (known != partitions_.end()) return known->second;
  if (partitions_.size() == kMost) partitions_.clear();
  std::vector<ByteSet> classes{ByteSet::all()};
  for (const uint32_t i : sets) split(classes, byte_sets_[i]);
  return partitions_.emplace(std::move(sets), std::move(classes)).first->second;
}

void ExprPool::byte_classes(ExprId e, Classes& out) {
  ByteSet singles;
  std::vector<uint32_t> sets;
  std::vector<ExprId> machine_states;
  collect_classes(e, singles, sets, machine_states);

  if (sets.empty()) {
    out.bytes.assign(1, ByteSet::all());
  } else {
    out.bytes = partition(std::move(sets));
  }
  for (const ExprId m : machine_states) {
    const Expr& n = nodes_[m];
    std::unordered_map<uint32_t, ByteSet> by_next;
    machines_[n.a]->alphabet(n.b).for_each([&](uint8_t b) {
      const uint32_t next = machines_[n.a]->step(n.b, b);
      if (next != Machine::kDead) by_next[next].add(b);
    });
    for (const auto& [next, bytes] : by_next) split(out.bytes, bytes);
  }
  number(out);
  // Bytes that stand alone in some set.
  singles.for_each([&](uint8_t b) {
    const ByteSet alone = ByteSet::single(b);
    const size_t c = out.of[b];
    if (out.bytes[c] == alone) return;
    out.bytes[c] = out.bytes[c] & ~alone;
    if (out.representative[c] == b) out.representative[c] = out.bytes[c].lowest();
    out.of[b] = static_cast<uint8_t>(out.bytes.size());
    out.bytes.push_back(alone);
    out.representative.push_back(b);
  });
}

void ExprPool::derive_by_class(ExprId e, const Classes& classes, std::vector<ExprId>& out) {
  const size_t count = classes.bytes.size();
  out.assign(count, kEmptyId);
  const Expr& n = nodes_[e];
  switch (n.kind) {
    case Kind::kConcat: {
      const ExprId head = n.a, rest = n.b;
      if (nullable(head)) break;
      derive_by_class(head, classes, out);
      for (ExprId& d : out) {
        if (d != kEmptyId) d = concat(d, rest);
      }
      return;
    }
    case Kind::kRepeat: {
      const Expr repeated = n;
      derive_by_class(repeated.a, classes, out);
      ExprId rest = kEmptyId;
      for (ExprId& d : out) {
        if (d == kEmptyId) continue;
        if (rest == kEmptyId)
          rest = repeat(repeated.a, repeated.b == 0 ? 0 : repeated.b - 1,
                        repeated.c == kUnbounded ? kUnbounded : repeated.c - 1);
        d = concat(d, rest);
      }
      return;
    }
    case Kind::kUnion: {
      // Each member is looked at once: most of many can begin with one byte only.
      std::vector<std::vector<ExprId>> options(count);
      std::vector<ExprId> member;
      for (const ExprId c : children(e)) {
        const ByteSet& first = byte_first(c);
        if (first.empty()) continue;
        const uint8_t lowest = first.lowest();
        if (first == ByteSet::single(lowest)) {
          const ExprId d = derive(c, lowest);
          if (d != kEmptyId) options[classes.of[lowest]].push_back(d);
          continue;
        }
        derive_by_class(c, classes, member);
        for (size_t i = 0; i < count; ++i) {
          if (member[i] != kEmptyId) options[i].push_back(member[i]);
        }
      }
      for (size_t i = 0; i < count; ++i) {
        if (!options[i].empty()) out[i] = options[i].size() == 1 ? options[i].front() : unite(options[i]);
      }
      return;
    }
    case Kind::kIntersection: {
      const auto members = children(e);
      std::vector<std::vector<ExprId>> derived(members.size());
      for (size_t i = 0; i < members.size(); ++i) derive_by_class(members[i], classes, derived[i]);
      std::vector<ExprId> parts(members.size());
      for (size_t c = 0; c < count; ++c) {
        bool dead = false;
        for (size_t i = 0; i < members.size(); ++i) {
          parts[i] = derived[i][c];
          dead = dead || parts[i] == kEmptyId;
        }
        if (!dead) out[c] = intersect(parts);
      }
      return;
    }
    case Kind::kComplement: {
      derive_by_class(n.a, classes, out);
      for (ExprId& d : out) d = complement(d);
      return;
    }
    case Kind::kFrame: return derive_by_class(expand(e), classes, out);
    default: break;
  }
  for (size_t c = 0; c < count; ++c) out[c] = derive(e, classes.representative[c]);
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
