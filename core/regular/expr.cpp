#include "regular/expr.hpp"

#include <algorithm>
#include <tuple>

#include "regular/words.hpp"

namespace grammask {

namespace {

uint64_t mix(uint64_t h) {
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93ull;
  return h ^ (h >> 32);
}

uint64_t hash_fields(Kind kind, uint32_t a, uint32_t b, uint32_t c) {
  return mix((uint64_t{a} << 32 | b) * 0x9e3779b97f4a7c15ull + (uint64_t{c} << 8 | static_cast<uint64_t>(kind)));
}

uint64_t hash_list(Kind kind, std::span<const ExprId> list) {
  uint64_t h = static_cast<uint64_t>(kind) + 0x51ull;
  for (const ExprId e : list) h = (h ^ e) * 0x9e3779b97f4a7c15ull + (h >> 29);
  return mix(h);
}

bool is_list(Kind k) { return k == Kind::kUnion || k == Kind::kIntersection; }

// Bounds above this are worth abstracting when masks are computed (mask/local_mask.cpp).
constexpr uint32_t kLargeCount = 1;

}  // namespace

ExprPool::ExprPool() {
  byte_sets_.push_back(ByteSet{});  // index 0: "unknown" in memos, and the empty set
  byte_set_index_[ByteSet{}.hash()].push_back(0);
  intern(Kind::kEmpty, 0, 0, 0, 0, 0);
  intern(Kind::kEpsilon, 0, 0, 0, kNullable, 0);
}

uint32_t ExprPool::intern_bytes(const ByteSet& bytes) {
  auto& bucket = byte_set_index_[bytes.hash()];
  for (const uint32_t i : bucket) {
    if (byte_sets_[i] == bytes) return i;
  }
  byte_sets_.push_back(bytes);
  bucket.push_back(static_cast<uint32_t>(byte_sets_.size() - 1));
  return bucket.back();
}

uint64_t ExprPool::hash_of(ExprId e) const {
  const Expr& n = nodes_[e];
  return is_list(n.kind) ? hash_list(n.kind, children(e)) : hash_fields(n.kind, n.a, n.b, n.c);
}

ExprId ExprPool::intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, uint8_t flags, uint32_t depth) {
  const uint64_t hash = hash_fields(kind, a, b, c);
  const uint32_t known = table_.find(hash, [&](ExprId e) {
    const Expr& n = nodes_[e];
    return n.kind == kind && n.a == a && n.b == b && n.c == c;
  });
  if (known != IdTable::kNone) return known;
  if (nodes_.size() >= max_expressions_)
    throw TooLarge("more than " + std::to_string(max_expressions_) + " expressions");
  if ((nodes_.size() & 0xfff) == 0xfff) check_deadline();
  if (depth > kMaxDepth) throw TooLarge("expressions are nested more than " + std::to_string(kMaxDepth) + " deep");
  Expr n;
  n.kind = kind;
  n.a = a;
  n.b = b;
  n.c = c;
  n.flags = flags;
  n.depth = static_cast<uint16_t>(depth);
  const ExprId id = nodes_.push(std::move(n));
  table_.insert(hash, [&](ExprId e) { return hash_of(e); });
  return id;
}

ExprId ExprPool::intern_list(Kind kind, const std::vector<ExprId>& list, uint8_t flags, uint32_t depth) {
  const uint64_t hash = hash_list(kind, list);
  const uint32_t known = table_.find(hash, [&](ExprId e) {
    const Expr& n = nodes_[e];
    return n.kind == kind && n.b == list.size() && std::equal(list.begin(), list.end(), lists_[n.a]);
  });
  if (known != IdTable::kNone) return known;
  if (nodes_.size() >= max_expressions_)
    throw TooLarge("more than " + std::to_string(max_expressions_) + " expressions");
  if ((nodes_.size() & 0xff) == 0xff) check_deadline();
  if (depth > kMaxDepth) throw TooLarge("expressions are nested more than " + std::to_string(kMaxDepth) + " deep");
  if (list_chunk_used_ + list.size() > list_chunk_size_) {
    list_chunk_size_ = std::max<size_t>(4096, list.size());
    list_chunk_used_ = 0;
    list_chunks_.push_back(std::make_unique<ExprId[]>(list_chunk_size_));
    list_bytes_ += list_chunk_size_ * sizeof(ExprId);
  }
  ExprId* place = list_chunks_.back().get() + list_chunk_used_;
  std::copy(list.begin(), list.end(), place);
  list_chunk_used_ += list.size();
  lists_.push_back(place);
  Expr n;
  n.kind = kind;
  n.a = static_cast<uint32_t>(lists_.size() - 1);
  n.b = static_cast<uint32_t>(list.size());
  n.flags = flags;
  n.depth = static_cast<uint16_t>(depth);
  const ExprId id = nodes_.push(std::move(n));
  table_.insert(hash, [&](ExprId e) { return hash_of(e); });
  return id;
}

