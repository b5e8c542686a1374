#include "mask/local_mask.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "mask/bounded_text.hpp"
#include "mask/counted_pattern.hpp"
#include "mask/counted_text.hpp"
#include "mask/difference.hpp"
#include "mask/open_text.hpp"
#include "mask/text_walk.hpp"
#include "mask/walk.hpp"
#include "mask/word_walk.hpp"
#include "matcher/stepper.hpp"
#include "regular/finite_words.hpp"
#include "regular/long_work.hpp"

namespace grammask {

Leaving::Leaving(std::vector<uint32_t> nodes) : nodes_(std::move(nodes)) {
  static std::atomic<uint32_t> numbers{0};
  number_ = numbers.fetch_add(1, std::memory_order_relaxed);
}

const RemainderTrie& Leaving::remainders_from(const Trie& trie, uint8_t first) const {
  const std::lock_guard lock(mutex_);
  auto& made = by_first_[first];
  if (!made) made = std::make_unique<const RemainderTrie>(build_remainder_trie(trie, nodes_, first));
  return *made;
}

void LocalMask::add_inside_to(uint32_t* out, size_t size, bool fresh) const {
  if (fresh && !words) std::fill_n(out, size, 0u);
  if (words) {
    const std::vector<uint32_t>& w = *words;
    if (fresh) {
      std::copy(w.begin(), w.end(), out);
      for (const uint32_t id : without) out[id / 32] &= ~(1u << (id % 32));
    } else if (without.empty()) {
      for (size_t i = 0; i < w.size(); ++i) out[i] |= w[i];
    } else {
      std::vector<uint32_t> mine(w);
      for (const uint32_t id : without) mine[id / 32] &= ~(1u << (id % 32));
      for (size_t i = 0; i < w.size(); ++i) out[i] |= mine[i];
    }
  }
  for (const uint32_t id : ids) out[id / 32] |= 1u << (id % 32);
}

size_t LocalMask::memory_bytes() const {
  size_t n = sizeof(*this) + (without.capacity() + ids.capacity()) * 4;
  if (words && words.use_count() == 1) n += words->capacity() * 4;
  return n;
}

namespace {

bool too_many_below(const Trie& trie, const std::vector<uint32_t>& nodes) {
  size_t tokens = 0;
  for (const uint32_t x : nodes) tokens += trie.below(x).size();
  return tokens > LocalMask::kManyBelow;
}

// A set of tokens that grows: a list while they are few, then a bit set.
class TokenSet {
 public:
  explicit TokenSet(const Vocabulary& v) : size_(v.words()) {}
  void add(uint32_t id) { add({&id, 1}); }
  void add(std::span<const uint32_t> tokens) {
    if (!words_) {
      ids_.insert(ids_.end(), tokens.begin(), tokens.end());
      if (ids_.size() > size_ / 6) spill();
    } else {
      for (const uint32_t id : tokens) (*words_)[id / 32] |= 1u << (id % 32);
    }
  }
  void add(const LocalMask& mask) {
    if (mask.words && !words_) spill();
    if (words_) {
      mask.add_inside_to(words_->data(), size_, false);
    } else {
      add(mask.ids);
    }
  }
  void move_to(LocalMask& mask) {
    ids_.shrink_to_fit();
    mask.ids = std::move(ids_);
    mask.words = std::move(words_);
  }

 private:
  void spill() {
    words_ = std::make_shared<std::vector<uint32_t>>(size_, 0u);
    for (const uint32_t id : ids_) (*words_)[id / 32] |= 1u << (id % 32);
    ids_.clear();
  }

  size_t size_;
  std::vector<uint32_t> ids_;
  std::shared_ptr<std::vector<uint32_t>> words_;
};

// A local mask under construction, and what it is made from.
struct Making {
  Arena& arena;
  const Vocabulary& vocabulary;
  ExprId expr;
  TokenSet tokens;
  std::vector<uint32_t> returns;
  Stepper stepper;
  Walker walker;

  Making(Arena& a, const Vocabulary& v, ExprId e)
      : arena(a), vocabulary(v), expr(e), tokens(v), stepper(a), walker(stepper) {}

