#include "grammar/arena.hpp"

#include <algorithm>
#include <stdexcept>

#include "grammar/shortest.hpp"
#include "mask/counted_pattern.hpp"
#include "mask/counted_text.hpp"
#include "mask/local_mask.hpp"
#include "mask/open_text.hpp"
#include "mask/remainder_mask.hpp"
#include "regular/finite_words.hpp"
#include "vocabulary/vocabulary.hpp"

namespace grammask {

Arena::Arena() { pool_.set_expander(this); }
Arena::~Arena() = default;

ExprId Arena::new_rule(std::string name) {
  rules_.emplace_back();
  rules_.back().name = std::move(name);
  return pool_.rule(static_cast<uint32_t>(rules_.size() - 1));
}

void Arena::define(ExprId rule, ExprId body) {
  if (pool_.node(rule).kind != Kind::kRule) throw std::invalid_argument("define: not a rule");
  Rule& r = rules_[pool_.node(rule).a];
  if (r.defined) throw std::invalid_argument("define: rule '" + r.name + "' is already defined");
  r.body = body;
  r.defined = true;
}

ExprId Arena::object(ObjectSpec spec) {
  auto frame = std::make_unique<ObjectFrame>(pool_, static_cast<uint32_t>(frames_.size()), std::move(spec),
                                             [this](ExprId e) { return open_ended(e); });
  if (!frame->possible()) return ExprPool::kEmptyId;
  const uint32_t depth = frame->depth();
  frames_.push_back(std::move(frame));
  return pool_.frame(static_cast<uint32_t>(frames_.size() - 1), ObjectFrame::kStart, depth);
}

ExprId Arena::unique_array(UniqueArraySpec spec) {
  auto frame = std::make_unique<UniqueArrayFrame>(*this, static_cast<uint32_t>(frames_.size()), std::move(spec));
  UniqueArrayFrame& made = *frame;
  frames_.push_back(std::move(frame));
  const auto index = static_cast<uint32_t>(frames_.size() - 1);
  return made.possible() ? pool_.frame(index, UniqueArrayFrame::kStart, made.depth()) : ExprPool::kEmptyId;
}

ExprId Arena::inlined(ExprId e, bool& final, int rules) {
  if (!pool_.has(e, ExprPool::kLetters)) return e;
  const Expr n = pool_.node(e);
  std::vector<ExprId> parts;
  switch (n.kind) {
    case Kind::kRule:
      if (!rules_[n.a].defined) {
        final = false;
        return e;
      }
      return rules == 0 ? e : inlined(rules_[n.a].body, final, rules - 1);
    case Kind::kCall: return inlined(n.a, final, rules);
    case Kind::kRepeat: return pool_.repeat(inlined(n.a, final, rules), n.b, n.c);
    case Kind::kConcat: {
      ExprId x = e;
      for (; pool_.node(x).kind == Kind::kConcat; x = pool_.node(x).b)
        parts.push_back(inlined(pool_.node(x).a, final, rules));
      parts.push_back(inlined(x, final, rules));
      return pool_.concat(parts);
    }
    case Kind::kUnion:
      for (const ExprId c : pool_.children(e)) parts.push_back(inlined(c, final, rules));
      return pool_.unite(parts);
    case Kind::kFrame: {
      const auto* frame = dynamic_cast<const ObjectFrame*>(frames_[n.a].get());
      if (!frame || has_real_families(*frame)) return e;
      ObjectSpec spec = frame->spec();
      spec.flat = true;
      for (ExprId* between : {&spec.open, &spec.colon, &spec.comma, &spec.close})
        *between = inlined(*between, final, rules);
      for (ObjectMember& m : spec.members) {
        for (auto& v : m.values) {
          v.value = inlined(v.value, final, rules);
        }
      }
      return object(std::move(spec));
    }
    default: return e;
  }
}

bool Arena::has_real_families(const ObjectFrame& frame) const {
  for (const ObjectMember& m : frame.spec().members) {
    if (m.family && !m.values.empty()) return true;
  }
  return false;
}

bool Arena::has_real_letters(ExprId e) {
  if (!pool_.has(e, ExprPool::kLetters)) return false;
  const Expr& n = pool_.node(e);
  std::vector<ExprId> parts;
  switch (n.kind) {
    case Kind::kConcat: {
      ExprId x = e;
      for (; pool_.node(x).kind == Kind::kConcat; x = pool_.node(x).b) {
        if (has_real_letters(pool_.node(x).a)) return true;
      }
      return has_real_letters(x);
    }
    case Kind::kRepeat:
    case Kind::kComplement: return has_real_letters(n.a);
    case Kind::kUnion:
    case Kind::kIntersection:
      for (const ExprId c : pool_.children(e)) {
        if (has_real_letters(c)) return true;
      }
      return false;
    case Kind::kFrame: {
      const auto* frame = dynamic_cast<const ObjectFrame*>(frames_[n.a].get());
      if (!frame || !frame->spec().flat || has_real_families(*frame)) return true;
      frame->mentioned(parts);
      for (const ExprId between : {frame->spec().open, frame->spec().colon, frame->spec().comma, frame->spec().close}) {
        parts.push_back(between);
      }
      for (const ExprId v : parts) {
        if (has_real_letters(v)) return true;
      }
      return false;
    }
    default: return true;
  }
}

// A text that is not one of some words is open-ended if the text is and nothing but itself follows any of those words in it:
// what may follow a prefix of them is endless, or the prefix is a word itself and not among them.
bool Arena::open_ended_but_for_words(ExprId e, size_t most_states) {
  if (pool_.node(e).kind != Kind::kIntersection) return false;
  const Exclusion parts = Exclusion::of(pool_, e);
  if (parts.included.empty() || parts.excluded.empty()) return false;
  std::vector<std::string> words;
  for (const ExprId x : parts.excluded) {
    if (!finite_words(pool_, x, words)) return false;
  }
  const ExprId text = pool_.intersect(parts.included);
  if (!open_ended(text, most_states)) return false;
  return std::ranges::all_of(words, [&](const std::string& word) {
    ExprId after = text;
    for (const char c : word) {
      const State& s = state(after);
      if (!s.letters.empty()) return false;
      after = s.next[s.class_of[static_cast<uint8_t>(c)]];
    }
    return after == ExprPool::kEmptyId || after == ExprPool::kEpsilonId;
  });
}

bool Arena::open_ended(ExprId root, size_t most_states) {
  const auto known = open_ended_.find({root, most_states});
  if (known != open_ended_.end()) return known->second;
  if (open_ended_but_for_words(root, most_states)) return open_ended_[{root, most_states}] = true;
  std::vector<ExprId> states{root};
  std::unordered_map<ExprId, size_t> index{{root, 0}};
  std::vector<std::vector<size_t>> before(1);
  std::vector<size_t> successors;
  bool result = true;
  for (size_t at = 0; at < states.size() && result; ++at) {
    const State& s = state(states[at]);
    std::vector<ExprId> next = s.next;
    for (const Letter& l : s.letters) next.push_back(l.rest);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    std::erase(next, ExprPool::kEmptyId);
    // What a call reads is not excluded word by word, so a state with calls never runs out.
    successors.push_back(next.size() + s.letters.size() + s.tokens.size());
    for (const ExprId e : next) {
      const auto [it, fresh] = index.try_emplace(e, states.size());
      if (fresh) {
        states.push_back(e);
        before.emplace_back();
      }
      before[it->second].push_back(at);
    }
    result = states.size() <= most_states;
  }
  // A state has finitely many words if all its successors have; each of those must be a word already.
  std::vector<size_t> finite;
  for (size_t i = 0; result && i < states.size(); ++i) {
    if (successors[i] == 0) finite.push_back(i);
  }
  for (size_t at = 0; result && at < finite.size(); ++at) {
    result = pool_.nullable(states[finite[at]]);
    for (const size_t b : before[finite[at]]) {
      if (--successors[b] == 0) finite.push_back(b);
    }
  }
  return open_ended_[{root, most_states}] = result;
}

uint32_t Arena::remoteness(ExprId root) {
  const auto known = remoteness_.find(root);
  if (known != remoteness_.end()) return known->second;
  constexpr size_t kMostStates = 1000;
  std::vector<ExprId> states{root};
  std::unordered_map<ExprId, size_t> index{{root, 0}};
  std::vector<std::vector<size_t>> before(1);
  for (size_t at = 0; at < states.size() && states.size() <= kMostStates; ++at) {
    for (const ExprId e : state(states[at]).next) {
      if (e == ExprPool::kEmptyId) continue;
      const auto [it, fresh] = index.try_emplace(e, states.size());
      if (fresh) {
        states.push_back(e);
        before.emplace_back();
      }
      if (before[it->second].empty() || before[it->second].back() != at) before[it->second].push_back(at);
    }
  }
  if (states.size() > kMostStates) {
    // Its neighbours will be asked about next.
    for (const ExprId e : states) remoteness_.emplace(e, kFar);
    return kFar;
  }
  // Backwards from the states that are words, all of them at distance 0.
  std::vector<uint32_t> distance(states.size(), kFar);
  std::vector<size_t> reached;
  for (size_t i = 0; i < states.size(); ++i) {
    if (!pool_.nullable(states[i])) continue;
    distance[i] = 0;
    reached.push_back(i);
  }
  uint32_t most = 0;
  for (size_t at = 0; at < reached.size(); ++at) {
    most = distance[reached[at]];
    for (const size_t b : before[reached[at]]) {
      if (distance[b] != kFar) continue;
      distance[b] = most + 1;
      reached.push_back(b);
    }
  }
  // What can be reached from a state of root is no farther than what can be reached from root.
  for (const ExprId e : states) remoteness_.emplace(e, most);
  return most;
}

ExprId Arena::unless_repeated(ExprId key, std::string_view text, ExprId e) {
  const Expr& n = pool_.node(key);
  if (!frames_[n.a]->repeats(n.b, text)) return e;
  const ExprId rest = pool_.intersect(e, pool_.complement(ExprPool::kEpsilonId));
  return pool_.alive(rest) ? rest : ExprPool::kEmptyId;
}

ExprId Arena::characters(const CodePointRanges& ranges, Spelling spelling) {
  std::string key(1, static_cast<char>(spelling));
  key.append(reinterpret_cast<const char*>(ranges.data()), ranges.size() * sizeof(ranges[0]));
  const auto known = character_classes_.find(key);
  if (known != character_classes_.end()) return known->second;
  return character_classes_[key] = grammask::characters(pool_, ranges, spelling);
}

ExprId Arena::after_key(ExprId key, std::optional<std::string_view> text) {
  const Expr& n = pool_.node(key);
  return frames_[n.a]->after_key(n.b, n.c, text);
}

// -- rules: which exist, which derive text, which derive nothing, with which bytes they start

void Arena::collect_rules(ExprId root, std::vector<uint32_t>& rules) {
  std::vector<ExprId> work{root};
  std::unordered_map<ExprId, bool> seen;
  std::vector<bool> known(rules_.size(), false);
  while (!work.empty()) {
    const ExprId e = work.back();
    work.pop_back();
    if (!pool_.has(e, ExprPool::kRules) || !seen.emplace(e, true).second) continue;
    const Expr& n = pool_.node(e);
    switch (n.kind) {
      case Kind::kConcat: work.push_back(n.a), work.push_back(n.b); break;
      case Kind::kUnion:
      case Kind::kIntersection:
        for (const ExprId c : pool_.children(e)) work.push_back(c);
        break;
      case Kind::kComplement:
      case Kind::kRepeat:
      case Kind::kCall: work.push_back(n.a); break;
      case Kind::kFrame: frames_[n.a]->mentioned(work); break;
      case Kind::kRule:
        if (rules_[n.a].ready || known[n.a]) break;
        known[n.a] = true;
        rules.push_back(n.a);
        if (!rules_[n.a].defined) throw std::invalid_argument("rule '" + rules_[n.a].name + "' is not defined");
        work.push_back(rules_[n.a].body);
        break;
      default: break;
    }
  }
}

bool Arena::productive(ExprId e, std::unordered_map<ExprId, bool>& memo) {
  if (!pool_.has(e, ExprPool::kRules)) return pool_.alive(e);
  if (const auto known = memo.find(e); known != memo.end()) return known->second;
  const Expr& n = pool_.node(e);
  bool result = false;
  switch (n.kind) {
    case Kind::kRule: return rules_[n.a].productive;
    case Kind::kCall: result = productive(n.a, memo); break;
    case Kind::kRepeat: result = n.b == 0 || productive(n.a, memo); break;
    case Kind::kConcat: {
      result = true;
      ExprId x = e;
      for (; result && pool_.node(x).kind == Kind::kConcat; x = pool_.node(x).b)
        result = productive(pool_.node(x).a, memo);
      result = result && productive(x, memo);
      break;
    }
    case Kind::kUnion:
      for (const ExprId c : pool_.children(e)) result = result || productive(c, memo);
      break;
    case Kind::kFrame: {
      const auto* object = dynamic_cast<const ObjectFrame*>(frames_[n.a].get());
      const auto* unique = dynamic_cast<const UniqueArrayFrame*>(frames_[n.a].get());
      if (object) result = object->possible_if([&](ExprId v) { return productive(v, memo); });
      if (unique) result = unique->possible_if([&](ExprId v) { return productive(v, memo); });
      break;
    }
    default: {
      // Boolean operations over words of letters: unproductive letters do not exist, then the usual search.
      std::unordered_map<ExprId, ExprId> replaced;
      std::vector<std::pair<uint32_t, uint32_t>> pending;
      result = pool_.alive(rewrite(e, replaced, pending));
    }
  }
  memo[e] = result;
  return result;
}

ExprId Arena::rewrite(ExprId e, std::unordered_map<ExprId, ExprId>& memo,
                      std::vector<std::pair<uint32_t, uint32_t>>& pending) {
  if (!pool_.has(e, ExprPool::kRules)) return e;
  if (const auto known = memo.find(e); known != memo.end()) return known->second;
  const Expr n = pool_.node(e);
  ExprId result = e;
  std::vector<ExprId> parts;
  switch (n.kind) {
    case Kind::kRule: {
      if (rules_[n.a].ready) break;
      if (!rules_[n.a].productive) {
        result = ExprPool::kEmptyId;
        break;
      }
      result = new_rule(rules_[n.a].name);
      pending.emplace_back(n.a, pool_.node(result).a);
      break;
    }
    case Kind::kCall: result = pool_.call(rewrite(n.a, memo, pending)); break;
    case Kind::kComplement: result = pool_.complement(rewrite(n.a, memo, pending)); break;
    case Kind::kRepeat: result = pool_.repeat(rewrite(n.a, memo, pending), n.b, n.c); break;
    case Kind::kConcat: {
      ExprId x = e;
      for (; pool_.node(x).kind == Kind::kConcat; x = pool_.node(x).b)
        parts.push_back(rewrite(pool_.node(x).a, memo, pending));
      parts.push_back(rewrite(x, memo, pending));
      result = pool_.concat(parts);
      break;
    }
    case Kind::kUnion:
    case Kind::kIntersection:
      for (const ExprId c : pool_.children(e)) parts.push_back(rewrite(c, memo, pending));
      result = n.kind == Kind::kUnion ? pool_.unite(parts) : pool_.intersect(parts);
      break;
    case Kind::kFrame: {
      if (const auto* old = dynamic_cast<const ObjectFrame*>(frames_[n.a].get())) {
        ObjectSpec spec = old->spec();
        for (ObjectMember& m : spec.members) {
          for (auto& v : m.values) v.value = rewrite(v.value, memo, pending);
        }
        result = object(std::move(spec));
      } else if (const auto* unique = dynamic_cast<const UniqueArrayFrame*>(frames_[n.a].get())) {
        UniqueArraySpec spec = unique->spec();
        for (ExprId& item : spec.prefix) item = rewrite(item, memo, pending);
        spec.item = rewrite(spec.item, memo, pending);
        result = unique_array(std::move(spec));
      }
      break;
    }
    default: break;
  }
  memo[e] = result;
  return result;
}

ExprId Arena::settle(ExprId root) {
  for (int round = 0;; ++round) {
    std::vector<uint32_t> rules;
    collect_rules(root, rules);
    // Least fixpoints, each by plain iteration: rules are few and bodies are shared.
    for (bool changed = true; changed;) {
      changed = false;
      std::unordered_map<ExprId, bool> memo;
      for (const uint32_t r : rules) {
        if (!rules_[r].productive && productive(rules_[r].body, memo)) changed = rules_[r].productive = true;
      }
    }
    std::unordered_map<ExprId, bool> memo;
    if (!productive(root, memo)) return ExprPool::kEmptyId;
    bool all = true;
    for (const uint32_t r : rules) all = all && rules_[r].productive;
    for (const auto& [e, is_productive] : memo) all = all && is_productive;
    if (!all && round == 0) {
      std::unordered_map<ExprId, ExprId> replaced;
      std::vector<std::pair<uint32_t, uint32_t>> pending;
      root = rewrite(root, replaced, pending);
      for (size_t i = 0; i < pending.size(); ++i) {
        const auto [from, to] = pending[i];
        const ExprId body = rewrite(rules_[from].body, replaced, pending);
        rules_[to].body = body;
        rules_[to].defined = true;
      }
      continue;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const uint32_t r : rules) {
        if (!rules_[r].nullable && pool_.nullable(without_nullable_letters(rules_[r].body))) {
          changed = rules_[r].nullable = true;
        }
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const uint32_t r : rules) {
        const ByteSet s = start_bytes(without_nullable_letters(rules_[r].body));
        if (!(s == rules_[r].start)) {
          rules_[r].start = s;
          changed = true;
        }
      }
    }
    for (const uint32_t r : rules) rules_[r].ready = true;
    return root;
  }
}