// -- leaves

ExprId ExprPool::set(const ByteSet& bytes) {
  if (bytes.empty()) return kEmptyId;
  return intern(Kind::kSet, intern_bytes(bytes), 0, 0, bytes.count() == 1 ? kLiteral : 0, 0);
}

ExprId ExprPool::literal(std::string_view bytes) {
  ExprId e = kEpsilonId;
  for (size_t i = bytes.size(); i-- > 0;) {
    const ExprId head = byte(static_cast<uint8_t>(bytes[i]));
    e = e == kEpsilonId ? head : intern(Kind::kConcat, head, e, 0, kLiteral, 1);
  }
  return e;
}

ExprId ExprPool::anything() { return complement(kEmptyId); }

ExprId ExprPool::call(ExprId body) {
  const Expr& n = nodes_[body];
  if (body == kEmptyId || body == kEpsilonId || n.kind == Kind::kCall || n.kind == Kind::kRule) return body;
  return intern(Kind::kCall, body, 0, 0, static_cast<uint8_t>(kLetters | (n.flags & kRules)), n.depth + 1u);
}

ExprId ExprPool::rule(uint32_t index) { return intern(Kind::kRule, index, 0, 0, kLetters | kRules, 0); }
ExprId ExprPool::token(uint32_t token_id) { return intern(Kind::kToken, token_id, 0, 0, kLetters, 0); }
ExprId ExprPool::key(uint32_t f, uint32_t s, uint32_t family) { return intern(Kind::kKey, f, s, family, kLetters, 0); }
ExprId ExprPool::frame(uint32_t f, uint32_t s, uint32_t depth) {
  return intern(Kind::kFrame, f, s, 0, kLetters | kRules, depth + 1);
}

ExprId ExprPool::machine(uint32_t index, uint32_t state) {
  if (state == Machine::kDead) return kEmptyId;
  return intern(Kind::kMachine, index, state, 0, machines_[index]->accepts(state) ? kNullable : 0, 0);
}

ExprId ExprPool::add_machine(const std::string& key, std::function<std::unique_ptr<Machine>()> make) {
  const auto found = machine_index_.find(key);
  if (found != machine_index_.end()) return found->second;
  machines_.push_back(make());
  const ExprId e = machine(static_cast<uint32_t>(machines_.size() - 1), machines_.back()->start());
  machine_index_.emplace(key, e);
  return e;
}

ExprId ExprPool::words(std::vector<std::string_view> words) {
  sort_words(words);
  // A few words are worth their own expressions, whose states and masks are shared with all that hold the same endings.
  constexpr size_t kFew = 32;
  if (words.size() <= kFew) {
    std::vector<ExprId> options;
    for (const std::string_view w : words) options.push_back(literal(w));
    return unite(options);
  }
  const uint64_t hash = hash_words(words);
  const auto [first, last] = word_index_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (static_cast<const WordMachine&>(machine_of(known->second)).equals(words)) return known->second;
  }
  machines_.push_back(std::make_unique<WordMachine>(words));
  const ExprId e = machine(static_cast<uint32_t>(machines_.size() - 1), machines_.back()->start());
  word_index_.emplace(hash, e);
  return e;
}

// -- combinators

