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

bool UniqueArrayFrame::checked(uint32_t, uint32_t family) { return arena_.has_real_letters(body_of(family)); }

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

// Whether min_items can be reached: every position has an item, and the last, repeated one has enough different values.
bool UniqueArrayFrame::possible() {
  for (uint32_t i = 0; i < spec_.min_items; ++i) {
    const uint32_t family = family_at(i);
    const ExprId body = body_of(family);
    if (!pool_.alive(body)) return false;
    if (family < spec_.prefix.size()) continue;
    const uint64_t need = spec_.min_items - i;
    // Values, not texts: white space and spellings make texts endless where values are few. Larger needs are taken on trust.
    constexpr uint64_t kMostCounted = 256;
    if (arena_.has_real_letters(body)) return true;
    return count_values(body, std::min(need, kMostCounted)) >= std::min(need, kMostCounted);
  }
  return true;
}

bool UniqueArrayFrame::possible_if(const std::function<bool(ExprId)>& productive) const {
  const uint32_t positions = std::min(spec_.min_items, static_cast<uint32_t>(spec_.prefix.size()) + 1);
  for (uint32_t i = 0; i < positions; ++i) {
    if (!productive(item_of(family_at(i)))) return false;
  }
  return true;
}

// Different values in a language, counted up to limit: take a shortest text, subtract its value's spellings, repeat.
uint64_t UniqueArrayFrame::count_values(ExprId e, uint64_t limit) {
  uint64_t n = 0;
  std::string text;
  while (n < limit && pool_.shortest(e, text)) {
    const auto value = parse_json_text(text);
    if (!value) break;
    ++n;
    e = pool_.intersect(e, pool_.complement(spellings(*value)));
  }
  return n;
}

ExprId UniqueArrayFrame::expand(uint32_t id) {
  const State s = states_[id];
  if (s.phase == Phase::kStart) {
    State t = s;
    t.phase = Phase::kFirst;
    return pool_.concat(spec_.open, pool_.frame(index_, intern(t)));
  }
  ExprId more = ExprPool::kEmptyId;
  const uint32_t family = family_at(s.count);
  const bool full = spec_.max_items != ExprPool::kUnbounded && s.count >= spec_.max_items;
  if (!full && item_of(family) != ExprPool::kEmptyId && key_body(id, family) != ExprPool::kEmptyId) {
    more = pool_.key(index_, id, family);
    if (s.phase == Phase::kNext) more = pool_.concat(spec_.comma, more);
  }
  return pool_.unite(more, s.count >= spec_.min_items ? spec_.close : ExprPool::kEmptyId);
}

ExprId UniqueArrayFrame::key_body(uint32_t id, uint32_t family) {
  const ExprId seen = states_[id].spellings;
  const ExprId body = body_of(family);
  if (seen == ExprPool::kEmptyId) return body;
  const ExprId left = pool_.intersect(body, pool_.complement(seen));
  return arena_.open_ended(body) || pool_.alive(left) ? left : ExprPool::kEmptyId;
}

ExprId UniqueArrayFrame::after_key(uint32_t id, uint32_t, std::optional<std::string_view> text) {
  State t = after(states_[id]);
  if (!text) {
    t.vague = true;
  } else {
    const auto value = parse_json_text(*text);
    if (!value) return ExprPool::kEmptyId;
    t.values = values_.add(t.values, 0, value->canonical());
    t.spellings = pool_.unite(t.spellings, spellings(*value));
  }
  return pool_.frame(index_, intern(t));
}

bool UniqueArrayFrame::repeats(uint32_t id, std::string_view text) {
  if (states_[id].values == 0) return false;
  const auto value = parse_json_text(text);
  return value && values_.has(states_[id].values, value->canonical());
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
      e = pool_.add_machine("decimal " + canonical_key(spec), [&] { return make_decimal_machine(spec); });
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

size_t UniqueArrayFrame::memory_bytes() const { return states_.size() * (sizeof(State) + 100) + values_.memory_bytes(); }

}  // namespace grammask
