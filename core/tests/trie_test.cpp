#include "vocabulary/trie.hpp"
#include <algorithm>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "vocabulary/vocabulary.hpp"

using grammask::Trie;
using grammask::Vocabulary;

namespace {

using Contents = std::map<std::string, std::multiset<uint32_t>>;

// What a trie holds, read through its arrays alone.
Contents contents(const Trie& trie) {
  Contents found;
  if (trie.empty()) return found;
  std::vector<std::pair<uint32_t, std::string>> work{{0, ""}};
  while (!work.empty()) {
    const auto [node, path] = work.back();
    work.pop_back();
    for (const uint32_t id : trie.own(node)) found[path].insert(id);
    int previous = -1;
    for (uint32_t c = trie.first_child[node]; c < trie.first_child[node] + trie.child_count[node]; ++c) {
      CHECK(c > node);
      CHECK(static_cast<int>(trie.byte[c]) > previous);
      previous = trie.byte[c];
      work.emplace_back(c, path + static_cast<char>(trie.byte[c]));
      CHECK(trie.path(c) == work.back().second);
    }
  }
  return found;
}

uint32_t find(const Trie& trie, const std::string& text) {
  for (uint32_t x = 0; x < trie.size(); ++x) {
    if (trie.path(x) == text) return x;
  }
  throw std::out_of_range(text);
}

}  // namespace

TEST_CASE("trie: texts, equal texts, prefixes of one another, and no texts") {
  CHECK(contents(grammask::build_trie({})).empty());
  const std::string nul("\0\xff", 2);
  const Contents expected = {{"a", {0}}, {"ab", {1, 7}}, {"abc", {2}}, {"b", {3}}, {nul, {4}}, {"\xff", {5}}};
  std::vector<std::pair<std::string_view, uint32_t>> texts{{"", 6}};
  for (const auto& [text, ids] : expected) {
    for (const uint32_t id : ids) texts.emplace_back(text, id);
  }
  CHECK(contents(grammask::build_trie(texts)) == expected);
}

TEST_CASE("trie: all bytes below one node") {
  std::vector<std::string> texts;
  for (int b = 0; b < 256; ++b) texts.push_back(std::string("x") + static_cast<char>(b));
  std::vector<std::pair<std::string_view, uint32_t>> entries;
  for (uint32_t i = 0; i < texts.size(); ++i) entries.emplace_back(texts[i], i);
  const Trie trie = grammask::build_trie(entries);
  CHECK(trie.child_count[find(trie, "x")] == 256);
  CHECK(contents(trie).size() == 256);
}

TEST_CASE("trie: remainders below several nodes are one trie") {
  const Trie trie = grammask::build_trie({{"a\",", 0}, {"ab\",", 1}, {"ab\"", 2}, {"c\"}", 3}, {"c\",x", 4}, {"d", 5}});
  const std::vector<uint32_t> nodes{find(trie, "a\""), find(trie, "ab\""), find(trie, "c\"")};
  const auto remainders = grammask::build_remainder_trie(trie, nodes);
  // Tokens that end at the nodes themselves have no remainder.
  const Contents expected = {{",", {0, 1}}, {"}", {3}}, {",x", {4}}};
  CHECK(contents(remainders.trie) == expected);
  // Those of one first byte are a part of it.
  const auto commas = grammask::build_remainder_trie(trie, nodes, ',');
  CHECK(contents(commas.trie) == Contents{{",", {0, 1}}, {",x", {4}}});
  CHECK(grammask::build_remainder_trie(trie, nodes, 'y').trie.empty());
}

TEST_CASE("trie: whether whole characters lie below a node") {
  const auto whole = [](const std::vector<std::string>& texts) {
    std::vector<std::pair<std::string_view, uint32_t>> entries;
    for (uint32_t i = 0; i < texts.size(); ++i) entries.emplace_back(texts[i], i);
    return grammask::build_trie(entries).whole_below(0);
  };
  // The first and last characters of each length, and around the surrogates.
  const std::vector<std::string> characters = {"a",
                                               "\x7f",
                                               "\xc2\x80",
                                               "\xdf\xbf",
                                               "\xe0\xa0\x80",
                                               "\xed\x9f\xbf",
                                               "\xee\x80\x80",
                                               "\xef\xbf\xbf",
                                               "\xf0\x90\x80\x80",
                                               "\xf3\xbf\xbf\xbf",
                                               "\xf4\x8f\xbf\xbf"};
  CHECK(whole(characters));
  for (const std::string& c : characters) {
    CAPTURE(c);
    for (size_t n = 1; n < c.size(); ++n) {
      CHECK(whole({"x" + c.substr(0, n)}));
      CHECK_FALSE(whole({"x" + c.substr(0, n) + "x"}));
    }
    CHECK_FALSE(whole({c, "\x80"}));
  }
  for (const std::string bad : {"\xc1\xbf", "\xe0\x9f", "\xed\xa0", "\xf0\x8f", "\xf4\x90", "\xf5\x80", "\xff"}) {
    CAPTURE(bad);
    CHECK_FALSE(whole({bad}));
  }
}

TEST_CASE("vocabulary: what is text and what is not") {
  const Vocabulary v({"a", std::nullopt, "", "</s>", "ab"}, {3}, 8);
  CHECK(v.token(0) == "a");
  for (const uint32_t id : {1u, 2u, 3u, 5u, 7u, 8u, 1000000u}) CHECK_FALSE(v.token(id));
  CHECK(v.token(4) == "ab");
  CHECK(v.words() == 1);
  CHECK(v.longest() == 2);
  CHECK(v.longer_than(16).empty());
  CHECK(v.tokenize_greedy("abaab", false) == std::vector<uint32_t>{4, 0, 4});
  CHECK(v.tokenize_greedy("abxa", false) == std::vector<uint32_t>{4});
  // The last a may still become ab.
  CHECK(v.tokenize_greedy("aba", true) == std::vector<uint32_t>{4});
  const Vocabulary lengths({std::string(17, 'a'), std::string(30, 'b'), std::string(16, 'c'), std::string(20, 'd')}, {},
                           4);
  CHECK(std::ranges::equal(lengths.longer_than(16), std::vector<uint32_t>{1, 3, 0}));
  CHECK(std::ranges::equal(lengths.longer_than(20), std::vector<uint32_t>{1}));
  CHECK_THROWS_AS(Vocabulary({"a"}, {1}, 1), std::invalid_argument);
  CHECK_THROWS_AS(Vocabulary({"a", "b"}, {}, 1), std::invalid_argument);
}
