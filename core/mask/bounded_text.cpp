#include "mask/bounded_text.hpp"

#include <algorithm>
#include <unordered_map>

#include "mask/counted_pattern.hpp"
#include "matcher/stepper.hpp"

namespace grammask {

namespace {

// An expression without those upper bounds of its counts that are met only after so many bytes.
class Relaxing {
 public:
  Relaxing(ExprPool& pool, uint32_t least) : pool_(pool), least_(least) {}
  // How many bytes words have at least before one of the bounds is met.
  uint32_t bytes() const { return bytes_; }

  ExprId relaxed(ExprId e) {
    if (!pool_.has(e, ExprPool::kCounted)) return e;
    const auto known = known_.find(e);
    if (known != known_.end()) return known->second;
    const ExprId made = make(e);
    known_.emplace(e, made);
    return made;
  }

 private:
  ExprId make(ExprId e) {
    const Expr n = pool_.node(e);
    std::vector<ExprId> parts;
    switch (n.kind) {
      case Kind::kConcat: {
        ExprId x = e;
        for (; pool_.node(x).kind == Kind::kConcat; x = pool_.node(x).b) parts.push_back(relaxed(pool_.node(x).a));
        parts.push_back(relaxed(x));
        return pool_.concat(parts);
      }
      case Kind::kUnion:
      case Kind::kIntersection:
        for (const ExprId c : pool_.children(e)) parts.push_back(relaxed(c));
        return n.kind == Kind::kUnion ? pool_.unite(parts) : pool_.intersect(parts);
      case Kind::kRepeat: {
        const ExprId unit = relaxed(n.a);
        if (n.c == ExprPool::kUnbounded) return pool_.repeat(unit, n.b, n.c);
        const uint64_t bytes = uint64_t{n.c} * pool_.least_length(n.a);
        if (bytes < least_) return pool_.repeat(unit, n.b, n.c);
        bytes_ = static_cast<uint32_t>(std::min<uint64_t>(bytes_, bytes));
        return pool_.repeat(unit, n.b, ExprPool::kUnbounded);
      }
      default: return e;  // complements among them: less of what they exclude would be more
    }
  }

  ExprPool& pool_;
  uint32_t least_;
  std::unordered_map<ExprId, ExprId> known_;
  uint32_t bytes_ = 0xffffffffu;
};

// How far any place within e is from an end of it at most, whichever bounds are met on the way there: the shortest way out
// of every part goes through the fewest repetitions, which no upper bound forbids. Only for what is no boolean operation.
uint32_t way_out(ExprPool& pool, ExprId e, std::unordered_map<ExprId, uint32_t>& known) {
  const auto it = known.find(e);
  if (it != known.end()) return it->second;
  const Expr n = pool.node(e);
  uint64_t way = 0;
  switch (n.kind) {
    case Kind::kEpsilon: break;
    case Kind::kSet: way = 1; break;
    case Kind::kConcat:
      way = std::max<uint64_t>(uint64_t{way_out(pool, n.a, known)} + pool.least_length(n.b), way_out(pool, n.b, known));
      break;
    case Kind::kUnion:
      for (const ExprId c : pool.children(e)) way = std::max<uint64_t>(way, way_out(pool, c, known));
      break;
    case Kind::kRepeat: way = way_out(pool, n.a, known) + uint64_t{n.b} * pool.least_length(n.a); break;
    default: way = Arena::kFar; break;
  }
  const auto bounded = static_cast<uint32_t>(std::min<uint64_t>(way, Arena::kFar / 2));
  known.emplace(e, bounded);
  return bounded;
}

// Whether all words of a pattern are made of units, one part of it at a time: false where only longer parts are. Where this works it
// looks at the size of a pattern, not at all of its states.
class MadeOf {
 public:
  MadeOf(ExprPool& pool, ExprId unit)
      : pool_(pool), unit_(unit), others_(pool.complement(pool.repeat(unit, 0, ExprPool::kUnbounded))) {}

  bool operator()(ExprId e) {
    const auto it = known_.find(e);
    if (it != known_.end()) return it->second;
    const bool made = find(e);
    known_.emplace(e, made);
    return made;
  }

