#include "regular/expr.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regular/characters.hpp"

using grammask::ByteSet;
using grammask::ExprId;
using grammask::ExprPool;

namespace {

constexpr ExprId kEmpty = ExprPool::kEmptyId;
constexpr ExprId kEpsilon = ExprPool::kEpsilonId;
constexpr uint32_t kMany = ExprPool::kUnbounded;

struct Fixture {
  ExprPool p;
  const ExprId a = p.byte('a'), b = p.byte('b'), c = p.byte('c');
  const ExprId ab = p.literal("ab");

  ExprId star(ExprId e) { return p.repeat(e, 0, kMany); }
  ExprId after(ExprId e, std::string_view bytes) {
    for (const char byte : bytes) e = p.derive(e, static_cast<uint8_t>(byte));
    return e;
  }
};

// All words over a, b and c up to a length.
std::vector<std::string> all_words(size_t length) {
  std::vector<std::string> words{""};
  for (size_t begin = 0; words.size() > begin && words[begin].size() < length; ++begin) {
    for (const char byte : {'a', 'b', 'c'}) words.push_back(words[begin] + byte);
  }
  return words;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "expr: equal languages built alike are one node") {
  const std::vector<std::pair<ExprId, ExprId>> equal = {
      {p.concat(kEpsilon, a), a},
      {p.concat(a, kEmpty), kEmpty},
      {p.concat(p.concat(a, b), c), p.concat(a, p.concat(b, c))},
      {p.concat(p.literal("a"), p.literal("bc")), p.literal("abc")},
      {p.unite(a, a), a},
      {p.unite(a, kEmpty), a},
      {p.unite(ab, star(a)), p.unite(star(a), ab)},
      {p.unite(p.unite(ab, star(a)), star(b)), p.unite(ab, p.unite(star(b), star(a)))},
      {p.unite(a, b), p.set(ByteSet::range('a', 'b'))},
      {p.unite(star(a), kEpsilon), star(a)},
      {p.unite(star(a), p.complement(star(a))), p.anything()},
      {p.unite(p.anything(), ab), p.anything()},
      {p.intersect(star(a), p.complement(star(a))), kEmpty},
      {p.intersect(star(a), p.anything()), star(a)},
      {p.intersect(star(a), kEpsilon), kEpsilon},
      {p.intersect(p.repeat(a, 1, kMany), kEpsilon), kEmpty},
      {p.intersect(p.set(ByteSet::range('a', 'b')), p.set(ByteSet::range('b', 'c'))), b},
      {p.intersect(a, p.complement(ab)), a},
      {p.complement(p.complement(ab)), ab},
      {p.repeat(a, 1, 1), a},
      {p.repeat(ab, 0, 0), kEpsilon},
      {p.repeat(kEpsilon, 3, kMany), kEpsilon},
      {p.repeat(kEmpty, 0, 5), kEpsilon},
      {p.repeat(kEmpty, 1, 5), kEmpty},
      {star(star(ab)), star(ab)},
      {star(p.repeat(ab, 1, kMany)), star(ab)},
      {p.unite(p.repeat(ab, 1, 3), p.repeat(ab, 2, 7)), p.repeat(ab, 1, 7)},
      {p.unite(p.repeat(ab, 2, 3), p.repeat(ab, 4, 7)), p.repeat(ab, 2, 7)},
      {p.set(ByteSet{}), kEmpty},
      {p.call(kEpsilon), kEpsilon},
      {p.call(p.call(ab)), p.call(ab)},
  };
  for (size_t i = 0; i < equal.size(); ++i) {
    CAPTURE(i);
    CAPTURE(p.show(equal[i].first));
    CAPTURE(p.show(equal[i].second));
    CHECK(equal[i].first == equal[i].second);
  }
  CHECK(p.unite(p.repeat(ab, 1, 2), p.repeat(ab, 4, 5)) != p.repeat(ab, 1, 5));
}

TEST_CASE_FIXTURE(Fixture, "expr: derivatives") {
  CHECK(after(ab, "a") == b);
  CHECK(after(ab, "b") == kEmpty);
  CHECK(after(star(ab), "a") == p.concat(b, star(ab)));
  CHECK(after(star(ab), "ab") == star(ab));
  CHECK(after(p.repeat(a, 3, 5), "a") == p.repeat(a, 2, 4));
  CHECK(after(p.repeat(a, 2, kMany), "aaa") == star(a));
  CHECK(after(p.complement(ab), "ab") == p.complement(kEpsilon));
  CHECK(after(p.concat(p.optional(a), ab), "a") == p.unite(ab, b));
  CHECK(after(p.intersect(star(p.unite(a, b)), p.complement(ab)), "c") == kEmpty);
}

TEST_CASE_FIXTURE(Fixture, "expr: derivatives by letters range over words of bytes and letters") {
  const ExprId x = p.call(ab), y = p.call(p.literal("ba"));
  const ExprId two = p.intersect(star(p.unite(x, y)), p.concat(star(p.unite(x, y)), x));
  CHECK(p.derive(two, 'a') == kEmpty);
  CHECK(p.nullable(p.derive_letter(two, x)));
  CHECK_FALSE(p.nullable(p.derive_letter(two, y)));
  std::vector<ExprId> heads;
  p.letters(two, heads);
  CHECK(heads.size() == 2);
  CHECK(p.derive_letter(p.concat(x, y), y) == kEmpty);
  CHECK(p.derive_letter(p.repeat(x, 2, 2), x) == x);
  CHECK(p.alive(p.intersect(p.repeat(x, 2, 2), p.complement(p.concat(x, y)))));
  CHECK_FALSE(p.alive(p.intersect(p.repeat(x, 2, 2), p.repeat(x, 3, 4))));
}

TEST_CASE_FIXTURE(Fixture, "expr: boolean operations on all short words") {
  const std::vector<ExprId> parts = {ab,
                                     star(ab),
                                     star(p.unite(a, c)),
                                     p.concat(star(a), p.concat(b, star(c))),
                                     p.repeat(p.unite(a, ab), 2, 3),
                                     p.complement(p.concat(p.anything(), p.concat(c, p.anything()))),
                                     p.anything(),
                                     kEpsilon,
                                     kEmpty};
  const std::vector<std::string> words = all_words(5);
  for (const ExprId x : parts) {
    for (const ExprId y : parts) {
      CAPTURE(p.show(x));
      CAPTURE(p.show(y));
      const ExprId both = p.intersect(x, y), either = p.unite(x, y), only = p.intersect(x, p.complement(y));
      bool any_both = false, any_only = false;
      for (const std::string& w : words) {
        const bool in_x = p.matches(x, w), in_y = p.matches(y, w);
        any_both = any_both || (in_x && in_y);
        any_only = any_only || (in_x && !in_y);
        REQUIRE(p.matches(both, w) == (in_x && in_y));
        REQUIRE(p.matches(either, w) == (in_x || in_y));
        REQUIRE(p.matches(only, w) == (in_x && !in_y));
      }
      // The parts are such that an intersection with any word has one of at most five bytes.
      CHECK(p.alive(both) == any_both);
      CHECK(p.alive(only) == any_only);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "expr: byte classes separate what derivatives tell apart") {
  const ExprId e = p.unite(p.concat(p.set(ByteSet::range('a', 'm')), b),
                           p.intersect(star(p.set(ByteSet::range('k', 'z'))), p.complement(c)));
  ExprPool::Classes classes;
  p.byte_classes(e, classes);
  for (int x = 0; x < 256; ++x) {
    const uint8_t representative = classes.representative[classes.of[static_cast<size_t>(x)]];
    REQUIRE(p.derive(e, static_cast<uint8_t>(x)) == p.derive(e, representative));
  }
}

TEST_CASE_FIXTURE(Fixture, "expr: derivatives by all classes at once are those by each byte") {
  const ExprId letters = p.set(ByteSet::range('a', 'm')), other = p.set(ByteSet::range('k', 'z'));
  const std::vector<ExprId> rows = {
      kEmpty,
      kEpsilon,
      letters,
      p.complement(letters),
      p.concat(p.optional(a), p.concat(letters, b)),
      p.concat(p.concat(ab, other), star(letters)),
      p.repeat(p.unite(ab, other), 2, 5),
      p.unite(std::vector<ExprId>{ab, p.concat(a, c), p.concat(b, letters), star(other), p.literal("zz")}),
      p.intersect(star(p.unite(letters, other)), p.complement(p.concat(ab, p.anything()))),
      p.concat(p.intersect(p.repeat(other, 0, 9), star(p.literal("kl"))), c),
      p.words({"ab", "abc", "b"}),
      p.unite(p.words({"ab", "kk"}), p.concat(other, a)),
  };
  for (const ExprId e : rows) {
    CAPTURE(p.show(e));
    ExprPool::Classes classes;
    p.byte_classes(e, classes);
    ExprPool::refine(classes, {ByteSet::range('c', 'l')});
    std::vector<ExprId> derived;
    p.derive_by_class(e, classes, derived);
    REQUIRE(derived.size() == classes.bytes.size());
    for (int x = 0; x < 256; ++x) {
      const auto byte = static_cast<uint8_t>(x);
      REQUIRE(classes.bytes[classes.of[byte]].has(byte));
      REQUIRE(derived[classes.of[byte]] == p.derive(e, byte));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "expr: emptiness, counting and shortest words") {
  struct Row {
    ExprId expr;
    uint64_t count;  // up to 1000
    std::string shortest;
  };
  const std::vector<Row> rows = {
      {ab, 1, "ab"},
      {kEpsilon, 1, ""},
      {p.repeat(p.unite(a, b), 0, 3), 15, ""},
      {p.repeat(p.unite(a, b), 3, 3), 8, "aaa"},
      {star(a), 1000, ""},
      {p.intersect(p.repeat(p.unite(a, b), 2, 4), p.complement(p.concat(a, p.anything()))), 14, "ba"},
      {p.set(ByteSet::all()), 256, std::string(1, '\0')},
      {p.intersect(star(p.literal("aa")), p.intersect(star(p.literal("aaa")), p.complement(kEpsilon))), 1000, "aaaaaa"},
  };
  for (const Row& row : rows) {
    CAPTURE(p.show(row.expr));
    std::string shortest;
    CHECK(p.count_words(row.expr, 1000) == row.count);
    CHECK(p.shortest(row.expr, shortest));
    CHECK(shortest == row.shortest);
  }
  const ExprId dead = p.intersect(p.concat(star(p.unite(a, b)), a), p.concat(star(p.unite(a, b)), b));
  std::string unused;
  CHECK_FALSE(p.alive(dead));
  CHECK(p.count_words(dead, 10) == 0);
  CHECK_FALSE(p.shortest(dead, unused));
}

TEST_CASE_FIXTURE(Fixture, "expr: large counts stay small") {
  const uint32_t before = p.size();
  ExprId e = p.concat(p.anything(), p.concat(p.repeat(p.unite(a, b), 3, 100000), p.anything()));
  for (int i = 0; i < 1000; ++i) e = p.derive(e, i % 2 ? 'a' : 'b');
  CHECK(p.nullable(e));
  CHECK(p.size() - before < 20000);
}

TEST_CASE_FIXTURE(Fixture, "expr: budgets") {
  p.set_limit(p.size() + 10);
  CHECK_THROWS_AS(p.literal("a text of more than ten bytes"), grammask::TooLarge);
  p.set_limit(1'000'000);
  ExprId e = a;
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100000; ++i) e = p.repeat(p.concat(b, e), 0, 2);
      }(),
      grammask::TooLarge);
}

TEST_CASE_FIXTURE(Fixture, "expr: characters in every spelling") {
  using grammask::Spelling;
  struct Row {
    uint32_t point;
    Spelling spelling;
    std::vector<std::string> in, out;
  };
  const std::vector<Row> rows = {
      {'a', Spelling::kUtf8, {"a"}, {"b", "\\u0061"}},
      {'a', Spelling::kJson, {"a", "\\u0061"}, {"\\a", "\\u061", "A"}},
      {'a', Spelling::kJsonCanonical, {"a"}, {"\\u0061"}},
      {'"', Spelling::kJson, {"\\\"", "\\u0022"}, {"\""}},
      {'"', Spelling::kJsonCanonical, {"\\\""}, {"\"", "\\u0022"}},
      {'\n', Spelling::kJson, {"\\n", "\\u000a", "\\u000A"}, {"\n"}},
      {1, Spelling::kJsonCanonical, {"\\u0001"}, {"\x01"}},
      {'/', Spelling::kJson, {"/", "\\/", "\\u002f"}, {}},
      {0xe9, Spelling::kUtf8, {"\xc3\xa9"}, {"\xe9"}},
      {0x200d, Spelling::kJson, {"\xe2\x80\x8d", "\\u200d", "\\u200D"}, {"\\u200e"}},
      {0x1f600, Spelling::kJson, {"\xf0\x9f\x98\x80", "\\ud83d\\ude00", "\\uD83D\\uDE00"}, {"\\ud83d", "\\u1f600"}},
      {0xdc00, Spelling::kJson, {}, {"\\udc00", "\xed\xb0\x80"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.point);
    const ExprId e = grammask::characters(p, {{row.point, row.point}}, row.spelling);
    for (const std::string& text : row.in) CHECK_MESSAGE(p.matches(e, text), text);
    for (const std::string& text : row.out) CHECK_MESSAGE(!p.matches(e, text), text);
  }
}