bool Arena::derives_nothing(ExprId letter) {
  const Expr& n = pool_.node(letter);
  if (n.kind == Kind::kRule) return rules_[n.a].nullable;
  if (n.kind == Kind::kCall) return pool_.nullable(without_nullable_letters(n.a));
  return false;
}

// Adds what follows a letter that may derive the empty text, so that from here on every letter consumes something.
ExprId Arena::without_nullable_letters(ExprId e) {
  if (!pool_.has(e, ExprPool::kLetters)) return e;
  std::vector<ExprId> done, heads;
  while (true) {
    heads.clear();
    pool_.letters(e, heads);
    ExprId more = e;
    for (const ExprId letter : heads) {
      if (std::find(done.begin(), done.end(), letter) != done.end() || !derives_nothing(letter)) continue;
      more = pool_.unite(more, pool_.derive_letter(e, letter));
    }
    if (more == e) return e;
    e = more;
  }
}

ByteSet Arena::start_bytes(ExprId e) {
  Expr& memo = pool_.node(e);
  if (memo.reach) return pool_.bytes(memo.reach);
  const Expr& n = memo;
  ByteSet s;
  bool final = !(n.flags & ExprPool::kRules);
  switch (n.kind) {
    case Kind::kToken: break;
    case Kind::kRule: return rules_[n.a].start;
    case Kind::kCall: s = start_bytes(without_nullable_letters(n.a)); break;
    case Kind::kKey: {
      if (n.c == Frame::kUnknown) return ByteSet::all();
      // The body of an item may mention rules although the letter itself does not.
      const ExprId body = without_nullable_letters(key_body(n.a, n.b, n.c));
      final = !pool_.has(body, ExprPool::kRules);
      s = start_bytes(body);
      break;
    }
    case Kind::kFrame: s = start_bytes(pool_.expand(e)); break;
    case Kind::kRepeat: s = start_bytes(n.a); break;
    case Kind::kComplement: s = ByteSet::all(); break;
    case Kind::kConcat:
      for (ExprId x = e;;) {
        if (pool_.node(x).kind != Kind::kConcat) {
          s = s | start_bytes(x);
          break;
        }
        s = s | start_bytes(pool_.node(x).a);
        if (!pool_.nullable(pool_.node(x).a)) break;
        x = pool_.node(x).b;
      }
      break;
    case Kind::kUnion:
      for (const ExprId c : pool_.children(e)) s = s | start_bytes(c);
      break;
    case Kind::kIntersection:
      s = ByteSet::all();
      for (const ExprId c : pool_.children(e)) s = s & start_bytes(c);
      break;
    default: s = pool_.byte_first(e); break;
  }
  if (final) pool_.node(e).reach = pool_.intern_bytes(s);
  return s;
}

