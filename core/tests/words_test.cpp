#include "regular/words.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "regular/expr.hpp"

using grammask::ByteSet;
using grammask::ExprId;
using grammask::ExprPool;
using grammask::Machine;
using grammask::WordMachine;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

// At most so many: short words over few letters repeat.
std::vector<std::string> random_words(std::mt19937& random, size_t most, size_t longest, unsigned letters) {
  std::set<std::string> words;
  for (size_t i = 0; i < most; ++i) {
    std::string w(random() % (longest + 1), ' ');
    // Bytes at both ends of the range: order must be that of unsigned bytes.
    for (char& c : w) c = static_cast<char>(random() % letters * (255 / (letters - 1)));
    words.insert(w);
  }
  return {words.begin(), words.end()};
}

std::vector<std::string_view> sorted(const std::vector<std::string>& words) {
  auto list = views(words);
  grammask::sort_words(list);
  return list;
}

}  // namespace

TEST_CASE("words: sorting is by unsigned bytes and drops duplicates") {
  const std::vector<std::string> words{"b", "\xff", "a", std::string("a\0", 2), "a", "", "abcdefghi", "abcdefgh"};
  const auto list = sorted(words);
  CHECK(list ==
        std::vector<std::string_view>{"", "a", std::string_view("a\0", 2), "abcdefgh", "abcdefghi", "b", "\xff"});
}

TEST_CASE("words: every prefix, and nothing else, is alive") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto words = random_words(random, 1 + random() % 40, 1 + random() % 6, 2 + random() % 5);
    const auto list = sorted(words);
    WordMachine machine(list);
    std::set<std::string> prefixes;
    for (const std::string& w : words) {
      for (size_t n = 0; n <= w.size(); ++n) prefixes.insert(w.substr(0, n));
    }
    for (const std::string& prefix : prefixes) {
      uint32_t state = machine.start();
      for (const char c : prefix) {
        state = machine.step(state, static_cast<uint8_t>(c));
        REQUIRE(state != Machine::kDead);
      }
      CHECK(machine.accepts(state) == (std::find(words.begin(), words.end(), prefix) != words.end()));
      uint64_t count = 0;
      REQUIRE(machine.count_words(state, count));
      CHECK(count == static_cast<uint64_t>(std::count_if(words.begin(), words.end(), [&](const std::string& w) {
              return w.compare(0, prefix.size(), prefix) == 0;
            })));
      std::string shortest;
      REQUIRE(machine.shortest(state, shortest));
      CHECK(std::find(words.begin(), words.end(), prefix + shortest) != words.end());
      for (const std::string& w : words) {
        if (w.compare(0, prefix.size(), prefix) == 0) CHECK(w.size() >= prefix.size() + shortest.size());
      }
      const ByteSet next = machine.alphabet(state);
      for (int b = 0; b < 256; ++b) {
        const bool alive = prefixes.count(prefix + static_cast<char>(b)) > 0;
        CHECK(next.has(static_cast<uint8_t>(b)) == alive);
        CHECK((machine.step(state, static_cast<uint8_t>(b)) != Machine::kDead) == alive);
      }
    }
  }
}

TEST_CASE("words: equal endings of single words are one state") {
  const std::vector<std::string> words{"one.example", "three.example", "two.example"};
  WordMachine machine(sorted(words));
  const auto after = [&](std::string_view text) {
    uint32_t state = machine.start();
    for (const char c : text) state = machine.step(state, static_cast<uint8_t>(c));
    return state;
  };
  CHECK(after("one") == after("two"));
  CHECK(after("three.ex") == after("one.ex"));
  CHECK(after("t") != after("tw"));
}

TEST_CASE("words: few or many, an expression has the same language") {
  std::mt19937 random(11);
  for (const size_t count : {1u, 5u, 32u, 50u, 600u}) {
    const auto words = random_words(random, count, 7, 3);
    ExprPool pool;
    auto shuffled = views(words);
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    const ExprId e = pool.words(shuffled);
    CHECK(pool.words(views(words)) == e);
    CHECK(pool.count_words(e, 1'000'000) == words.size());
    CHECK(pool.count_words(e, 3) == std::min<size_t>(words.size(), 3));
    std::string shortest;
    REQUIRE(pool.shortest(pool.concat(pool.literal("\""), e), shortest));
    for (const std::string& w : words) {
      CHECK(pool.matches(e, w));
      CHECK(w.size() + 1 >= shortest.size());
    }
    for (int i = 0; i < 500; ++i) {
      const std::string w = random_words(random, 1, 8, 3).front();
      CHECK(pool.matches(e, w) == std::binary_search(words.begin(), words.end(), w));
    }
    // Boolean operations search the automaton.
    const ExprId one = pool.literal(words[words.size() / 2]);
    const ExprId others = pool.intersect(e, pool.complement(one));
    CHECK(pool.count_words(others, 1'000'000) == words.size() - 1);
    CHECK(!pool.alive(pool.intersect(others, one)));
    CHECK(pool.alive(pool.intersect(e, one)));
    CHECK(!pool.alive(pool.intersect(pool.complement(e), one)));
  }
}
