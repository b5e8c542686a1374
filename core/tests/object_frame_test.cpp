#include "grammar/object_frame.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "matcher/matcher.hpp"

using grammask::ExprId;
using grammask::ExprPool;
using grammask::Matcher;
using grammask::ObjectMember;
using grammask::ObjectSpec;

namespace {

std::shared_ptr<grammask::Vocabulary> byte_vocabulary() {
  std::vector<std::optional<std::string>> tokens;
  for (int b = 0; b < 256; ++b) tokens.emplace_back(std::string(1, static_cast<char>(b)));
  return std::make_shared<grammask::Vocabulary>(std::move(tokens), std::vector<uint32_t>{}, 256);
}

struct Objects {
  std::shared_ptr<grammask::Vocabulary> vocabulary = byte_vocabulary();
  std::shared_ptr<grammask::Arena> arena = vocabulary->arena();
  ExprPool& p = arena->pool();
  const ExprId one = p.call(p.byte('1')), two = p.call(p.byte('2'));

  ObjectMember literal(const std::string& name, bool required, ExprId value = 0, uint64_t fulfils = 0) {
    ObjectMember m;
    m.literal = '"' + name + '"';
    m.key = p.literal(m.literal);
    m.required = required;
    m.values.push_back({value ? value : one, fulfils});
    return m;
  }
  // Keys of one letter out of `letters`.
  ObjectMember family(const std::string& letters, uint64_t fulfils = 0) {
    grammask::ByteSet set;
    for (const char c : letters) set.add(static_cast<uint8_t>(c));
    ObjectMember m;
    m.family = true;
    m.key = p.concat(p.byte('"'), p.concat(p.set(set), p.byte('"')));
    m.values.push_back({one, fulfils});
    return m;
  }
  ObjectSpec spec(std::vector<ObjectMember> members, bool ordered) {
    ObjectSpec s;
    s.members = std::move(members);
    s.open = p.byte('{');
    s.colon = p.byte(':');
    s.comma = p.byte(',');
    s.close = p.byte('}');
    s.ordered = ordered;
    return s;
  }
  bool empty(ObjectSpec s) { return arena->settle(arena->object(std::move(s))) == ExprPool::kEmptyId; }
  // How much of a text can be read, and whether it is then complete ("!").
  std::string read(const ObjectSpec& s, const std::string& text) {
    const ExprId root = arena->settle(arena->object(s));
    Matcher m(std::make_shared<grammask::Compiled>(grammask::Compiled{vocabulary, arena, root, false}));
    const size_t n = m.matched_prefix(text);
    REQUIRE(m.accept_bytes(text.substr(0, n)));
    return text.substr(0, n) + (m.is_complete() ? "!" : "");
  }
  std::string next(const ObjectSpec& s, const std::string& text) {
    const ExprId root = arena->settle(arena->object(s));
    Matcher m(std::make_shared<grammask::Compiled>(grammask::Compiled{vocabulary, arena, root, false}));
    REQUIRE(m.accept_bytes(text));
    return m.next_bytes();
  }
};

}  // namespace

