#include "grammar/json_spellings.hpp"

#include <stdexcept>
#include <vector>

#include "grammar/arena.hpp"
#include "regular/characters.hpp"
#include "regular/decimal.hpp"

namespace grammask {

JsonSpellings::JsonSpellings(Arena& arena) : arena_(arena), pool_(arena.pool()) {}

ExprId JsonSpellings::of(const JsonText& value, const std::string& canonical) {
  auto found = known_.find(canonical);
  if (found == known_.end()) found = known_.emplace(canonical, make(value)).first;
  return found->second;
}

ExprId JsonSpellings::quoted(std::string_view s) {
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
}

ExprId JsonSpellings::make(const JsonText& v) {
  ByteSet blanks;
  for (const char c : {' ', '\t', '\n', '\r'}) blanks.add(static_cast<uint8_t>(c));
  const ExprId blank = pool_.repeat(pool_.set(blanks), 0, ExprPool::kUnbounded);
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
        e = pool_.concat(make(v.items[i]), e);
        if (i > 0) e = pool_.concat(pool_.byte(','), e);
      }
      if (v.items.empty()) e = pool_.concat(blank, e);
      e = pool_.concat(pool_.byte('['), e);
      break;
    case JsonText::Kind::kObject: {
      ObjectSpec spec;
      spec.ordered = false;
      spec.flat = true;
      spec.open = pool_.concat(pool_.byte('{'), blank);
      spec.colon = pool_.concat(blank, pool_.byte(':'));
      spec.comma = pool_.concat(pool_.byte(','), blank);
      spec.close = pool_.byte('}');
      for (const auto& [key, value] : v.members) {
        ObjectMember m;
        m.key = quoted(key);
        m.literal = key;
        m.required = true;
        m.values.push_back({make(value), 0});
        spec.members.push_back(std::move(m));
      }
      e = arena_.object(std::move(spec));
      break;
    }
  }
  return pool_.concat(blank, pool_.concat(e, blank));
}

}  // namespace grammask
