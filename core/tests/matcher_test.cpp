#include "matcher/matcher.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "matcher/batch.hpp"

using grammask::Compiled;
using grammask::ExprId;
using grammask::ExprPool;
using grammask::Matcher;

namespace {

constexpr uint32_t kMany = ExprPool::kUnbounded;
const std::vector<std::string> kTokens{"a", "b", "c", "ab", "ba", "aab", "cc", "abab"};
constexpr uint32_t kSpecial = 8, kEnd = 9;

struct Matching {
  std::shared_ptr<grammask::Vocabulary> vocabulary = std::make_shared<grammask::Vocabulary>(
      std::vector<std::optional<std::string>>(kTokens.begin(), kTokens.end()), std::vector<uint32_t>{kEnd}, 10);
  std::shared_ptr<grammask::Arena> arena = vocabulary->arena();
  ExprPool& p = arena->pool();
  const ExprId a = p.byte('a'), b = p.byte('b'), c = p.byte('c');

  std::shared_ptr<Compiled> compile(ExprId root, bool names_tokens = false) {
    return std::make_shared<Compiled>(Compiled{vocabulary, arena, arena->settle(root), names_tokens});
  }
  // The tokens of a mask, as text.
  static std::string show(uint32_t mask) {
    std::string out;
    for (uint32_t id = 0; id < 10; ++id) {
      if (!(mask >> id & 1)) continue;
      if (!out.empty()) out += ' ';
      out += id == kEnd ? "end" : id == kSpecial ? "special" : kTokens[id];
    }
    return out;
  }
  static std::string mask(Matcher& m) {
    uint32_t out = ~0u;
    m.fill_mask(&out);
    return show(out);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Matching, "matcher: recursion of every kind") {
  struct Row {
    std::string name;
    std::function<ExprId(ExprId)> body;  // of a rule, given the rule
    std::string text, allowed;
  };
  const std::vector<Row> rows = {
      {"left", [&](ExprId r) { return p.unite(p.concat(r, a), b); }, "", "b ba"},
      {"left", [&](ExprId r) { return p.unite(p.concat(r, a), b); }, "ba", "a end"},
      {"right", [&](ExprId r) { return p.unite(p.concat(a, r), b); }, "a", "a b ab aab"},
      {"middle", [&](ExprId r) { return p.unite(p.concat(a, p.concat(r, b)), c); }, "aa", "a c"},
      {"middle", [&](ExprId r) { return p.unite(p.concat(a, p.concat(r, b)), c); }, "aacb", "b"},
      {"hidden left", [&](ExprId r) { return p.unite(p.concat(p.optional(c), p.concat(r, a)), b); }, "c", "b c ba cc"},
      {"itself", [&](ExprId r) { return p.unite(p.repeat(r, 1, 3), a); }, "a", "a end"},
      {"empty", [&](ExprId r) { return p.optional(p.concat(r, p.concat(a, r))); }, "a", "a end"},
      {"twice", [&](ExprId r) { return p.unite(p.concat(r, r), p.unite(a, b)); }, "b", "a b ab ba aab abab end"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CAPTURE(row.text);
    const ExprId rule = arena->new_rule(row.name);
    arena->define(rule, row.body(rule));
    Matcher m(compile(rule));
    REQUIRE(m.accept_bytes(row.text));
    CHECK(mask(m) == row.allowed);
  }
}

TEST_CASE_FIXTURE(Matching, "matcher: rules without words are dropped, undefined ones are errors") {
  const ExprId endless = arena->new_rule("endless"), missing = arena->new_rule("missing");
  arena->define(endless, p.concat(a, endless));
  CHECK(arena->settle(endless) == ExprPool::kEmptyId);
  Matcher m(compile(p.unite(p.concat(a, endless), p.literal("ab"))));
  CHECK(mask(m) == "a ab");
  CHECK(m.forced_bytes(10) == "ab");
  CHECK_THROWS_AS(arena->settle(p.concat(a, missing)), std::invalid_argument);
}

TEST_CASE_FIXTURE(Matching, "matcher: special tokens match by id only") {
  Matcher m(compile(p.unite(p.concat(p.token(kSpecial), a), p.literal("ab")), true));
  CHECK(mask(m) == "a ab special");
  CHECK(m.forced_bytes(10) == "");
  Matcher other(m);
  CHECK(m.accept(kSpecial));
  CHECK(mask(m) == "a");
  CHECK(mask(other) == "a ab special");
  CHECK_FALSE(other.accept(kEnd));
  m.rollback(1);
  CHECK(mask(m) == "a ab special");
}

TEST_CASE_FIXTURE(Matching, "matcher: what is not accepted changes nothing") {
  Matcher m(compile(p.repeat(p.call(p.literal("ab")), 1, 2)));
  CHECK_FALSE(m.accept_bytes("abaa"));
  CHECK_FALSE(m.accept(5));
  CHECK_FALSE(m.accept(kEnd));
  CHECK_FALSE(m.accept(kSpecial));
  CHECK_FALSE(m.accept(12345));
  CHECK(m.history_size() == 0);
  CHECK(mask(m) == "a ab abab");
  CHECK(m.accept(7));
  CHECK(mask(m) == "end");
  CHECK(m.accept(kEnd));
  CHECK(m.is_terminated());
  CHECK_FALSE(m.accept(0));
  CHECK_THROWS_AS(m.rollback(3), std::out_of_range);
  m.rollback(2);
  CHECK(mask(m) == "a ab abab");
  CHECK(m.matched_prefix("ababab") == 4);
}

TEST_CASE_FIXTURE(Matching, "matcher: a token forbidden inside a frame may leave it") {
  const ExprId text = p.repeat(p.set(grammask::ByteSet::all()), 0, kMany);
  const ExprId inner = p.intersect(text, p.complement(p.concat(p.literal("aab"), text)));
  Matcher m(compile(p.concat(p.call(inner), p.literal("ab"))));
  REQUIRE(m.accept_bytes("a"));
  // Inside the frame "ab" would complete "aab"; but the frame may end before it.
  CHECK(mask(m) == "a b c ab ba aab cc");
  REQUIRE(m.accept(3));
  CHECK(mask(m) == "end");
}

TEST_CASE_FIXTURE(Matching, "matcher: a chain of frames that may all return") {
  const ExprId rule = arena->new_rule("r");
  arena->define(rule, p.concat(a, p.concat(p.optional(rule), p.optional(b))));
  Matcher m(compile(rule));
  REQUIRE(m.accept_bytes(std::string(2000, 'a')));
  CHECK(mask(m) == "a b ab aab end");
  CHECK(m.is_complete());
  CHECK(m.accept_bytes(std::string(2000, 'b')));
  CHECK(mask(m) == "end");
}

TEST_CASE("matcher: threads that share cold caches agree") {
  Matching one;
  const auto build = [](Matching& f) {
    const ExprId rule = f.arena->new_rule("r");
    f.arena->define(rule, f.p.unite(f.p.concat(f.p.call(f.p.repeat(f.p.unite(f.a, f.b), 1, 40)),
                                               f.p.concat(f.c, f.p.optional(rule))),
                                    f.p.literal("cc")));
    return f.compile(rule);
  };
  const std::string text = "abbaabcabababcbac";
  const auto walk = [&text](const std::shared_ptr<Compiled>& compiled) {
    Matcher m(compiled);
    std::vector<std::string> masks;
    for (const char byte : text) {
      masks.push_back(Matching::mask(m));
      if (!m.accept_bytes(std::string(1, byte))) masks.push_back("refused");
    }
    return masks;
  };
  const auto expected = walk(build(one));
  Matching shared;
  const auto compiled = build(shared);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { wrong += walk(compiled) != expected; });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);

  std::vector<std::unique_ptr<Matcher>> owned;
  std::vector<Matcher*> matchers;
  for (size_t n = 0; n < text.size(); ++n) {
    owned.push_back(std::make_unique<Matcher>(compiled));
    REQUIRE(owned.back()->accept_bytes(text.substr(0, n)));
    matchers.push_back(owned.back().get());
  }
  std::vector<uint32_t> out(matchers.size(), ~0u);
  grammask::fill_masks(matchers, out.data(), 1, 4);
  for (size_t n = 0; n < text.size(); ++n) CHECK(Matching::show(out[n]) == expected[n]);
}
