#include "regular/characters.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

// Character classes as byte expressions.
//
// A class is a union of *sequences* of byte sets: UTF-8 splits a range of code points into at most a few sequences of
// byte ranges (the standard construction, see RFC 3629), and \uXXXX into sequences of hexadecimal digits the same way.
// The sequences are joined into a trie with shared tails, so that the expression is deterministic.
//
// Tests: tests/core/test_exactness.py.

namespace grammask {

namespace {

using Sequence = std::vector<ByteSet>;

ByteSet bytes(uint32_t low, uint32_t high) {
  return ByteSet::range(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
}

// Digits of a fixed-width positional code (UTF-8 continuation bytes, hexadecimal digits), most significant first.
// Splits [low, high] into sequences of digit ranges.
template <typename MakeSet>
void split_digits(uint32_t low, uint32_t high, int width, int bits, MakeSet make, Sequence& prefix,
                  std::vector<Sequence>& out) {
  if (width == 0) {
    out.push_back(prefix);
    return;
  }
  const int shift = bits * (width - 1);
  const uint32_t rest = (1u << shift) - 1;
  uint32_t first = low >> shift, last = high >> shift;
  const auto recurse = [&](uint32_t a, uint32_t b, uint32_t lo, uint32_t hi) {
    prefix.push_back(make(a, b, width));
    split_digits(lo, hi, width - 1, bits, make, prefix, out);
    prefix.pop_back();
  };
  if (first == last) return recurse(first, last, low & rest, high & rest);
  if ((low & rest) != 0) {
    recurse(first, first, low & rest, rest);
    ++first;
  }
  const bool cut_last = (high & rest) != rest;
  if (cut_last) --last;
  if (first <= last && last != 0xffffffffu) recurse(first, last, 0, rest);
  if (cut_last) recurse(high >> shift, high >> shift, 0, high & rest);
}

void utf8_sequences(uint32_t low, uint32_t high, std::vector<Sequence>& out) {
  struct Length {
    uint32_t low, high;
    int width;
    uint32_t lead;
  };
  static constexpr Length lengths[] = {
      {0x00, 0x7f, 1, 0x00}, {0x80, 0x7ff, 2, 0xc0}, {0x800, 0xffff, 3, 0xe0}, {0x10000, 0x10ffff, 4, 0xf0}};
  for (const Length& len : lengths) {
    const uint32_t a = std::max(low, len.low), b = std::min(high, len.high);
    if (a > b) continue;
    if (len.width == 1) {
      out.push_back({bytes(a, b)});
      continue;
    }
    Sequence prefix;
    split_digits(
        a, b, len.width, 6,
        [&](uint32_t x, uint32_t y, int width) {
          return width == len.width ? bytes(len.lead | x, len.lead | y) : bytes(0x80 | x, 0x80 | y);
        },
        prefix, out);
  }
}

ByteSet hex_digits(uint32_t low, uint32_t high) {
  ByteSet s;
  for (uint32_t d = low; d <= high; ++d) {
    if (d < 10) {
      s.add(static_cast<uint8_t>('0' + d));
    } else {
      s.add(static_cast<uint8_t>('a' + d - 10));
      s.add(static_cast<uint8_t>('A' + d - 10));
    }
  }
  return s;
}

void append_byte(Sequence& s, char c) { s.push_back(ByteSet::single(static_cast<uint8_t>(c))); }

// \uXXXX for a range below U+10000.
void hex_sequences(uint32_t low, uint32_t high, const Sequence& before, std::vector<Sequence>& out) {
  Sequence prefix = before;
  append_byte(prefix, '\\');
  append_byte(prefix, 'u');
  split_digits(low, high, 4, 4, [](uint32_t x, uint32_t y, int) { return hex_digits(x, y); }, prefix, out);
}

void surrogate_sequences(uint32_t low, uint32_t high, std::vector<Sequence>& out) {
  low -= 0x10000;
  high -= 0x10000;
  uint32_t first = low >> 10, last = high >> 10;
  const auto emit = [&](uint32_t a, uint32_t b, uint32_t lo, uint32_t hi) {
    std::vector<Sequence> leads;
    hex_sequences(0xd800 + a, 0xd800 + b, {}, leads);
    for (const Sequence& lead : leads) hex_sequences(0xdc00 + lo, 0xdc00 + hi, lead, out);
  };
  if (first == last) return emit(first, last, low & 0x3ff, high & 0x3ff);
  if (low & 0x3ff) {
    emit(first, first, low & 0x3ff, 0x3ff);
    ++first;
  }
  const bool cut_last = (high & 0x3ff) != 0x3ff;
  if (first + (cut_last ? 1 : 0) <= last) emit(first, cut_last ? last - 1 : last, 0, 0x3ff);
  if (cut_last) emit(last, last, 0, high & 0x3ff);
}

char short_escape(uint32_t c) {
  switch (c) {
    case 0x08: return 'b';
    case 0x09: return 't';
    case 0x0a: return 'n';
    case 0x0c: return 'f';
    case 0x0d: return 'r';
    case '"': return '"';
    case '\\': return '\\';
    case '/': return '/';
    default: return 0;
  }
}

// A trie of the sequences, built backwards from sorted groups; equal tails under different first sets are merged.
ExprId join(ExprPool& pool, std::vector<const Sequence*> sequences, size_t depth) {
  bool ends = false;
  // Refine first sets to disjoint pieces: one representative byte per piece is enough to group by.
  std::map<uint8_t, std::vector<const Sequence*>> by_byte;
  for (const Sequence* s : sequences) {
    if (s->size() == depth) {
      ends = true;
    } else {
      (*s)[depth].for_each([&](uint8_t b) { by_byte[b].push_back(s); });
    }
  }
  std::map<std::vector<const Sequence*>, ByteSet> groups;
  for (const auto& [b, members] : by_byte) groups[members].add(b);
  std::map<ExprId, ByteSet> tails;
  for (const auto& [members, set] : groups) {
    ByteSet& all = tails[join(pool, members, depth + 1)];
    all = all | set;
  }
  std::vector<ExprId> options;
  if (ends) options.push_back(ExprPool::kEpsilonId);
  for (const auto& [tail, set] : tails) options.push_back(pool.concat(pool.set(set), tail));
  return pool.unite(options);
}

ExprId join(ExprPool& pool, const std::vector<Sequence>& sequences) {
  std::vector<const Sequence*> pointers;
  for (const Sequence& s : sequences) pointers.push_back(&s);
  return join(pool, std::move(pointers), 0);
}

}  // namespace

CodePointRanges normalize(CodePointRanges ranges) {
  CodePointRanges cut;
  for (auto [low, high] : ranges) {
    high = std::min<uint32_t>(high, 0x10ffff);
    if (low > high) continue;
    if (low < 0xd800) cut.emplace_back(low, std::min<uint32_t>(high, 0xd7ff));
    if (high > 0xdfff) cut.emplace_back(std::max<uint32_t>(low, 0xe000), high);
  }
  std::sort(cut.begin(), cut.end());
  CodePointRanges merged;
  for (const auto& r : cut) {
    if (!merged.empty() && r.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, r.second);
    } else {
      merged.push_back(r);
    }
  }
  return merged;
}

ExprId characters(ExprPool& pool, const CodePointRanges& given, Spelling spelling) {
  const CodePointRanges ranges = normalize(given);
  std::vector<Sequence> sequences;
  const auto has = [&](uint32_t c) {
    for (const auto& [low, high] : ranges) {
      if (low <= c && c <= high) return true;
    }
    return false;
  };
  if (spelling == Spelling::kUtf8) {
    for (const auto& [low, high] : ranges) utf8_sequences(low, high, sequences);
    return join(pool, sequences);
  }
  // Raw where JSON allows raw.
  static constexpr std::pair<uint32_t, uint32_t> raw[] = {
      {0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0xd7ff}, {0xe000, 0x10ffff}};
  for (const auto& [low, high] : ranges) {
    for (const auto& [a, b] : raw) {
      if (std::max(low, a) <= std::min(high, b)) utf8_sequences(std::max(low, a), std::min(high, b), sequences);
    }
  }
  for (const uint32_t c : {0x08u, 0x09u, 0x0au, 0x0cu, 0x0du, 0x22u, 0x2fu, 0x5cu}) {
    if (!has(c) || (c == '/' && spelling == Spelling::kJsonCanonical)) continue;
    Sequence s;
    append_byte(s, '\\');
    append_byte(s, short_escape(c));
    sequences.push_back(s);
  }
  if (spelling == Spelling::kJsonCanonical) {
    for (uint32_t c = 0; c < 0x20; ++c) {
      if (!has(c) || short_escape(c)) continue;
      Sequence s;
      for (const char x : {'\\', 'u', '0', '0', c < 0x10 ? '0' : '1', "0123456789abcdef"[c & 15]}) append_byte(s, x);
      sequences.push_back(s);
    }
  } else {
    for (const auto& [low, high] : ranges) {
      if (low < 0x10000) hex_sequences(low, std::min<uint32_t>(high, 0xffff), {}, sequences);
      if (high >= 0x10000) surrogate_sequences(std::max<uint32_t>(low, 0x10000), high, sequences);
    }
  }
  return join(pool, sequences);
}

ExprId text(ExprPool& pool, const std::vector<uint32_t>& code_points, Spelling spelling) {
  if (spelling == Spelling::kJson) {
    ExprId e = ExprPool::kEpsilonId;
    for (size_t i = code_points.size(); i-- > 0;) {
      ExprId& known = pool.memo(uint64_t{code_points[i]} << 8 | static_cast<uint64_t>(spelling));
      if (!known) known = characters(pool, {{code_points[i], code_points[i]}}, spelling);
      e = pool.concat(known, e);
      if (e == ExprPool::kEmptyId) throw std::invalid_argument("the text holds a surrogate code point");
    }
    return e;
  }
  std::string out;
  for (const uint32_t c : code_points) {
    if ((c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
      throw std::invalid_argument("the text holds a surrogate code point");
    if (spelling == Spelling::kJsonCanonical && (c < 0x20 || c == '"' || c == '\\')) {
      out.push_back('\\');
      if (const char s = short_escape(c)) {
        out.push_back(s);
      } else {
        out += "u00";
        out.push_back(c < 0x10 ? '0' : '1');
        out.push_back("0123456789abcdef"[c & 15]);
      }
    } else if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      out.push_back(static_cast<char>(0xc0 | c >> 6));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
      out.push_back(static_cast<char>(0xe0 | c >> 12));
      out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    } else {
      out.push_back(static_cast<char>(0xf0 | c >> 18));
      out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    }
  }
  return pool.literal(out);
}

}  // namespace grammask
