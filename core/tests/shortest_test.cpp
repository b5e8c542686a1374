#include "grammar/shortest.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "matcher/matcher.hpp"

using grammask::Compiled;
using grammask::ExprId;
using grammask::Matcher;

namespace {

const std::vector<std::string> kTokens{"a", "b", "c", "ab", "bcc", "{", "}", "\"", ":", ",", "1"};
constexpr uint32_t kSpecial = 11, kEnd = 12;

struct Completing {
  std::shared_ptr<grammask::Vocabulary> vocabulary = std::make_shared<grammask::Vocabulary>(
      std::vector<std::optional<std::string>>(kTokens.begin(), kTokens.end()), std::vector<uint32_t>{kEnd}, 13);
  std::shared_ptr<grammask::Arena> arena = vocabulary->arena();
  grammask::ExprPool& p = arena->pool();

  // The completion of a text, tokens separated by spaces.
  std::string complete(ExprId root, const std::string& text) {
    const auto compiled = std::make_shared<Compiled>(Compiled{vocabulary, arena, arena->settle(root), true});
    Matcher m(compiled);
    if (!m.accept_bytes(text)) return "refused";
    const auto tokens = m.shortest_completion();
    if (!tokens) return "none";
    std::string out;
    for (const uint32_t id : *tokens) {
      if (!out.empty()) out += ' ';
      out += id == kSpecial ? "special" : kTokens[id];
    }
    return out;
  }
};

}  // namespace

TEST_CASE_FIXTURE(Completing, "shortest: unions, bytes without a token, and special tokens") {
  const ExprId short_way = p.literal("zz"), long_way = p.literal("abbcc");
  CHECK(complete(p.unite(short_way, long_way), "") == "ab bcc");
  CHECK(complete(p.concat(p.literal("a"), p.token(kSpecial)), "a") == "special");
  CHECK(complete(p.literal("az"), "a") == "none");
}

TEST_CASE_FIXTURE(Completing, "shortest: rules that may derive nothing do not go in circles") {
  const ExprId r = arena->new_rule("r"), s = arena->new_rule("s");
  arena->define(r, p.unite(s, p.concat(r, p.optional(p.literal("a")))));
  arena->define(s, p.unite(r, p.kEpsilonId));
  CHECK(complete(p.concat(r, p.literal("b")), "") == "b");
  CHECK(complete(p.concat(r, p.literal("b")), "aa") == "b");
}

TEST_CASE_FIXTURE(Completing, "shortest: optional members that a count asks for come before the required one") {
  grammask::ObjectSpec spec;
  spec.open = p.literal("{");
  spec.close = p.literal("}");
  spec.colon = p.literal(":");
  spec.comma = p.literal(",");
  spec.min_members = 2;
  for (const auto& [key, required] : {std::pair{"\"b\"", false}, {"\"a\"", true}}) {
    grammask::ObjectMember m;
    m.literal = key;
    m.key = p.literal(key);
    m.required = required;
    m.values.push_back({p.literal("1"), 0});
    spec.members.push_back(m);
  }
  CHECK(complete(arena->object(spec), "") == "{ \" b \" : 1 , \" a \" : 1 }");
}