 private:
  bool find(ExprId e) {
    const Expr n = pool_.node(e);
    switch (n.kind) {
      case Kind::kEpsilon: return true;
      case Kind::kSet: {
        bool made = true;
        pool_.bytes(n.a).for_each([&](uint8_t b) { made = made && pool_.nullable(pool_.derive(unit_, b)); });
        return made;
      }
      case Kind::kUnion: return std::ranges::all_of(pool_.children(e), [&](ExprId c) { return (*this)(c); });
      case Kind::kRepeat: return (*this)(n.a);
      case Kind::kConcat: return in_groups(e);
      default: return false;
    }
  }

  // A unit of several bytes is several parts: those of an escape, or of a character of UTF-8.
  bool in_groups(ExprId e) {
    constexpr size_t kMostParts = 6;
    std::vector<ExprId> group;
    for (bool last = false; !last;) {
      last = pool_.node(e).kind != Kind::kConcat;
      const ExprId part = last ? e : pool_.node(e).a;
      if (!last) e = pool_.node(e).b;
      if (group.empty() && (*this)(part)) continue;
      group.push_back(part);
      if (pool_.node(part).kind == Kind::kRepeat || group.size() > kMostParts) return false;
      if (!pool_.alive(pool_.intersect(pool_.concat(group), others_))) group.clear();
    }
    return group.empty();
  }

