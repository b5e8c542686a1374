#include "grammar/unique_array_frame.hpp"

#include <algorithm>

#include "grammar/arena.hpp"
#include "grammar/json_text.hpp"

namespace grammask {

UniqueArrayFrame::UniqueArrayFrame(Arena& arena, uint32_t index, UniqueArraySpec spec)
    : arena_(arena),
      pool_(arena.pool()),
      index_(index),
      spec_(std::move(spec)),
      values_(arena.pool()),
      spellings_(arena) {
  bodies_.assign(spec_.prefix.size() + 1, 0);
  for (uint32_t i = 0; i < bodies_.size(); ++i) depth_ = std::max<uint32_t>(depth_, pool_.node(item_of(i)).depth);
  states_.push_back({});
}

void UniqueArrayFrame::mentioned(std::vector<ExprId>& out) const {
  out.insert(out.end(), spec_.prefix.begin(), spec_.prefix.end());
  out.push_back(spec_.item);
}

uint32_t UniqueArrayFrame::family_at(uint32_t count) const {
  return std::min(count, static_cast<uint32_t>(spec_.prefix.size()));
}

ExprId UniqueArrayFrame::item_of(uint32_t family) const {
  return family < spec_.prefix.size() ? spec_.prefix[family] : spec_.item;
}

ExprId UniqueArrayFrame::body_of(uint32_t family) {
  if (bodies_[family]) return bodies_[family];
  bool final = true;
  const ExprId body = arena_.inlined(item_of(family), final);
  if (final) bodies_[family] = body;
  return body;
}

bool UniqueArrayFrame::checked(uint32_t id, uint32_t family) {
  if (two_equal()) return false;
  return states_[id].unspelled || arena_.has_real_letters(body_of(family));
}

uint32_t UniqueArrayFrame::intern(const State& s) {
  std::string key;
  for (const uint32_t v : {static_cast<uint32_t>(s.phase) << 1 | s.vague, s.count, s.values}) {
    key.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  key.append(reinterpret_cast<const char*>(s.copies.data()), s.copies.size() * sizeof(ExprId));
  const auto [it, inserted] = state_index_.try_emplace(std::move(key), static_cast<uint32_t>(states_.size()));
  if (inserted) states_.push_back(s);
  return it->second;
}

UniqueArrayFrame::State UniqueArrayFrame::after(const State& s) const {
  State t = s;
  t.phase = Phase::kNext;
  ++t.count;
  if (spec_.max_items == ExprPool::kUnbounded) {
    t.count = std::min(t.count, std::max(spec_.min_items, static_cast<uint32_t>(spec_.prefix.size())));
  }
  return t;
}

bool UniqueArrayFrame::possible() {
  if (spec_.kinds) return counts().completable(ItemCounts::kStart);
  if (spec_.max_items < spec_.min_items) return false;
  for (uint32_t i = 0; i < spec_.min_items && i <= spec_.prefix.size(); ++i) {
    if (!pool_.alive(body_of(family_at(i)))) return false;
  }
  return completable(0, 0, nullptr);
}

// Values met by reading on byte by byte, with few bytes out of many, no blanks and no escapes: most of a short list, or
// enough of many.
std::map<std::string, JsonText> UniqueArrayFrame::easy_values(ExprId body, uint64_t enough) {
  constexpr uint64_t kTriedPerValue = 100, kTriedAnyway = 2000;
  constexpr int kBytes = 16;
  std::map<std::string, JsonText> found;
  std::vector<std::pair<ExprId, std::string>> texts{{body, ""}};
  for (size_t at = 0; at < texts.size() && found.size() < enough; ++at) {
    if (texts.size() > kTriedAnyway + kTriedPerValue * enough) break;
    const grammask::State& s = arena_.state(texts[at].first);
    std::vector<int> taken(s.next.size(), 0);
    for (int b = ' ' + 1; b < 0x7f; ++b) {
      const uint8_t c = s.class_of[b];
      if (b == '\\' || s.next[c] == ExprPool::kEmptyId || taken[c]++ == kBytes) continue;
      texts.emplace_back(s.next[c], texts[at].second + static_cast<char>(b));
      if (!pool_.nullable(s.next[c])) continue;
      if (auto value = parse_json_text(texts.back().second)) found.emplace(value->canonical(), std::move(*value));
    }
  }
  return found;
}

// Values, not texts: white space and spellings make texts endless where values are few.
const UniqueArrayFrame::FewValues& UniqueArrayFrame::few_values(uint32_t family) {
  const auto known = few_values_.find(family);
  if (known != few_values_.end()) return known->second;
  // A position with as many values as there are positions can always be filled last. Larger needs are taken on trust.
  constexpr uint32_t kMostCounted = 256;
  const uint64_t enough = spec_.kinds ? spec_.kinds->enough() : std::min(spec_.min_items, kMostCounted);
  FewValues found;
  ExprId e = body_of(family);
  static const FewValues unknown;
  if (!bodies_[family]) return unknown;  // rules are still to be defined
  if (!arena_.has_real_letters(e)) {
    const auto easy = easy_values(e, enough);
    if (easy.size() < enough) {
      ExprId listed = ExprPool::kEmptyId;
      for (const auto& [canonical, value] : easy) {
        found.values.push_back({canonical, spellings_.of(value, canonical)});
        listed = pool_.unite(listed, found.values.back().spellings);
      }
      e = pool_.intersect(e, pool_.complement(listed));
    }
    std::string text;
    while (easy.size() < enough && found.values.size() < enough && pool_.shortest(e, text)) {
      const auto value = parse_json_text(text);
      if (!value) break;
      const std::string canonical = value->canonical();
      const ExprId all = spellings_.of(*value, canonical);
      found.values.push_back({canonical, all});
      e = pool_.intersect(e, pool_.complement(all));
    }
    found.few = easy.size() < enough && found.values.size() < enough;
  }
  if (!found.few) found.values.clear();
  return few_values_[family] = std::move(found);
}

// Whether the positions from `count` up to min_items can be filled with different values, none of them in `values` or
// equal to `also`: a matching of positions with values (Kuhn's augmenting paths), over the positions whose values are few.
bool UniqueArrayFrame::completable(uint32_t count, uint32_t values, const std::string* also) {
  std::vector<uint32_t> positions;
  std::unordered_map<std::string_view, size_t> number;
  for (uint32_t i = count; i < spec_.min_items; ++i) {
    const FewValues& family = few_values(family_at(i));
    if (!family.few) {
      if (i >= spec_.prefix.size()) break;
      continue;
    }
    positions.push_back(i);
    for (const Value& v : family.values) {
      if (!values_.has(values, v.canonical) && !(also && *also == v.canonical))
        number.try_emplace(v.canonical, number.size());
    }
    if (i >= spec_.prefix.size() && spec_.min_items - i > number.size()) return false;
  }
  if (positions.size() > number.size()) return false;
  constexpr size_t kFree = ~size_t{0};
  std::vector<size_t> taken_by(number.size(), kFree);
  std::vector<bool> tried;
  const std::function<bool(size_t)> place = [&](size_t p) {
    for (const Value& v : few_values(family_at(positions[p])).values) {
      const auto it = number.find(v.canonical);
      if (it == number.end() || tried[it->second]) continue;
      tried[it->second] = true;
      if (taken_by[it->second] == kFree || place(taken_by[it->second])) {
        taken_by[it->second] = p;
        return true;
      }
    }
    return false;
  };
  for (size_t p = 0; p < positions.size(); ++p) {
    tried.assign(number.size(), false);
    if (!place(p)) return false;
  }
  return true;
}

const UniqueArrayFrame::Refused& UniqueArrayFrame::refused(uint32_t id) {
  const auto known = refused_.find(id);
  if (known != refused_.end()) return known->second;
  Refused found;
  const State s = states_[id];
  for (uint32_t i = s.count + 1; i < spec_.min_items && i <= s.count + 1 + spec_.prefix.size(); ++i) {
    for (const Value& v : few_values(family_at(i)).values) {
      if (values_.has(s.values, v.canonical) || found.canonical.count(v.canonical)) continue;
      if (completable(s.count + 1, s.values, &v.canonical)) continue;
      found.canonical.insert(v.canonical);
      found.spellings = pool_.unite(found.spellings, v.spellings);
    }
  }
  return refused_[id] = std::move(found);
}

bool UniqueArrayFrame::possible_if(const std::function<bool(ExprId)>& productive) const {
  if (spec_.kinds) {
    ItemRules rules = *spec_.kinds;
    for (const ExprId kind : spec_.prefix) rules.supply.push_back(productive(kind) ? ItemRules::kUnbounded : 0);
    return ItemCounts(std::move(rules)).completable(ItemCounts::kStart);
  }
  const uint32_t positions = std::min(spec_.min_items, static_cast<uint32_t>(spec_.prefix.size()) + 1);
  for (uint32_t i = 0; i < positions; ++i) {
    if (!productive(item_of(family_at(i)))) return false;
  }
  return true;
}

ExprId UniqueArrayFrame::expand(uint32_t id) {
  const State s = states_[id];
  if (s.phase == Phase::kStart) {
    State t = s;
    t.phase = Phase::kFirst;
    return pool_.concat(spec_.open, pool_.frame(index_, intern(t), depth_));
  }
  if (spec_.kinds) return next_items(id);
  ExprId more = ExprPool::kEmptyId;
  const uint32_t family = family_at(s.count);
  // Whether another item is left at all may depend on the one that is not known.
  if (s.vague && !arena_.open_ended(body_of(family))) return pool_.key(index_, id, kUnknown);
  const bool full = spec_.max_items != ExprPool::kUnbounded && s.count >= spec_.max_items;
  if (!full && item_of(family) != ExprPool::kEmptyId && key_body(id, family) != ExprPool::kEmptyId) {
    more = pool_.key(index_, id, family);
    if (s.phase == Phase::kNext) more = pool_.concat(spec_.comma, more);
  }
  return pool_.unite(more, s.count >= spec_.min_items ? spec_.close : ExprPool::kEmptyId);
}

ExprId UniqueArrayFrame::onward(uint32_t id, const Lengths& length) {
  const State& s = states_[id];
  if (spec_.kinds && s.phase != Phase::kStart) return onward_with_kinds(id, length);
  return s.phase != Phase::kStart && s.count >= spec_.min_items ? spec_.close : expand(id);
}

uint32_t UniqueArrayFrame::missing(uint32_t id) {
  if (spec_.kinds) return counts().missing(states_[id].count);
  return spec_.min_items - std::min(spec_.min_items, states_[id].count);
}

// What is left of the items once some texts are excluded.
ExprId UniqueArrayFrame::other_than(ExprId seen, ExprId body) {
  if (seen == ExprPool::kEmptyId) return body;
  const ExprId left = pool_.intersect(body, pool_.complement(seen));
  return arena_.open_ended(body) || pool_.alive(left) ? left : ExprPool::kEmptyId;
}

ExprId UniqueArrayFrame::key_body(uint32_t id, uint32_t family) {
  if (spec_.kinds) return body_of_kind(states_[id], family);
  return other_than(pool_.unite(states_[id].spellings, refused(id).spellings), body_of(family));
}

ExprId UniqueArrayFrame::after_key(uint32_t id, uint32_t family, std::optional<std::string_view> text) {
  if (!text) {
    State t = states_[id];
    if (!spec_.kinds) {
      t = after(t);
    } else if (!two_equal()) {
      const auto next = completable_after(t, family, false);
      if (!next) return ExprPool::kEmptyId;
      t.count = *next;
    }
    t.phase = Phase::kNext;
    t.vague = true;
    return pool_.frame(index_, intern(t), depth_);
  }
  // While a mask is computed, thousands of tokens that end an item and begin the next are read with the same few texts.
  constexpr size_t kMostKept = 512;
  std::string key;
  for (const uint32_t v : {id, family}) key.append(reinterpret_cast<const char*>(&v), sizeof v);
  key += *text;
  const auto known = after_texts_.find(key);
  if (known != after_texts_.end()) return known->second;
  if (after_texts_.size() == kMostKept) after_texts_.clear();
  return after_texts_[std::move(key)] = after_text(id, family, *text);
}

ExprId UniqueArrayFrame::after_text(uint32_t id, uint32_t family, std::string_view text) {
  const auto value = parse_json_text(text);
  if (!value) return ExprPool::kEmptyId;
  if (spec_.kinds) return after_kind(states_[id], family, text, *value);
  State t = after(states_[id]);
  remember(t, *value, value->canonical());
  return pool_.frame(index_, intern(t), depth_);
}

void UniqueArrayFrame::remember(State& s, const JsonText& value, const std::string& canonical) {
  s.values = values_.add(s.values, 0, canonical);
  const ExprId spelled = spellings_.of(value, canonical);
  s.unspelled = s.unspelled || spelled == ExprPool::kEmptyId;
  s.spellings = pool_.unite(s.spellings, spelled);
}

bool UniqueArrayFrame::repeats(uint32_t id, std::string_view text) {
  if (two_equal()) return false;
  static const Refused none;
  const Refused& also = spec_.kinds ? none : refused(id);
  if (states_[id].values == 0 && also.canonical.empty()) return false;
  const auto value = parse_json_text(text);
  if (!value) return false;
  const std::string canonical = value->canonical();
  return values_.has(states_[id].values, canonical) || also.canonical.count(canonical) > 0;
}

// -- with kinds

ItemCounts& UniqueArrayFrame::counts() {
  if (counts_) return *counts_;
  ItemRules rules = *spec_.kinds;
  constexpr uint64_t kMostNeeded = 10'000;
  if (rules.enough() > kMostNeeded) {
    throw TooLarge("an array that needs more than " + std::to_string(kMostNeeded) +
                   " items, which are compared and counted");
  }
  for (uint32_t kind = 0; kind < spec_.prefix.size(); ++kind) {
    uint32_t supply = ItemRules::kUnbounded;
    if (!pool_.alive(body_of(kind))) {
      supply = 0;
    } else if (!rules.repeats) {
      const FewValues& values = few_values(kind);
      if (values.few) supply = static_cast<uint32_t>(values.values.size());
    }
    rules.supply.push_back(supply);
  }
  return counts_.emplace(std::move(rules));
}

std::optional<uint32_t> UniqueArrayFrame::completable_after(const State& s, uint32_t kind, bool again) {
  for (const ItemRules::Choice item : counts().choices(s.count)) {
    if (item.kind != kind) continue;
    const auto next = counts().after(s.count, item, again);
    return next && counts().completable(*next) ? next : std::nullopt;
  }
  return std::nullopt;
}

// Whether what may follow an unknown item depends on which one it was.
bool UniqueArrayFrame::unknown_matters(const State& s) {
  if (two_equal()) return true;
  const auto& choices = counts().choices(s.count);
  return std::any_of(choices.begin(), choices.end(),
                     [&](const auto& item) { return !arena_.open_ended(body_of(item.kind)); });
}

ExprId UniqueArrayFrame::next_items(uint32_t id) {
  const State s = states_[id];
  if (s.vague && unknown_matters(s)) return pool_.key(index_, id, kUnknown);
  ExprId next = counts().complete(s.count) ? spec_.close : ExprPool::kEmptyId;
  const auto choices = counts().choices(s.count);
  for (const ItemRules::Choice item : choices) next = pool_.unite(next, next_item(id, item.kind));
  return next;
}

ExprId UniqueArrayFrame::next_item(uint32_t id, uint32_t kind) {
  const State s = states_[id];
  ExprId item = ExprPool::kEmptyId;
  if (counts().settled(s.count)) {
    const auto next = completable_after(s, kind, false);
    if (!next) return ExprPool::kEmptyId;
    State t = s;
    t.phase = Phase::kNext;
    t.count = *next;
    item = pool_.concat(item_of(kind), pool_.frame(index_, intern(t), depth_));
  } else if (body_of_kind(s, kind) != ExprPool::kEmptyId) {
    item = pool_.key(index_, id, kind);
  }
  return s.phase == Phase::kNext ? pool_.concat(spec_.comma, item) : item;
}

ExprId UniqueArrayFrame::body_of_kind(const State& s, uint32_t kind) {
  const ExprId body = body_of(kind);
  if (completable_after(s, kind, false)) return two_equal() ? body : other_than(s.spellings, body);
  if (!two_equal() || !counts().used(s.count, kind) || !completable_after(s, kind, true)) return ExprPool::kEmptyId;
  ExprId earlier = pool_.intersect(body, s.spellings);
  if (!s.copies.empty()) earlier = pool_.unite(earlier, s.copies[kind]);
  return pool_.alive(earlier) ? earlier : ExprPool::kEmptyId;
}

ExprId UniqueArrayFrame::after_kind(const State& s, uint32_t kind, std::string_view text, const JsonText& value) {
  const std::string canonical = value.canonical();
  const bool again = two_equal() && values_.has(s.values, canonical);
  const auto next = completable_after(s, kind, again);
  if (!next) return ExprPool::kEmptyId;
  State t;
  if (!counts().settled(*next)) {
    t = s;
    remember(t, value, canonical);
    const bool copied = arena_.has_real_letters(body_of(kind)) || spellings_.of(value, canonical) == ExprPool::kEmptyId;
    if (two_equal() && copied) {
      t.copies.resize(spec_.prefix.size(), ExprPool::kEmptyId);
      constexpr std::string_view kBlanks = " \t\n\r";
      const size_t from = text.find_first_not_of(kBlanks), to = text.find_last_not_of(kBlanks);
      const ExprId copy = pool_.concat(spec_.before_item, pool_.literal(text.substr(from, to + 1 - from)));
      t.copies[kind] = pool_.unite(t.copies[kind], copy);
    }
  }
  t.phase = Phase::kNext;
  t.count = *next;
  return pool_.frame(index_, intern(t), depth_);
}

// By the shortest kind that brings the end closer.
ExprId UniqueArrayFrame::onward_with_kinds(uint32_t id, const Lengths& length) {
  const State s = states_[id];
  if (counts().complete(s.count)) return spec_.close;
  ExprId best = ExprPool::kEmptyId;
  uint64_t least = ~uint64_t{0};
  for (const ItemRules::Choice item : counts().choices(s.count)) {
    const auto next = completable_after(s, item.kind, two_equal() && counts().used(s.count, item.kind));
    if (!next || counts().missing(*next) >= counts().missing(s.count)) continue;
    const uint64_t n = length(item_of(item.kind));
    const ExprId e = n < least ? next_item(id, item.kind) : ExprPool::kEmptyId;
    if (e == ExprPool::kEmptyId) continue;
    best = e;
    least = n;
  }
  if (best != ExprPool::kEmptyId || !counts().completable(s.count)) return best;
  return next_item(id, counts().next(s.count).kind);
}

size_t UniqueArrayFrame::memory_bytes() const {
  return states_.size() * (sizeof(State) + 100) + values_.memory_bytes() + after_texts_.size() * 200 +
         spellings_.memory_bytes() + (counts_ ? counts_->memory_bytes() : 0);
}

}  // namespace grammask