ExprId ExprPool::concat(ExprId a, ExprId b) {
  // Chains lean to the right so that derive works at the head; only literal chains stay together on the left, because
  // copying one for every continuation would cost its length.
  std::vector<ExprId> spine;
  while (nodes_[a].kind == Kind::kConcat && !(nodes_[a].flags & kLiteral)) {
    spine.push_back(nodes_[a].a);
    a = nodes_[a].b;
  }
  spine.push_back(a);
  for (size_t i = spine.size(); i-- > 0;) {
    const ExprId head = spine[i];
    if (head == kEmptyId || b == kEmptyId) {
      b = kEmptyId;
    } else if (head == kEpsilonId) {
      continue;
    } else if (b == kEpsilonId) {
      b = head;
    } else {
      const Expr& x = nodes_[head];
      const Expr& y = nodes_[b];
      uint8_t flags = static_cast<uint8_t>((x.flags | y.flags) & (kBoolean | kLetters | kRules | kCounted));
      flags = static_cast<uint8_t>(flags | (x.flags & y.flags & (kNullable | kLiteral)));
      if ((flags & kLiteral) && x.kind == Kind::kConcat) {
        // Two literals become one right-leaning chain.
        std::vector<ExprId> bytes;
        ExprId e = head;
        for (; nodes_[e].kind == Kind::kConcat; e = nodes_[e].b) bytes.push_back(nodes_[e].a);
        b = intern(Kind::kConcat, e, b, 0, kLiteral, 1);
        for (size_t k = bytes.size(); k-- > 0;) b = intern(Kind::kConcat, bytes[k], b, 0, kLiteral, 1);
      } else {
        b = intern(Kind::kConcat, head, b, 0, flags,
                   std::max<uint32_t>(x.depth + 1u, y.kind == Kind::kConcat ? y.depth : y.depth + 1u));
      }
    }
  }
  return b;
}

ExprId ExprPool::concat(std::span<const ExprId> parts) {
  ExprId e = kEpsilonId;
  for (size_t i = parts.size(); i-- > 0;) e = concat(parts[i], e);
  return e;
}

ExprId ExprPool::unite(ExprId a, ExprId b) {
  if (a == b || b == kEmptyId) return a;
  if (a == kEmptyId) return b;
  const ExprId both[] = {a, b};
  return unite(both);
}

// X{a,b}R | X{c,d}R is X{min,max}R where the intervals overlap or touch, and likewise P X{a,b} | P X{c,d}. Without these
// the residuals of counted repetitions behind an unbounded start, or inside each other, grow by a member a byte.
bool ExprPool::merge_counts(std::vector<ExprId>& list) {
  struct Counted {
    ExprId context, unit;  // R or P, X
    uint32_t low, high;
    ExprId member;
    bool operator<(const Counted& o) const {
      return std::tie(context, unit, low, high) < std::tie(o.context, o.unit, o.low, o.high);
    }
  };
  bool changed = false;
  for (const bool at_head : {true, false}) {
    std::vector<Counted> counted;
    for (const ExprId e : list) {
      if (!(nodes_[e].flags & kCounted)) continue;
      if (at_head) {
        const bool concat = nodes_[e].kind == Kind::kConcat;
        const Expr& head = concat ? nodes_[nodes_[e].a] : nodes_[e];
        if (head.kind == Kind::kRepeat)
          counted.push_back({concat ? nodes_[e].b : kEpsilonId, head.a, head.b, head.c, e});
      } else if (nodes_[e].kind == Kind::kConcat) {
        std::vector<ExprId> prefix;
        ExprId last = e;
        for (; nodes_[last].kind == Kind::kConcat; last = nodes_[last].b) prefix.push_back(nodes_[last].a);
        const Expr& tail = nodes_[last];
        if (tail.kind == Kind::kRepeat) counted.push_back({concat(prefix), tail.a, tail.b, tail.c, e});
      }
    }
    if (counted.size() < 2) continue;
    std::sort(counted.begin(), counted.end());
    for (size_t i = 0; i < counted.size();) {
      Counted merged = counted[i];
      size_t end = i + 1;
      for (; end < counted.size(); ++end) {
        const Counted& c = counted[end];
        if (c.unit != merged.unit || c.context != merged.context) break;
        if (merged.high != kUnbounded && c.low > merged.high + 1) break;
        merged.high = std::max(merged.high, c.high);
      }
      if (end > i + 1) {
        changed = true;
        for (size_t k = i; k < end; ++k) std::erase(list, counted[k].member);
        const ExprId repeated = repeat(merged.unit, merged.low, merged.high);
        list.push_back(at_head ? concat(repeated, merged.context) : concat(merged.context, repeated));
      }
      i = end;
    }
  }
  return changed;
}