  ExprPool& pool_;
  ExprId unit_, others_;
  std::unordered_map<ExprId, bool> known_;
};

// Whether all words of e are words of length, which is U{low,}.
bool keeps_length(ExprPool& pool, ExprId e, ExprId length) {
  constexpr uint32_t kShort = 16;
  const Expr n = pool.node(length);
  if (n.b > kShort) return false;
  if (n.b > 0 && pool.alive(pool.intersect(e, pool.repeat(n.a, 0, n.b - 1)))) return false;
  return MadeOf(pool, n.a)(e) || !pool.alive(pool.intersect(e, pool.complement(length)));
}

// The same for a pattern with a length, where the length without its bound asks for nothing that the pattern does not; kFar
// for other boolean operations.
uint32_t way_out(ExprPool& pool, ExprId e, Relaxing& relaxing) {
  std::unordered_map<ExprId, uint32_t> known;
  if (!pool.has(e, ExprPool::kBoolean)) return way_out(pool, e, known);
  if (pool.node(e).kind != Kind::kIntersection) return Arena::kFar;
  std::vector<ExprId> lengths;
  ExprId pattern = ExprPool::kEmptyId;
  for (const ExprId c : pool.children(e)) {
    const ExprId relaxed = relaxing.relaxed(c);
    const Expr& n = pool.node(relaxed);
    if (n.kind == Kind::kRepeat && n.c == ExprPool::kUnbounded) {
      lengths.push_back(relaxed);
    } else if (pattern != ExprPool::kEmptyId || pool.has(c, ExprPool::kBoolean)) {
      return Arena::kFar;
    } else {
      pattern = c;
    }
  }
  if (pattern == ExprPool::kEmptyId) return Arena::kFar;
  const ExprId relaxed = relaxing.relaxed(pattern);
  for (const ExprId length : lengths) {
    if (!keeps_length(pool, relaxed, length)) return Arena::kFar;
  }
  return way_out(pool, pattern, known);
}

std::optional<BoundedText> bounded_by_bytes(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  constexpr uint32_t kLarge = 32;
  // Tokens of more bytes than this are few in any vocabulary.
  constexpr uint32_t kUseful = 20;
  ExprPool& pool = arena.pool();
  // e is what comes first, up to its first counts, and the rest, which stays as it is.
  std::vector<ExprId> parts;
  ExprId rest = e;
  while (pool.node(rest).kind == Kind::kConcat && (parts.empty() || !pool.has(parts.back(), ExprPool::kCounted))) {
    parts.push_back(pool.node(rest).a);
    rest = pool.node(rest).b;
  }
  if (parts.empty() || !pool.has(parts.back(), ExprPool::kCounted)) {
    parts.push_back(rest);
    rest = ExprPool::kEpsilonId;
  }
  const ExprId first = pool.concat(parts);
  Relaxing all(pool, kLarge);
  const ExprId relaxed = all.relaxed(first);
  if (relaxed == first) return std::nullopt;
  const auto bounded = [&](ExprId shared, uint32_t safe) {
    return BoundedText{pool.concat(shared, rest), safe, nullptr};
  };
  const uint32_t out = way_out(pool, first, all);
  // Bounds that no token reaches go first: reading long tokens is quick where few counts are left.
  const uint32_t longest = vocabulary.longest();
  if (out < Arena::kFar / 2 && all.bytes() < longest + out) {
    Relaxing far(pool, longest + out);
    const ExprId nearly = far.relaxed(first);
    // A length that is nearly used up may forbid the shortest way out, and allow another.
    const bool lengths_stay =
        pool.node(first).kind == Kind::kIntersection && std::ranges::any_of(pool.children(first), [&](ExprId c) {
          return pool.node(c).kind == Kind::kRepeat && far.relaxed(c) != all.relaxed(c);
        });
    if (nearly != first && !lengths_stay) return bounded(nearly, longest);
  }
  const auto useful = [&](uint32_t slack) { return slack < all.bytes() && all.bytes() - slack >= kUseful; };
  const uint32_t slack = useful(out) ? out : arena.remoteness(relaxed);
  if (!useful(slack)) return std::nullopt;
  return bounded(relaxed, all.bytes() - slack);
}

std::optional<BoundedText> bounded_by_characters(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  ExprPool& pool = arena.pool();
  const Expr& n = pool.node(e);
  const ExprId both = n.kind == Kind::kConcat ? n.a : e;
  const ExprId rest = n.kind == Kind::kConcat ? n.b : ExprPool::kEpsilonId;
  if (pool.node(both).kind != Kind::kIntersection || !pool.has(both, ExprPool::kCounted)) return std::nullopt;
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

}  // namespace

std::optional<BoundedText> bounded_pattern(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  constexpr uint32_t kLarge = 32, kUseful = 20;
  const auto form = CountedPattern::form_of(arena, e);
  if (!form || form->low != 0) return std::nullopt;
  ExprPool& pool = arena.pool();
  Relaxing all(pool, kLarge);
  const ExprId open = all.relaxed(form->pattern);
  if (open == form->pattern) return std::nullopt;
  const CountedPattern* const table = arena.counted_pattern(vocabulary, form->unit, open, form->rest);
  if (!table || all.bytes() < table->way_out() + kUseful) return std::nullopt;
  const ExprId text = pool.intersect(pool.repeat(form->unit, 0, form->high), open);
  return BoundedText{pool.concat(text, form->rest), all.bytes() - table->way_out(), nullptr};
}

std::optional<BoundedText> bounded_text(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  ExprPool& pool = arena.pool();
  if (!pool.has(e, ExprPool::kCounted) || pool.has(e, ExprPool::kLetters)) return std::nullopt;
  // U{low,high} R has a table of its own.
  const Expr& n = pool.node(e);
  const Expr head = pool.node(n.kind == Kind::kConcat ? n.a : e);
  const ExprId rest = n.kind == Kind::kConcat ? n.b : ExprPool::kEpsilonId;
  if (head.kind == Kind::kRepeat && arena.counted_text(vocabulary, head.a, rest)) return std::nullopt;
  if (const auto found = bounded_by_bytes(arena, vocabulary, e)) return found;
  return bounded_by_characters(arena, vocabulary, e);
}

const LocalMask* bounded_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e, const BoundedText& text,
                              std::unique_ptr<LocalMask>& made) {
  const LocalMask& whole = local_mask(arena, vocabulary, text.relaxed);
  if (text.safe >= (text.table ? text.table->most_units() : vocabulary.longest())) return &whole;
  std::vector<uint32_t> words(vocabulary.words());
  whole.add_inside_to(words.data(), words.size(), true);
  std::vector<uint32_t> questionable;
  const auto ask = [&](uint32_t id) {
    if (words[id / 32] >> (id % 32) & 1) questionable.push_back(id);
  };
  if (text.table) {
    text.table->for_each_longer(text.safe, ask);
  } else {
    for (const uint32_t id : vocabulary.longer_than(text.safe)) ask(id);
  }
  // Each byte that is read by e itself may be a state to be made: too many of them take longer than a walk.
  constexpr size_t kMostRead = 2048;
  size_t bytes = 0;
  for (const uint32_t id : questionable) bytes += vocabulary.token(id)->size();
  if (bytes > kMostRead) return nullptr;
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
      const std::string path = vocabulary.trie().path(x);
      if ((text.table ? text.table->units_before_leaving(x) : path.size()) > text.safe) {
        // Whether the frame may return after these bytes: they read on through every state, the last of which must be nullable.
        ExprId at = e;
        for (const char c : path) {
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
    made->leaving = arena.leaving(std::move(leaving));
  }
  return nullptr;
}

}  // namespace grammask
