#include "grammar/item_counts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "regular/expr.hpp"

using grammask::ItemCounts;
using grammask::ItemRules;

namespace {

using Value = std::pair<uint32_t, uint32_t>;  // kind and number
constexpr uint32_t kManyValues = 6;           // of a kind that cannot run out in an array of kLongest items
constexpr size_t kLongest = 6;

uint32_t values_of(const ItemRules& rules, uint32_t kind) { return std::min(rules.supply[kind], kManyValues); }

bool fits(const ItemRules& rules, const std::vector<Value>& array) {
  if (array.size() < rules.min_items || array.size() > rules.max_items) return false;
  std::vector<uint32_t> counts(rules.counts.size());
  for (size_t i = 0; i < array.size(); ++i) {
    bool allowed = false;
    for (const auto& item : rules.at(static_cast<uint32_t>(i))) {
      if (item.kind != array[i].first) continue;
      allowed = true;
      for (size_t c = 0; c < counts.size(); ++c) counts[c] += item.counted >> c & 1;
    }
    if (!allowed) return false;
  }
  for (size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] < rules.counts[c].low || counts[c] > rules.counts[c].high) return false;
  }
  const bool differ = std::set<Value>(array.begin(), array.end()).size() == array.size();
  return differ != rules.repeats;
}

// By trying everything that may follow.
bool can_be_completed(const ItemRules& rules, std::vector<Value>& array) {
  if (fits(rules, array)) return true;
  if (array.size() == kLongest) return false;
  for (uint32_t kind = 0; kind < rules.supply.size(); ++kind) {
    bool tried_fresh = false;  // one value that was not used is like any other
    for (uint32_t number = 0; number < values_of(rules, kind); ++number) {
      const Value value{kind, number};
      const bool again = std::find(array.begin(), array.end(), value) != array.end();
      if (again ? !rules.repeats : tried_fresh) continue;
      tried_fresh = tried_fresh || !again;
      array.push_back(value);
      const bool found = can_be_completed(rules, array);
      array.pop_back();
      if (found) return true;
    }
  }
  return false;
}

ItemRules random_rules(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  ItemRules rules;
  rules.repeats = below(3) == 0;
  rules.supply.resize(1 + below(3));
  for (uint32_t& n : rules.supply) n = below(4) == 0 ? ItemRules::kUnbounded : below(3);
  rules.counts.resize(below(3));
  for (auto& [low, high] : rules.counts) {
    low = below(3);
    high = below(2) ? ItemRules::kUnbounded : low + below(2);
  }
  rules.positions.resize(1 + below(3));
  for (auto& position : rules.positions) {
    for (uint32_t kind = 0; kind < rules.supply.size(); ++kind) {
      if (below(4)) position.push_back({kind, below(1u << rules.counts.size())});
    }
  }
  rules.min_items = below(3);
  if (below(2)) rules.max_items = rules.min_items + below(3);
  return rules;
}

}  // namespace

TEST_CASE("item counts: an array is completable exactly if trying everything completes it") {
  std::mt19937 random(3);
  int alive = 0, dead = 0;
  for (int round = 0; round < 6000; ++round) {
    const ItemRules rules = random_rules(random);
    ItemCounts counts(rules);
    std::vector<Value> array;
    uint32_t profile = ItemCounts::kStart;
    for (int item = 0; item <= 3; ++item) {
      CAPTURE(round);
      CAPTURE(item);
      CHECK(counts.complete(profile) == (fits(rules, array) && counts.completable(profile)));
      const bool expected = can_be_completed(rules, array);
      CHECK(counts.completable(profile) == expected);
      ++(expected ? alive : dead);
      // Walking along next() must arrive.
      int steps = 0;
      for (uint32_t p = profile; expected && !counts.complete(p) && steps < 20; ++steps) {
        const auto choice = counts.next(p);
        const auto after = counts.after(p, choice, rules.repeats && counts.used(p, choice.kind));
        REQUIRE(after.has_value());
        p = *after;
      }
      CHECK(steps < 20);
      const auto& choices = counts.choices(profile);
      if (choices.empty()) break;
      const auto choice = choices[random() % choices.size()];
      if (values_of(rules, choice.kind) == 0) break;
      const Value value{choice.kind, static_cast<uint32_t>(random() % values_of(rules, choice.kind))};
      const bool again = std::find(array.begin(), array.end(), value) != array.end();
      if (again && !rules.repeats) break;
      const auto after = counts.after(profile, choice, again);
      if (!after) break;
      array.push_back(value);
      profile = *after;
    }
  }
  CHECK(alive > 2000);
  CHECK(dead > 2000);
}

TEST_CASE("item counts: large counts are decided by arithmetic, not by trying") {
  ItemRules rules;
  rules.supply = {500, 300};
  rules.positions = {{{0, 1}, {1, 0}}};
  rules.counts = {{450, ItemRules::kUnbounded}};
  rules.min_items = 800;
  CHECK(ItemCounts(rules).completable(ItemCounts::kStart));
  rules.min_items = 801;
  CHECK(!ItemCounts(rules).completable(ItemCounts::kStart));
  rules.min_items = 0;
  rules.counts = {{501, ItemRules::kUnbounded}};
  CHECK(!ItemCounts(rules).completable(ItemCounts::kStart));
}

TEST_CASE("item counts: what would take too long is refused, and again when asked again") {
  ItemRules rules;
  rules.supply.assign(12, 3);
  rules.positions.resize(1);
  rules.counts.assign(3, {18, 18});
  // Every kind adds an even number to the sum of the three counts, which must be odd.
  rules.counts[0] = {17, 17};
  for (uint32_t kind = 0; kind < 12; ++kind)
    rules.positions[0].push_back({kind, kind % 3 == 0 ? 3u : kind % 3 == 1 ? 5u : 6u});
  ItemCounts counts(rules);
  CHECK_THROWS_AS(counts.completable(ItemCounts::kStart), grammask::TooLarge);
  CHECK_THROWS_AS(counts.completable(ItemCounts::kStart), grammask::TooLarge);
}