ExprId ExprPool::unite(std::span<const ExprId> parts) {
  std::vector<ExprId> list;
  list.reserve(parts.size());
  ByteSet sets;
  bool any_set = false;
  const auto add = [&](ExprId e) {
    if (e == kEmptyId) return;
    if (nodes_[e].kind == Kind::kSet) {
      sets = sets | byte_sets_[nodes_[e].a];
      any_set = true;
    } else {
      list.push_back(e);
    }
  };
  for (const ExprId e : parts) {
    if (nodes_[e].kind == Kind::kUnion) {
      for (const ExprId child : children(e)) add(child);
    } else {
      add(e);
    }
  }
  if (any_set) list.push_back(set(sets));
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (merge_counts(list)) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  uint8_t flags = 0;
  uint32_t depth = 0;
  bool nullable_elsewhere = false;
  for (const ExprId e : list) {
    const Expr& n = nodes_[e];
    if (n.kind == Kind::kComplement) {
      if (n.a == kEmptyId) return e;
      if (std::binary_search(list.begin(), list.end(), n.a)) return anything();
    }
    if (e != kEpsilonId && (n.flags & kNullable)) nullable_elsewhere = true;
    flags |= n.flags & (kNullable | kBoolean | kLetters | kRules | kCounted);
    depth = std::max<uint32_t>(depth, n.depth + 1u);
  }
  if (nullable_elsewhere && !list.empty() && list.front() == kEpsilonId) list.erase(list.begin());
  if (list.empty()) return kEmptyId;
  if (list.size() == 1) return list.front();
  return intern_list(Kind::kUnion, list, flags, depth);
}

ExprId ExprPool::intersect(ExprId a, ExprId b) {
  if (a == b) return a;
  const ExprId both[] = {a, b};
  return intersect(both);
}