  auto adding() {
    return [this](std::span<const uint32_t> some) { tokens.add(some); };
  }
  // Tokens that hold a whole key and the start of another: read each with its text.
  void add_readable_below(const Trie& trie, const std::vector<uint32_t>& nodes) {
    const Thread start{expr, Stack::kBottom};
    for (const uint32_t x : nodes) {
      for_each_token_below(trie, x, [&](uint32_t id) {
        if (stepper.can_read({&start, 1}, *vocabulary.token(id))) tokens.add(id);
      });
    }
  }
  ByteSet add_calls(const State& state);
  void add_call(const Letter& l);
  bool add_literal(ExprId e);
  ExprId add_literals();
  bool add_words(ExprId e);
  // Tokens that go on from nodes where something else than before is read.
  void add_after(const std::vector<uint32_t>& nodes, ExprId rest);
};

// Whether nothing but special tokens can interrupt the bytes of e.
bool is_text(const ExprPool& pool, ExprId e) {
  if (!pool.has(e, ExprPool::kLetters)) return true;
  const Expr& n = pool.node(e);
  switch (n.kind) {
    case Kind::kToken: return true;
    case Kind::kConcat: return is_text(pool, n.a) && is_text(pool, n.b);
    case Kind::kUnion: return std::ranges::all_of(pool.children(e), [&](ExprId c) { return is_text(pool, c); });
    default: return false;
  }
}

// Tokens whose first byte can only be read by calls: those inside a callee are its local mask, those that leave it are its
// remainders read by what follows the call. Both are shared with everyone who calls the same. Returns the bytes that are
// settled in this way.
ByteSet Making::add_calls(const State& state) {
  std::vector<const Letter*> shared;
  ByteSet settled;
  if (state.letters.empty()) return settled;
  for (size_t b = 0; b < 256; ++b) {
    if (state.next[state.class_of[b]] == ExprPool::kEmptyId) settled.add(static_cast<uint8_t>(b));
  }
  {
    const std::lock_guard lock(arena.mutex());
    for (const Letter& l : state.letters) {
      if (l.vague || l.checked || !is_text(arena.pool(), l.body)) {
        settled = settled & ~l.start;
      } else {
        shared.push_back(&l);
      }
    }
  }
  for (const Letter*& l : shared) {
    const LocalMask& body = local_mask(arena, vocabulary, l->body);
    if (!body.walk_directly || body.leaving) continue;
    settled = settled & ~l->start;
    l = nullptr;
  }
  // A call is taken as a whole: if one of its bytes needs a walk, all of them do, and so do those of the calls they share.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Letter*& l : shared) {
      if (!l || (l->start & ~settled).empty()) continue;
      settled = settled & ~l->start;
      l = nullptr;
      changed = true;
    }
  }
  for (const Letter* l : shared) {
    if (l) add_call(*l);
  }
  return settled;
}

void Making::add_call(const Letter& l) {
  const LocalMask& body = local_mask(arena, vocabulary, l.body);
  tokens.add(body);
  if (!body.leaving) return;
  Thread after{l.rest, Stack::kBottom};
  if (l.key) {
    const std::lock_guard lock(arena.mutex());
    after.expr = arena.pool().concat(arena.after_key(l.letter, std::nullopt), l.rest);
  }
  // Where nothing needs to follow the call, the frame may return as soon as the callee does.
  if (arena.state(after.expr).nullable) {
    returns.insert(returns.end(), body.leaving->nodes().begin(), body.leaving->nodes().end());
  }
  if (after.expr == ExprPool::kEpsilonId) return;
  body.leaving->for_each_remainders(vocabulary.trie(), stepper.start(after), [&](const RemainderTrie& remainders) {
    std::vector<uint32_t> returned, vague;
    walker.walk(remainders.trie, {&after, 1}, adding(), {&returned, &vague, {}});
    add_readable_below(remainders.trie, vague);
    for (const uint32_t x : returned) {
      returns.insert(returns.end(), remainders.origins.begin() + remainders.origin_begin[x],
                     remainders.origins.begin() + remainders.origin_begin[x + 1]);
    }
  });
}

// One word out of many and then something: the words are followed in their list, and only tokens that hold the end of
// one are walked on from there.
bool Making::add_words(ExprId e) {
  const Trie& trie = vocabulary.trie();
  const WordMachine* machine = nullptr;
  WordMachine::Range range{};
  ExprId rest = ExprPool::kEpsilonId;
  {
    const std::lock_guard lock(arena.mutex());
    ExprPool& pool = arena.pool();
    ExprId head = e;
    if (pool.node(e).kind == Kind::kConcat) {
      head = pool.node(e).a;
      rest = pool.node(e).b;
    }
    if (pool.node(head).kind != Kind::kMachine) return false;
    machine = dynamic_cast<const WordMachine*>(&pool.machine_of(head));
    if (!machine) return false;
    range = machine->range(pool.node(head).b);
  }
  std::vector<uint32_t> ends;
  if (machine->ends(range)) ends.push_back(0);
  walk_words(
      trie, *machine, range, [&](uint32_t x) { tokens.add(trie.own(x)); }, [&](uint32_t x) { ends.push_back(x); });
  add_after(ends, rest);
  return true;
}

