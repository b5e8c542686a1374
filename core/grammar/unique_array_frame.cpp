#include "grammar/unique_array_frame.hpp"

#include <algorithm>

#include "grammar/arena.hpp"
#include "grammar/json_text.hpp"
#include "regular/characters.hpp"
#include "regular/decimal.hpp"

namespace grammask {

UniqueArrayFrame::UniqueArrayFrame(Arena& arena, uint32_t index, UniqueArraySpec spec)
    : arena_(arena), pool_(arena.pool()), index_(index), spec_(std::move(spec)), values_(arena.pool()) {
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
  return states_[id].unspelled || arena_.has_real_letters(body_of(family));
}

uint32_t UniqueArrayFrame::intern(const State& s) {
  std::string key;
  for (const uint32_t v : {static_cast<uint32_t>(s.phase) << 1 | s.vague, s.count, s.values}) {
    key.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
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
  if (spec_.max_items < spec_.min_items) return false;
  for (uint32_t i = 0; i < spec_.min_items && i <= spec_.prefix.size(); ++i) {
    if (!pool_.alive(body_of(family_at(i)))) return false;
  }
  return completable(0, 0, nullptr);
}

// Values, not texts: white space and spellings make texts endless where values are few.
const UniqueArrayFrame::FewValues& UniqueArrayFrame::few_values(uint32_t family) {
  const auto known = few_values_.find(family);
  if (known != few_values_.end()) return known->second;
  // A position with as many values as there are positions can always be filled last. Larger needs are taken on trust.
  constexpr uint32_t kMostCounted = 256;
  const uint32_t enough = std::min(spec_.min_items, kMostCounted);
  FewValues found;
  ExprId e = body_of(family);
  static const FewValues unknown;
  if (!bodies_[family]) return unknown;  // rules are still to be defined
  if (!arena_.has_real_letters(e)) {
    std::string text;
    while (found.values.size() < enough && pool_.shortest(e, text)) {
      const auto value = parse_json_text(text);
      if (!value) break;
      const ExprId all = spellings(*value);
      found.values.push_back({value->canonical(), all});
      e = pool_.intersect(e, pool_.complement(all));
    }
    found.few = found.values.size() < enough;
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

ExprId UniqueArrayFrame::onward(uint32_t id, const Lengths&) {
  const State& s = states_[id];
  return s.phase != Phase::kStart && s.count >= spec_.min_items ? spec_.close : expand(id);
}

uint32_t UniqueArrayFrame::missing(uint32_t id) {
  return spec_.min_items - std::min(spec_.min_items, states_[id].count);
}

ExprId UniqueArrayFrame::key_body(uint32_t id, uint32_t family) {
  const ExprId seen = pool_.unite(states_[id].spellings, refused(id).spellings);
  const ExprId body = body_of(family);
  if (seen == ExprPool::kEmptyId) return body;
  const ExprId left = pool_.intersect(body, pool_.complement(seen));
  return arena_.open_ended(body) || pool_.alive(left) ? left : ExprPool::kEmptyId;
}

ExprId UniqueArrayFrame::after_key(uint32_t id, uint32_t, std::optional<std::string_view> text) {
  if (!text) {
    State t = after(states_[id]);
    t.vague = true;
    return pool_.frame(index_, intern(t), depth_);
  }
  // While a mask is computed, thousands of tokens that end an item and begin the next are read with the same few texts.
  constexpr size_t kMostKept = 512;
  std::string key(reinterpret_cast<const char*>(&id), sizeof(id));
  key += *text;
  const auto known = after_texts_.find(key);
  if (known != after_texts_.end()) return known->second;
  if (after_texts_.size() == kMostKept) after_texts_.clear();
  return after_texts_[std::move(key)] = after_text(id, *text);
}

ExprId UniqueArrayFrame::after_text(uint32_t id, std::string_view text) {
  const auto value = parse_json_text(text);
  if (!value) return ExprPool::kEmptyId;
  State t = after(states_[id]);
  const std::string canonical = value->canonical();
  t.values = values_.add(t.values, 0, canonical);
  auto spelled = spelled_.find(canonical);
  if (spelled == spelled_.end()) spelled = spelled_.emplace(canonical, spellings(*value)).first;
  t.unspelled = t.unspelled || spelled->second == ExprPool::kEmptyId;
  t.spellings = pool_.unite(t.spellings, spelled->second);
  return pool_.frame(index_, intern(t), depth_);
}

bool UniqueArrayFrame::repeats(uint32_t id, std::string_view text) {
  const Refused& also = refused(id);
  if (states_[id].values == 0 && also.canonical.empty()) return false;
  const auto value = parse_json_text(text);
  if (!value) return false;
  const std::string canonical = value->canonical();
  return values_.has(states_[id].values, canonical) || also.canonical.count(canonical) > 0;
}

// Every text that stands for the value, with any white space.
ExprId UniqueArrayFrame::spellings(const JsonText& v) {
  ByteSet blanks;
  for (const char c : {' ', '\t', '\n', '\r'}) blanks.add(static_cast<uint8_t>(c));
  const ExprId blank = pool_.repeat(pool_.set(blanks), 0, ExprPool::kUnbounded);
  const auto quoted = [&](const std::string& s) {
    std::vector<uint32_t> points;
    for (size_t i = 0; i < s.size();) {
      const auto b = static_cast<uint8_t>(s[i]);
      const int width = b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
      uint32_t c = width == 1 ? b : b & (0x7f >> width);
      for (int k = 1; k < width && i + static_cast<size_t>(k) < s.size(); ++k) {
        c = c << 6 | (static_cast<uint8_t>(s[i + static_cast<size_t>(k)]) & 0x3f);
      }
      points.push_back(c);
      i += static_cast<size_t>(width);
    }
    return pool_.concat(pool_.byte('"'), pool_.concat(text(pool_, points, Spelling::kJson), pool_.byte('"')));
  };
  ExprId e = ExprPool::kEpsilonId;
  switch (v.kind) {
    case JsonText::Kind::kNull: e = pool_.literal("null"); break;
    case JsonText::Kind::kTrue: e = pool_.literal("true"); break;
    case JsonText::Kind::kFalse: e = pool_.literal("false"); break;
    case JsonText::Kind::kString: e = quoted(v.scalar); break;
    case JsonText::Kind::kNumber: {
      DecimalSpec spec;
      spec.minimum = spec.maximum = v.number_text();
      try {
        e = pool_.add_machine("decimal " + canonical_key(spec), [&] { return make_decimal_machine(spec); });
      } catch (const std::invalid_argument&) {
        return ExprPool::kEmptyId;  // an exponent of hundreds: see State::unspelled
      }
      break;
    }
    case JsonText::Kind::kArray:
      e = pool_.byte(']');
      for (size_t i = v.items.size(); i-- > 0;) {
        e = pool_.concat(spellings(v.items[i]), e);
        if (i > 0) e = pool_.concat(pool_.byte(','), e);
      }
      if (v.items.empty()) e = pool_.concat(blank, e);
      e = pool_.concat(pool_.byte('['), e);
      break;
    case JsonText::Kind::kObject: {
      ObjectSpec spec;
      spec.ordered = false;
      spec.open = pool_.concat(pool_.byte('{'), blank);
      spec.colon = pool_.concat(blank, pool_.byte(':'));
      spec.comma = pool_.concat(pool_.byte(','), blank);
      spec.close = pool_.byte('}');
      for (const auto& [key, value] : v.members) {
        ObjectMember m;
        m.key = quoted(key);
        m.literal = key;
        m.required = true;
        m.values.push_back({spellings(value), 0});
        spec.members.push_back(std::move(m));
      }
      e = arena_.object(std::move(spec));
      break;
    }
  }
  return pool_.concat(blank, pool_.concat(e, blank));
}

size_t UniqueArrayFrame::memory_bytes() const {
  return states_.size() * (sizeof(State) + 100) + values_.memory_bytes() +
         (after_texts_.size() + spelled_.size()) * 200;
}

}  // namespace grammask