TEST_CASE_FIXTURE(Objects, "object: order, required members, each key once") {
  const auto ordered = spec({literal("a", true), literal("b", false), literal("c", true), family("xy")}, true);
  const auto any = spec({literal("a", true), literal("b", false), literal("c", true), family("xy")}, false);
  struct Row {
    std::string text, ordered, any;
  };
  for (const Row& row : std::vector<Row>{
           {R"({"a":1,"b":1,"c":1})", R"({"a":1,"b":1,"c":1}!)", R"({"a":1,"b":1,"c":1}!)"},
           {R"({"a":1,"c":1,"y":1,"x":1})", R"({"a":1,"c":1,"y":1,"x":1}!)", R"({"a":1,"c":1,"y":1,"x":1}!)"},
           {R"({"c":1,"a":1})", R"({")", R"({"c":1,"a":1}!)"},
           {R"({"a":1})", R"({"a":1)", R"({"a":1)"},
           {R"({"a":1,"a")", R"({"a":1,")", R"({"a":1,")"},
           {R"({"x":1,"a":1,"c":1})", R"({")", R"({"x":1,"a":1,"c":1}!)"},
           {R"({"a":1,"c":1,"x":1,"x":1})", R"({"a":1,"c":1,"x":1,")", R"({"a":1,"c":1,"x":1,")"},
           {R"({"a":2})", R"({"a":)", R"({"a":)"},
           {R"({})", R"({)", R"({)"},
       }) {
    CAPTURE(row.text);
    CHECK(read(ordered, row.text) == row.ordered);
    CHECK(read(any, row.text) == row.any);
  }
}

TEST_CASE_FIXTURE(Objects, "object: a key is offered only where the object can be completed") {
  auto s = spec({literal("L", false), family("xy")}, true);
  s.min_members = 3;
  CHECK(next(s, "{\"") == "L");
  CHECK(next(s, "{\"L\":1,\"x\":1") == ",");
  CHECK(next(s, "{\"L\":1,\"x\":1,\"") == "y");
  CHECK(next(s, "{\"L\":1,\"x\":1,\"y\":1") == "}");
  s.min_members = 4;
  CHECK(empty(s));
  s.min_members = 0;
  s.max_members = 1;
  CHECK(next(s, "{\"x\":1") == "}");
  s.max_members = 0;
  CHECK(next(s, "{") == "}");
}

TEST_CASE_FIXTURE(Objects, "object: room is kept for required members") {
  auto s = spec({literal("a", true), literal("b", false), family("xyz")}, false);
  s.max_members = 2;
  CHECK(next(s, "{\"") == "abxyz");
  CHECK(next(s, "{\"x\":1,\"") == "a");
  CHECK(next(s, "{\"a\":1,\"x\":1") == "}");
}

TEST_CASE_FIXTURE(Objects, "object: obligations") {
  auto s = spec({literal("a", true, one, 1), literal("b", false, two, 6), family("x", 4)}, true);
  s.members[0].values.push_back({two, 0});
  s.obligations = 2;
  CHECK(next(s, "{\"a\":") == "1");
  CHECK(next(s, "{\"a\":1,\"") == "b");
  CHECK(next(s, "{\"a\":1,\"b\":2") == ",}");
  s.obligations = 3;
  s.max_members = 1;
  CHECK(empty(s));
  s.max_members = ExprPool::kUnbounded;
  s.obligations = grammask::ObjectFrame::kMaxObligations + 1;
  CHECK_THROWS_AS(arena->object(s), grammask::TooLarge);
}

TEST_CASE_FIXTURE(Objects, "object: dependencies") {
  auto s = spec({literal("a", false), literal("b", false), literal("c", false)}, true);
  s.dependencies = {{2, {0}}, {0, {1}}};
  CHECK(read(s, R"({"c":1})") == R"({")");
  CHECK(read(s, R"({"a":1})") == R"({"a":1)");
  CHECK(read(s, R"({"a":1,"b":1,"c":1})") == R"({"a":1,"b":1,"c":1}!)");
  CHECK(read(s, R"({"b":1})") == R"({"b":1}!)");
  s.ordered = false;
  CHECK(read(s, R"({"c":1,"b":1,"a":1})") == R"({"c":1,"b":1,"a":1}!)");
  CHECK(read(s, R"({"c":1,"a":1})") == R"({"c":1,"a":1)");
  s.dependencies = {{0, {3}}};
  CHECK_THROWS_AS(arena->object(s), std::invalid_argument);
}

TEST_CASE_FIXTURE(Objects, "object: values without words") {
  const ExprId dead = p.intersect(p.concat(p.anything(), p.byte('a')), p.concat(p.anything(), p.byte('b')));
  auto s = spec({literal("a", true, dead)}, true);
  CHECK(empty(s));
  s.members[0].required = false;
  CHECK(next(s, "{") == "}");
}
