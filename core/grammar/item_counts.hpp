#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

// Whether an array can still be completed, by counting.
//
// Its items are of *kinds*, and every value is of one kind only. So nothing but numbers decides what may follow: how many
// items there are, how many of them each bound has counted, and how many values of each kind are used up. Together
// they are a *profile*. The values must all differ, or two of them must be equal; in that case it matters which kinds were
// used at all.
//
// Completions are searched depth first over profiles, and each profile is decided once. Behind the positions that have
// kinds of their own, an item that no bound needs can be left out of any completion, so none is tried.
//
// Tests: core/tests/item_counts_test.cpp.

namespace grammask {

struct ItemRules {
  static constexpr uint32_t kUnbounded = ~uint32_t{0};
  static constexpr uint32_t kMostCounts = 32;

  struct Choice {
    uint32_t kind;
    uint32_t counted;  // bit set of the bounds that count it
  };
  struct Count {
    uint32_t low, high;
  };
  std::vector<std::vector<Choice>> positions;  // what may stand at the first positions; the last one is for all others
  std::vector<Count> counts;
  std::vector<uint32_t> supply;  // how many values each kind has; kUnbounded where they cannot run out
  uint32_t min_items = 0;
  uint32_t max_items = kUnbounded;
  bool repeats = false;  // two items are equal; else all of them differ

  const std::vector<Choice>& at(uint32_t length) const {
    return positions[length < positions.size() ? length : positions.size() - 1];
  }
  // A kind with so many values cannot run out where a shortest completion needs it.
  uint64_t enough() const;
};

class ItemCounts {
 public:
  static constexpr uint32_t kStart = 0;  // the profile of the empty array

  explicit ItemCounts(ItemRules rules);

  const ItemRules& rules() const { return rules_; }
  const std::vector<ItemRules::Choice>& choices(uint32_t profile) const { return rules_.at(profiles_[profile].length); }
  // The profile after one more item, nullopt if no such item can stand there. again: its value was used before.
  std::optional<uint32_t> after(uint32_t profile, ItemRules::Choice item, bool again);
  bool used(uint32_t profile, uint32_t kind) const;  // whether a value of the kind is known to be used
  bool settled(uint32_t profile) const;  // whether it no longer matters which values are used
  bool complete(uint32_t profile) const;
  // Throws TooLarge if that takes more than 100,000 profiles.
  bool completable(uint32_t profile);
  // About how many items are missing; 0 only if the array is complete.
  uint32_t missing(uint32_t profile) const;
  // The next item of some completion of a completable profile that is not complete.
  ItemRules::Choice next(uint32_t profile) const { return steps_.at(profile); }
  size_t memory_bytes() const { return profiles_.size() * (sizeof(Profile) + 160); }

 private:
  struct Profile {
    uint32_t length = 0;  // clipped where nothing can notice
    bool repeated = false;
    std::vector<uint32_t> counts;  // per bound, clipped likewise
    std::vector<uint32_t> used;  // per kind: values used, where they can run out or be repeated
  };
  enum class Fate : uint8_t { kUnknown, kDead, kAlive };
  uint32_t intern(Profile p);
  bool needed(const Profile& p, ItemRules::Choice item) const;
  bool hopeless(const Profile& p) const;
  std::vector<std::pair<ItemRules::Choice, uint32_t>> successors(uint32_t profile);

  ItemRules rules_;
  std::vector<Profile> profiles_;
  std::vector<Fate> fates_;
  std::unordered_map<uint32_t, ItemRules::Choice> steps_;
  std::unordered_map<std::string, uint32_t> index_;
};

}  // namespace grammask