ExprId ExprPool::intersect(std::span<const ExprId> parts) {
  std::vector<ExprId> list;
  list.reserve(parts.size());
  ByteSet sets = ByteSet::all();
  bool any_set = false;
  const auto add = [&](ExprId e) {
    const Expr& n = nodes_[e];
    if (n.kind == Kind::kComplement && n.a == kEmptyId) return;
    if (n.kind == Kind::kSet) {
      sets = sets & byte_sets_[n.a];
      any_set = true;
    } else {
      list.push_back(e);
    }
  };
  for (const ExprId e : parts) {
    if (e == kEmptyId) return kEmptyId;
    if (nodes_[e].kind == Kind::kIntersection) {
      for (const ExprId child : children(e)) add(child);
    } else {
      add(e);
    }
  }
  if (any_set) {
    if (sets.empty()) return kEmptyId;
    list.push_back(set(sets));
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  uint8_t flags = kNullable;
  uint8_t gathered = kBoolean;
  uint32_t depth = 0;
  for (const ExprId e : list) {
    const Expr& n = nodes_[e];
    if (n.kind == Kind::kComplement && std::binary_search(list.begin(), list.end(), n.a)) return kEmptyId;
    flags = static_cast<uint8_t>(flags & n.flags);
    gathered |= n.flags & (kLetters | kRules | kCounted);
    depth = std::max<uint32_t>(depth, n.depth + 1u);
  }
  if (!list.empty() && list.front() == kEpsilonId) return flags & kNullable ? kEpsilonId : kEmptyId;
  if (list.empty()) return anything();
  if (list.size() == 1) return list.front();
  // A byte set leaves at most one-byte words: decide membership now.
  if (any_set) {
    ByteSet kept;
    sets.for_each([&](uint8_t b) {
      for (const ExprId e : list) {
        if (nodes_[e].kind != Kind::kSet && !nullable(derive(e, b))) return;
      }
      kept.add(b);
    });
    return set(kept);
  }
  return intern_list(Kind::kIntersection, list, static_cast<uint8_t>(flags | gathered), depth);
}

ExprId ExprPool::complement(ExprId a) {
  const Expr& n = nodes_[a];
  if (n.kind == Kind::kComplement) return n.a;
  const uint8_t flags = static_cast<uint8_t>((n.flags & kNullable ? 0 : kNullable) | kBoolean |
                                             (n.flags & (kLetters | kRules | kCounted)));
  return intern(Kind::kComplement, a, 0, 0, flags, n.depth + 1u);
}

ExprId ExprPool::repeat(ExprId a, uint32_t low, uint32_t high) {
  if (high == 0 || a == kEpsilonId) return kEpsilonId;
  if (a == kEmptyId) return low == 0 ? kEpsilonId : kEmptyId;
  const Expr& n = nodes_[a];
  if (n.flags & kNullable) low = 0;
  if (low == 1 && high == 1) return a;
  if (n.kind == Kind::kRepeat && n.c == kUnbounded && n.b <= 1 && low <= 1 && high == kUnbounded) {
    return repeat(n.a, n.b == 0 ? 0 : low, kUnbounded);
  }
  if (n.kind == Kind::kComplement && n.a == kEmptyId) return a;
  uint8_t flags = static_cast<uint8_t>(n.flags & (kBoolean | kLetters | kRules | kCounted));
  if (low == 0) flags |= kNullable;
  if (low > kLargeCount || (high != kUnbounded && high > kLargeCount)) flags |= kCounted;
  return intern(Kind::kRepeat, a, low, high, flags, n.depth + 1u);
}

size_t ExprPool::memory_bytes() const {
  size_t n = nodes_.memory_bytes() + table_.memory_bytes() + list_bytes_ + lists_.capacity() * sizeof(void*) +
             byte_sets_.capacity() * (sizeof(ByteSet) + 48);
  for (const auto& m : machines_) n += m->memory_bytes();
  return n;
}

std::string ExprPool::show(ExprId e, int depth) {
  if (depth <= 0) return "…";
  const Expr& n = nodes_[e];
  const auto join = [&](const char* sep) {
    std::string s = "(";
    bool first_part = true;
    for (const ExprId c : children(e)) {
      if (!first_part) s += sep;
      first_part = false;
      s += show(c, depth - 1);
    }
    return s + ")";
  };
  const auto show_byte = [](uint8_t b) -> std::string {
    if (b > 0x20 && b < 0x7f) return std::string(1, static_cast<char>(b));
    if (b == 0x20) return "␣";
    static const char* hex = "0123456789abcdef";
    return std::string("\\x") + hex[b >> 4] + hex[b & 15];
  };
  switch (n.kind) {
    case Kind::kEmpty: return "∅";
    case Kind::kEpsilon: return "ε";
    case Kind::kSet: {
      const ByteSet& s = byte_sets_[n.a];
      if (s.count() == 1) return show_byte(s.lowest());
      if (s == ByteSet::all()) return "[any]";
      std::string text = "[";
      for (int b = 0; b < 256;) {
        if (!s.has(static_cast<uint8_t>(b))) {
          ++b;
          continue;
        }
        int end = b;
        while (end < 255 && s.has(static_cast<uint8_t>(end + 1))) ++end;
        text += show_byte(static_cast<uint8_t>(b));
        if (end > b) text += (end > b + 1 ? "-" : "") + show_byte(static_cast<uint8_t>(end));
        b = end + 1;
      }
      return text + "]";
    }
    case Kind::kConcat: {
      std::string s;
      ExprId x = e;
      for (int k = 0; nodes_[x].kind == Kind::kConcat && k < 200; ++k) {
        s += show(nodes_[x].a, depth - 1);
        x = nodes_[x].b;
      }
      return s + show(x, depth - 1);
    }
    case Kind::kUnion: return join("|");
    case Kind::kIntersection: return join("&");
    case Kind::kComplement: return "~(" + show(n.a, depth - 1) + ")";
    case Kind::kRepeat: {
      const std::string inner = "(" + show(n.a, depth - 1) + ")";
      if (n.c == kUnbounded) return inner + (n.b == 0 ? "*" : n.b == 1 ? "+" : "{" + std::to_string(n.b) + ",}");
      return inner + "{" + std::to_string(n.b) + "," + std::to_string(n.c) + "}";
    }
    case Kind::kCall: return "<" + show(n.a, depth - 1) + ">";
    case Kind::kRule: return "<rule " + std::to_string(n.a) + ">";
    case Kind::kToken: return "<token " + std::to_string(n.a) + ">";
    case Kind::kKey: return "<key " + std::to_string(n.c) + ">";
    case Kind::kFrame: return "<object " + std::to_string(n.a) + " state " + std::to_string(n.b) + ">";
    case Kind::kMachine: return "<machine " + std::to_string(n.a) + " state " + std::to_string(n.b) + ">";
  }
  return "?";
}

}  // namespace grammask