// Follows the bytes that e begins with, as those of a key: they lead along one path of the trie, mostly to its end, and no state
// has to be made for them. Only what follows them is walked. False if e begins with something else.
bool Making::add_literal(ExprId e) {
  const Trie& trie = vocabulary.trie();
  uint32_t x = 0;
  {
    const std::lock_guard lock(arena.mutex());
    ExprPool& pool = arena.pool();
    if (!pool.alive(e)) return true;
    std::vector<ExprId> after;
    while (true) {
      for (; pool.node(e).kind == Kind::kConcat; e = pool.node(e).a) after.push_back(pool.node(e).b);
      if (pool.node(e).kind != Kind::kSet) break;
      const ByteSet& bytes = pool.bytes(pool.node(e).a);
      if (!bytes.is_single()) break;
      x = trie.child(x, bytes.lowest());
      if (x == 0) return true;
      tokens.add(trie.own(x));
      if (trie.child_count[x] == 0) return true;
      e = ExprPool::kEpsilonId;
      if (after.empty()) break;
      e = after.back();
      after.pop_back();
    }
    if (x == 0) return false;
    for (; !after.empty(); after.pop_back()) e = pool.concat(e, after.back());
  }
  add_after({x}, e);
  return true;
}

// The same for every member of a union. Returns what is left of it.
ExprId Making::add_literals() {
  std::vector<ExprId> members{expr}, others;
  {
    const std::lock_guard lock(arena.mutex());
    if (arena.pool().node(expr).kind == Kind::kUnion) {
      const auto children = arena.pool().children(expr);
      members.assign(children.begin(), children.end());
    }
  }
  for (const ExprId e : members) {
    if (!add_literal(e)) others.push_back(e);
  }
  if (others.size() == members.size()) return expr;
  const std::lock_guard lock(arena.mutex());
  return arena.pool().unite(others);
}

void Making::add_after(const std::vector<uint32_t>& nodes, ExprId rest) {
  const Trie& trie = vocabulary.trie();
  const Thread after{rest, Stack::kBottom};
  const bool may_return = arena.state(rest).nullable;
  std::vector<uint32_t> vague;
  for (const uint32_t x : nodes) {
    if (trie.child_count[x] == 0) continue;
    if (may_return && x != 0) returns.push_back(x);
    if (rest == ExprPool::kEpsilonId) continue;
    walker.walk(trie, {&after, 1}, adding(), {&returns, &vague, {}}, x);
  }
  add_readable_below(trie, vague);
}

bool has_letters(Arena& arena, ExprId e) {
  const std::lock_guard lock(arena.mutex());
  return arena.pool().has(e, ExprPool::kLetters);
}

// The mask of an expression without letters.
std::unique_ptr<LocalMask> text_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  auto mask = std::make_unique<LocalMask>();
  mask->returns_at_once = arena.state(e).nullable;
  TextTokens read = walk_text(arena, vocabulary, vocabulary.trie(), e);
  if (read.count > read.words.size() / 2) {
    mask->words = std::make_shared<std::vector<uint32_t>>(std::move(read.words));
  } else {
    for (uint32_t i = 0; i < read.words.size(); ++i) {
      for (uint32_t w = read.words[i]; w; w &= w - 1)
        mask->ids.push_back(i * 32 + static_cast<uint32_t>(std::countr_zero(w)));
    }
  }
  std::sort(read.returns.begin(), read.returns.end());
  mask->walk_directly = too_many_below(vocabulary.trie(), read.returns);
  if (!read.returns.empty()) mask->leaving = arena.leaving(std::move(read.returns));
  return mask;
}

std::unique_ptr<LocalMask> by_walk(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  constexpr int kManyStarts = 16;  // with fewer a walk is short in any way
  auto mask = std::make_unique<LocalMask>();
  const Trie& trie = vocabulary.trie();
  mask->returns_at_once = arena.state(e).nullable;
  Making making(arena, vocabulary, e);
  std::vector<uint32_t>& returns = making.returns;
  const ExprId others = making.add_literals();
  if (others != ExprPool::kEmptyId && others != ExprPool::kEpsilonId && !making.add_words(others)) {
    const bool is_long = others == e && arena.state(e).start.count() >= kManyStarts;
    if (is_long && !has_letters(arena, e)) return text_mask(arena, vocabulary, e);
    std::vector<uint32_t> vague, walked;
    const ByteSet called = making.add_calls(arena.state(others));
    const Thread start{others, Stack::kBottom};
    making.walker.walk(trie, {&start, 1}, making.adding(), {&walked, &vague, called});
    making.add_readable_below(trie, vague);
    returns.insert(returns.end(), walked.begin(), walked.end());
  }
  std::sort(returns.begin(), returns.end());
  returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
  making.tokens.move_to(*mask);
  mask->walk_directly = too_many_below(trie, returns);
  if (!returns.empty()) mask->leaving = arena.leaving(std::move(returns));
  return mask;
}