// -- masks

CountedText* Arena::counted_text(const Vocabulary& vocabulary, ExprId unit, ExprId rest) {
  const auto [it, fresh] = counted_texts_.try_emplace(uint64_t{unit} << 32 | rest);
  if (fresh && CountedText::applies(*this, unit, rest)) {
    it->second = std::make_unique<CountedText>(*this, vocabulary, unit, rest);
    mask_bytes_ += it->second->memory_bytes();
  }
  return it->second.get();
}

bool Arena::counts_characters(ExprId unit, ExprId rest) {
  const auto [it, fresh] = counted_units_.try_emplace(uint64_t{unit} << 32 | rest, false);
  if (fresh) it->second = CountedText::applies(*this, unit, rest);
  return it->second;
}

const CountedPattern* Arena::counted_pattern(const Vocabulary& vocabulary, ExprId unit, ExprId pattern, ExprId rest) {
  const auto [it, fresh] = counted_patterns_.try_emplace({unit, pattern, rest});
  if (fresh) {
    auto table = std::make_unique<CountedPattern>(*this, vocabulary, unit, pattern, rest);
    if (table->made()) {
      mask_bytes_ += table->memory_bytes();
      it->second = std::move(table);
    }
  }
  return it->second.get();
}

const OpenText* Arena::open_text(const Vocabulary& vocabulary, ExprId unit) {
  constexpr uint32_t kWorthATable = 4;
  OpenTextSlot& slot = open_texts_[unit];
  if (!slot.made && ++slot.asked >= kWorthATable) {
    slot.made = std::make_unique<OpenText>(*this, vocabulary, unit);
    mask_bytes_ += slot.made->memory_bytes();
  }
  return slot.made.get();
}

