#include "grammar/item_counts.hpp"

#include <algorithm>

#include "regular/expr.hpp"

namespace grammask {

// Every item of a shortest completion stands at one of the first positions, brings the array closer to its least length,
// or is counted by a bound that needs it, which has then counted fewer than it needs.
uint64_t ItemRules::enough() const {
  const uint64_t width = positions.size() - 1;
  uint64_t sum = std::max<uint64_t>(width, min_items) + width;
  for (const Count& c : counts) sum += 2 * uint64_t{c.low};
  return sum;
}

ItemCounts::ItemCounts(ItemRules rules) : rules_(std::move(rules)) {
  Profile start;
  start.counts.resize(rules_.counts.size());
  start.used.resize(rules_.supply.size());
  intern(std::move(start));
}

uint32_t ItemCounts::intern(Profile p) {
  std::string key;
  const auto append = [&](uint32_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  append(p.length);
  append(p.repeated);
  for (const uint32_t n : p.counts) append(n);
  for (const uint32_t n : p.used) append(n);
  const auto [it, inserted] = index_.try_emplace(std::move(key), static_cast<uint32_t>(profiles_.size()));
  if (inserted) {
    profiles_.push_back(std::move(p));
    fates_.push_back(Fate::kUnknown);
  }
  return it->second;
}

std::optional<uint32_t> ItemCounts::after(uint32_t profile, ItemRules::Choice item, bool again) {
  if (rules_.supply[item.kind] == 0) return std::nullopt;
  Profile p = profiles_[profile];
  if (rules_.max_items == ItemRules::kUnbounded) {
    const auto width = static_cast<uint32_t>(rules_.positions.size() - 1);
    p.length = std::min(p.length + 1, std::max(rules_.min_items, width));
  } else if (p.length++ >= rules_.max_items) {
    return std::nullopt;
  }
  for (size_t i = 0; i < rules_.counts.size(); ++i) {
    if (!(item.counted >> i & 1)) continue;
    const auto& [low, high] = rules_.counts[i];
    if (high == ItemRules::kUnbounded) {
      p.counts[i] = std::min(p.counts[i] + 1, low);
    } else if (p.counts[i]++ >= high) {
      return std::nullopt;
    }
  }
  uint32_t& used = p.used[item.kind];
  if (rules_.repeats) {
    p.repeated = p.repeated || again;
    if (p.repeated) {
      std::fill(p.used.begin(), p.used.end(), 0);
    } else {
      used = 1;
    }
  } else if (rules_.supply[item.kind] != ItemRules::kUnbounded && used++ >= rules_.supply[item.kind]) {
    return std::nullopt;
  }
  return intern(std::move(p));
}

bool ItemCounts::used(uint32_t profile, uint32_t kind) const { return profiles_[profile].used[kind] > 0; }

bool ItemCounts::settled(uint32_t profile) const { return profiles_[profile].repeated; }

bool ItemCounts::complete(uint32_t profile) const { return missing(profile) == 0; }

uint32_t ItemCounts::missing(uint32_t profile) const {
  const Profile& p = profiles_[profile];
  uint64_t items = rules_.min_items - std::min(rules_.min_items, p.length);
  for (size_t i = 0; i < rules_.counts.size(); ++i) {
    items = std::max<uint64_t>(items, rules_.counts[i].low - std::min(rules_.counts[i].low, p.counts[i]));
  }
  if (rules_.repeats && !p.repeated) {
    const bool any = std::any_of(p.used.begin(), p.used.end(), [](uint32_t n) { return n > 0; });
    items = std::max<uint64_t>(items, any ? 1 : 2);
  }
  return static_cast<uint32_t>(items);
}

bool ItemCounts::needed(const Profile& p, ItemRules::Choice item) const {
  if (p.length + 1 < rules_.positions.size() || p.length < rules_.min_items) return true;
  if (rules_.repeats && !p.repeated) return true;
  for (size_t i = 0; i < rules_.counts.size(); ++i) {
    if ((item.counted >> i & 1) && p.counts[i] < rules_.counts[i].low) return true;
  }
  return false;
}

// Whether the kinds that are left cannot even make up for what is missing.
bool ItemCounts::hopeless(const Profile& p) const {
  if (rules_.repeats) return false;
  const auto short_of = [&](uint64_t wanted, auto counts) {
    std::vector<bool> seen(rules_.supply.size(), false);
    uint64_t left = 0;
    for (size_t i = std::min<size_t>(p.length, rules_.positions.size() - 1); i < rules_.positions.size(); ++i) {
      for (const ItemRules::Choice item : rules_.positions[i]) {
        if (seen[item.kind] || !counts(item)) continue;
        seen[item.kind] = true;
        if (rules_.supply[item.kind] == ItemRules::kUnbounded) return false;
        left += rules_.supply[item.kind] - p.used[item.kind];
      }
    }
    return left < wanted;
  };
  if (p.length < rules_.min_items && short_of(rules_.min_items - p.length, [](auto) { return true; })) return true;
  for (size_t i = 0; i < rules_.counts.size(); ++i) {
    const uint32_t low = rules_.counts[i].low;
    if (p.counts[i] < low && short_of(low - p.counts[i], [&](auto item) { return item.counted >> i & 1; })) return true;
  }
  return false;
}

// The best one last.
std::vector<std::pair<ItemRules::Choice, uint32_t>> ItemCounts::successors(uint32_t profile) {
  std::vector<std::pair<ItemRules::Choice, uint32_t>> found;
  for (const ItemRules::Choice item : choices(profile)) {
    if (!needed(profiles_[profile], item)) continue;
    const bool again = rules_.repeats && used(profile, item.kind);
    if (const auto next = after(profile, item, again)) found.emplace_back(item, *next);
  }
  const auto cost = [&](const auto& step) {
    return std::pair(missing(step.second), rules_.supply[step.first.kind] != ItemRules::kUnbounded);
  };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return cost(a) > cost(b); });
  return found;
}

bool ItemCounts::completable(uint32_t profile) {
  constexpr size_t kMostProfiles = 100'000;
  struct Open {
    uint32_t profile;
    std::vector<std::pair<ItemRules::Choice, uint32_t>> left;
  };
  if (fates_[profile] != Fate::kUnknown) return fates_[profile] == Fate::kAlive;
  std::vector<Open> path;
  const auto open = [&](uint32_t p) {
    if (profiles_.size() > kMostProfiles) {
      for (const Open& o : path) fates_[o.profile] = Fate::kUnknown;
      throw TooLarge("an array of different items with too many counts of them to tell whether it can be completed");
    }
    fates_[p] = Fate::kDead;  // until a completion is found; no way leads back, for something grows with every item
    path.push_back({p, {}});
    if (!complete(p) && !hopeless(profiles_[p])) path.back().left = successors(p);
  };
  open(profile);
  while (!path.empty()) {
    Open& last = path.back();
    if (complete(last.profile)) break;
    if (last.left.empty()) {
      path.pop_back();
      continue;
    }
    const auto [item, next] = last.left.back();
    last.left.pop_back();
    if (fates_[next] == Fate::kDead) continue;
    steps_[last.profile] = item;
    if (fates_[next] == Fate::kAlive) break;
    open(next);
  }
  for (const Open& o : path) fates_[o.profile] = Fate::kAlive;
  return !path.empty();
}

}  // namespace grammask