// Within a text that waits for a word, the state that most bytes lead back to differs from e along the word alone. That
// state if its mask is there already, else kEmptyId.
ExprId resting_state(Arena& arena, ExprId e) {
  const auto after_most = [&](const State& s) {
    if (s.start.count() < 128) return ExprPool::kEmptyId;
    std::array<uint16_t, 256> sizes{};
    for (size_t b = 0; b < 256; ++b) ++sizes[s.class_of[b]];
    return s.next[static_cast<size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin())];
  };
  const ExprId r = after_most(arena.state(e));
  if (r == e || r == ExprPool::kEmptyId) return ExprPool::kEmptyId;
  const State& rest = arena.state(r);
  const LocalMask* mask = rest.mask.load(std::memory_order_acquire);
  if (!mask || !mask->words || after_most(rest) != r) return ExprPool::kEmptyId;
  const std::lock_guard lock(arena.mutex());
  return is_text(arena.pool(), e) && is_text(arena.pool(), r) ? r : ExprPool::kEmptyId;
}

// Null with `made` set, unless the mask of another state is also that of e.
const LocalMask* make_local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e,
                                 std::unique_ptr<LocalMask>& made) {
  ExprId counted = 0, rest = 0, whole = 0;
  std::vector<ExprId> excluded;
  bool only_at_words = false;
  uint32_t low = 0, high = 0;
  CountedText* table = nullptr;
  std::optional<BoundedText> bounded;
  {
    const std::lock_guard lock(arena.mutex());
    bounded = bounded_pattern(arena, vocabulary, e);
  }
  if (bounded) {
    const LocalMask* same = bounded_mask(arena, vocabulary, e, *bounded, made);
    if (same || made) return same;
  }
  {
    const std::lock_guard lock(arena.mutex());
    if (const auto form = CountedPattern::form_of(arena, e)) {
      if (const CountedPattern* pattern = arena.counted_pattern(vocabulary, form->unit, form->pattern, form->rest)) {
        made = pattern->mask(arena, form->low, form->high);
        return nullptr;
      }
    }
    bounded = bounded_text(arena, vocabulary, e);
  }
  if (bounded) {
    const LocalMask* same = bounded_mask(arena, vocabulary, e, *bounded, made);
    if (same || made) return same;
  }
  {
    const std::lock_guard lock(arena.mutex());
    ExprPool& pool = arena.pool();
    const Expr& n = pool.node(e);
    const Expr& head = n.kind == Kind::kConcat ? pool.node(n.a) : n;
    if (head.kind == Kind::kRepeat && pool.has(e, ExprPool::kCounted)) {
      counted = head.a;
      low = head.b;
      high = head.c;
      rest = n.kind == Kind::kConcat ? n.b : ExprPool::kEpsilonId;
      if (low > 1 || (high != ExprPool::kUnbounded && high > 1)) table = arena.counted_text(vocabulary, counted, rest);
    } else if (head.kind == Kind::kIntersection && !pool.has(e, ExprPool::kLetters)) {
      const Exclusion parts = Exclusion::of(pool, n.kind == Kind::kConcat ? n.a : e);
      if (!parts.included.empty() && !parts.excluded.empty()) {
        whole = pool.intersect(parts.included);
        excluded = parts.excluded;
        // No prefix of the rest is dead or a word for want of a few words, so that only where those end anything differs.
        constexpr size_t kFewStates = 64;
        only_at_words = arena.open_ended(whole, kFewStates);
        if (n.kind == Kind::kConcat) whole = pool.concat(whole, n.b);
      }
    }
    if (table) {
      made = table->mask(arena, low, high);
      return nullptr;
    }
    if (!whole) {
      if (const ExprId unit = OpenText::unit_of(arena, e)) {
        if (const OpenText* open = arena.open_text(vocabulary, unit)) {
          made = open->mask(arena, e);
          return nullptr;
        }
      }
    }
  }
  // r ∩ ¬x, or that and then something: x is mostly a few texts.
  if (whole && only_at_words) made = by_difference_at_words(arena, vocabulary, e, whole, excluded);
  if (whole && !made) made = by_difference(arena, vocabulary, e, whole);
  if (made) return nullptr;
  if (const ExprId resting = resting_state(arena, e)) made = by_difference(arena, vocabulary, e, resting);
  if (!made) made = by_walk(arena, vocabulary, e);
  return nullptr;
}

}  // namespace

const LocalMask& local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  State& state = arena.mutable_state(e);
  if (const LocalMask* known = state.mask.load(std::memory_order_acquire)) return *known;
  LongWork::begins();
  std::unique_ptr<LocalMask> made;
  const LocalMask* const same = make_local_mask(arena, vocabulary, e, made);
  const std::lock_guard lock(arena.mutex());
  if (const LocalMask* known = state.mask.load(std::memory_order_acquire)) return *known;
  const LocalMask* const published = same ? same : arena.keep(std::move(made));
  state.mask.store(published, std::memory_order_release);
  return *published;
}

}  // namespace grammask
