#include <algorithm>
#include <cstring>

#include "grammar/arena.hpp"
#include "mask/local_mask.hpp"
#include "regular/long_work.hpp"
#include "regular/utf8.hpp"

// Expressions made ready for stepping: what each class of bytes does.

namespace grammask {

namespace {

uint64_t hash_of(const std::array<uint8_t, 256>& classes) {
  uint64_t hash = 0;
  for (size_t i = 0; i < classes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, classes.data() + i, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

const uint8_t* Arena::intern_classes(const std::array<uint8_t, 256>& classes) {
  const uint64_t hash = hash_of(classes);
  const uint32_t known = class_table_.find(hash, [&](uint32_t i) { return *classes_[i] == classes; });
  if (known != IdTable::kNone) return classes_[known]->data();
  class_table_.insert(hash, [&](uint32_t i) { return hash_of(*classes_[i]); });
  classes_.push_back(std::make_unique<std::array<uint8_t, 256>>(classes));
  return classes_.back()->data();
}

const State& Arena::build_state(ExprId e) {
  LongWork::begins();
  const std::lock_guard lock(mutex_);
  if (State* s = pool_.node(e).state) return *s;
  auto made = std::make_unique<State>();
  State& s = *made;
  s.self = e;
  if (!build_step(e, s)) build_general(e, s);
  state_bytes_ += sizeof(State) + s.action.size() * 8 + s.letters.size() * sizeof(Letter) + 64;
  State* published = made.get();
  states_.push_back(std::move(made));
  std::atomic_ref<State*>(pool_.node(e).state).store(published, std::memory_order_release);
  return *published;
}

// The commonest states read one byte out of a set and go on: literals, one byte at a time.
bool Arena::build_step(ExprId e, State& s) {
  // The first part of a first part, as in ("name" : value), is deeper on the left.
  ExprId head = e;
  std::vector<ExprId> after;
  while (pool_.node(head).kind == Kind::kConcat) {
    after.push_back(pool_.node(head).b);
    head = pool_.node(head).a;
  }
  if (pool_.node(head).kind != Kind::kSet) return false;
  ExprId next = ExprPool::kEpsilonId;
  for (; !after.empty(); after.pop_back()) next = pool_.concat(next, after.back());
  const uint32_t set = pool_.node(head).a;
  if (set >= set_classes_.size()) set_classes_.resize(set + 1, nullptr);
  s.start = pool_.bytes(set);
  if (!set_classes_[set]) {
    std::array<uint8_t, 256> classes{};
    s.start.for_each([&](uint8_t b) { classes[b] = 1; });
    set_classes_[set] = intern_classes(classes);
  }
  s.class_of = set_classes_[set];
  if (!pool_.alive(next)) {
    s.start = {};
    s.next = {ExprPool::kEmptyId, ExprPool::kEmptyId};
    s.action = {static_cast<uint32_t>(Act::kDead), static_cast<uint32_t>(Act::kDead)};
  } else {
    s.next = {ExprPool::kEmptyId, next};
    s.action = {static_cast<uint32_t>(Act::kDead), next << 2 | static_cast<uint32_t>(Act::kNext)};
  }
  return true;
}

void Arena::build_general(ExprId e, State& s) {
  constexpr size_t kStatesBetweenChecks = 64;
  if (states_.size() % kStatesBetweenChecks == 0) pool_.check_deadline();
  const ExprId x = without_nullable_letters(e);
  s.nullable = pool_.nullable(x);

  std::vector<ExprId> heads;
  pool_.letters(x, heads);
  for (const ExprId letter : heads) {
    const ExprId rest = pool_.derive_letter(x, letter);
    if (!pool_.alive(rest)) continue;
    const Expr& n = pool_.node(letter);
    if (n.kind == Kind::kToken) {
      s.tokens.push_back({n.a, rest});
      continue;
    }
    Letter l;
    l.letter = letter;
    l.rest = rest;
    l.key = n.kind == Kind::kKey;
    if (l.key && n.c == Frame::kUnknown) {
      l.vague = true;
      l.body = ExprPool::kEpsilonId;
      l.start = ByteSet::all();
      s.letters.push_back(l);
      s.start = ByteSet::all();
      continue;
    }
    l.vague = l.key && frames_[n.a]->vague(n.b);
    l.checked = l.key && frames_[n.a]->checked(n.b, n.c);
    l.open_ended = l.vague && open_ended(frames_[n.a]->whole_key(n.c));
    l.body = n.kind == Kind::kRule ? rules_[n.a].body : pool_.letter_body(letter);
    l.start = start_bytes(letter);
    s.letters.push_back(l);
    s.start = s.start | l.start;
  }

  ExprPool::Classes classes;
  pool_.byte_classes(x, classes);
  if (!s.letters.empty()) {
    std::vector<ByteSet> sets;
    for (const Letter& l : s.letters) sets.push_back(l.start);
    ExprPool::refine(classes, sets);
  }
  pool_.derive_by_class(x, classes, s.next);
  s.action.reserve(s.next.size());
  bool any_next = false;
  for (size_t c = 0; c < s.next.size(); ++c) {
    const uint8_t b = classes.representative[c];
    if (!pool_.alive(s.next[c])) s.next[c] = ExprPool::kEmptyId;
    const ExprId d = s.next[c];
    const bool is_alive = d != ExprPool::kEmptyId;
    any_next = any_next || is_alive;
    if (is_alive) s.start = s.start | classes.bytes[c];
    uint32_t options = is_alive;
    uint32_t which = 0;
    for (uint32_t i = 0; i < s.letters.size(); ++i) {
      if (s.letters[i].start.has(b)) {
        ++options;
        which = i;
      }
    }
    if (options == 0) {
      s.action.push_back(static_cast<uint32_t>(Act::kDead));
    } else if (options > 1) {
      s.action.push_back(static_cast<uint32_t>(Act::kMany));
    } else if (is_alive) {
      s.action.push_back(d << 2 | static_cast<uint32_t>(Act::kNext));
      if (d == e) s.loops = s.loops | classes.bytes[c];
    } else {
      s.action.push_back(which << 2 | static_cast<uint32_t>(Act::kCall));
    }
  }
  if (!any_next && !s.nullable && s.letters.size() == 1 && s.tokens.empty()) s.only_letter = 0;
  s.class_of = intern_classes(classes.of);
}

// Whether every way to finish a character leads from its middle to a state, and to nothing else.
bool Arena::all_return(const State& s, uint8_t place, ExprId to) {
  if (place == utf8::kBetween) return s.self == to;
  if (s.nullable || s.self == to) return false;
  // Neighbouring bytes mostly do the same.
  uint32_t last_action = 0;
  uint8_t last_place = utf8::kNowhere;
  for (unsigned b = 0x80; b <= 0xbf; ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const uint8_t next = utf8::step(place, byte);
    if (next == utf8::kNowhere) continue;
    const uint32_t action = s.action[s.class_of[b]];
    if (action == last_action && next == last_place) continue;
    if (static_cast<Act>(action & 3) != Act::kNext || !all_return(state(action >> 2), next, to)) return false;
    last_action = action;
    last_place = next;
  }
  return true;
}

ByteSet Arena::characters_to(const State& s, ExprId to) {
  ByteSet found;
  uint32_t last_action = 0;
  uint8_t last_place = utf8::kNowhere;
  bool last = false;
  for (unsigned b = 0; b < 256; ++b) {
    const auto byte = static_cast<uint8_t>(b);
    const uint8_t place = utf8::step(utf8::kBetween, byte);
    if (place == utf8::kNowhere) continue;
    const uint32_t action = s.action[s.class_of[b]];
    if (static_cast<Act>(action & 3) != Act::kNext) continue;
    if (action != last_action || place != last_place) last = all_return(state(action >> 2), place, to);
    last_action = action;
    last_place = place;
    if (last) found.add(byte);
  }
  return found;
}

const ByteSet& Arena::find_character_loops(const State& s) {
  const std::lock_guard lock(mutex_);
  if (s.knows_character_loops.load(std::memory_order_acquire)) return s.character_loops;
  State& found = const_cast<State&>(s);
  found.character_loops = characters_to(s, s.self);
  found.knows_character_loops.store(true, std::memory_order_release);
  return s.character_loops;
}

}  // namespace grammask