LocalMask* Arena::keep(std::unique_ptr<LocalMask> mask) {
  mask_bytes_ += mask->memory_bytes();
  masks_.push_back(std::move(mask));
  return masks_.back().get();
}

std::shared_ptr<const Leaving> Arena::leaving(std::vector<uint32_t> nodes) {
  uint64_t hash = nodes.size();
  for (const uint32_t x : nodes) hash = (hash ^ x) * 0x9e3779b97f4a7c15u + (hash >> 29);
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = leavings_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (it->second->nodes() == nodes) return it->second;
  }
  auto made = std::make_shared<const Leaving>(std::move(nodes));
  mask_bytes_ += made->memory_bytes();
  return leavings_.emplace(hash, std::move(made))->second;
}

const RemainderMask* Arena::remainder_mask(const Leaving& leaving, ExprId rest) const {
  const auto it = remainder_masks_.find(uint64_t{leaving.number()} << 32 | rest);
  return it == remainder_masks_.end() ? nullptr : it->second.get();
}

const RemainderMask* Arena::keep(const Leaving& leaving, ExprId rest, std::unique_ptr<RemainderMask> mask) {
  auto& slot = remainder_masks_[uint64_t{leaving.number()} << 32 | rest];
  if (slot) return slot.get();
  mask_bytes_ += sizeof(RemainderMask) + 64 + (mask->ids.capacity() + mask->vague.capacity()) * 4;
  slot = std::move(mask);
  return slot.get();
}

ShortestWords& Arena::shortest_words(const Vocabulary& vocabulary) {
  if (!shortest_words_) shortest_words_ = std::make_unique<ShortestWords>(*this, vocabulary.single_bytes());
  return *shortest_words_;
}

size_t Arena::memory_bytes() const {
  size_t n = pool_.memory_bytes() + state_bytes_ + mask_bytes_ + classes_.size() * 600 + rules_.size() * sizeof(Rule);
  for (const auto& f : frames_) n += f->memory_bytes();
  return n;
}

}  // namespace grammask
