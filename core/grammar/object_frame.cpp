#include "grammar/object_frame.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace grammask {

namespace {
constexpr uint64_t kMany = 1u << 20;  // family sizes are counted up to here; more is as good as infinite
}

uint32_t TextList::add(uint32_t list, uint32_t family, std::string_view text) {
  std::string key(reinterpret_cast<const char*>(&list), sizeof list);
  key.append(reinterpret_cast<const char*>(&family), sizeof family).append(text);
  const auto [it, inserted] = index_.try_emplace(std::move(key), static_cast<uint32_t>(nodes_.size()));
  if (inserted) nodes_.push_back({list, family, std::string(text), pool_.unite(nodes_[list].all, pool_.literal(text))});
  return it->second;
}

uint32_t TextList::count(uint32_t list, uint32_t family) const {
  uint32_t n = 0;
  for (; list; list = nodes_[list].previous) n += nodes_[list].family == family;
  return n;
}

bool TextList::has(uint32_t list, std::string_view text) const {
  for (; list; list = nodes_[list].previous) {
    if (nodes_[list].text == text) return true;
  }
  return false;
}

ObjectFrame::ObjectFrame(ExprPool& pool, uint32_t index, ObjectSpec spec, std::function<bool(ExprId)> open_ended)
    : pool_(pool), index_(index), spec_(std::move(spec)), open_ended_(std::move(open_ended)), texts_(pool) {
  if (spec_.obligations > kMaxObligations) {
    throw TooLarge("an object has more than " + std::to_string(kMaxObligations) + " obligations");
  }
  for (const auto& [i, js] : spec_.dependencies) {
    for (const uint32_t j : js) {
      if (i >= spec_.members.size() || j >= spec_.members.size() || spec_.members[i].family ||
          spec_.members[j].family) {
        throw std::invalid_argument("dependencies must name literal members");
      }
    }
  }
  if (pool_.nullable(spec_.close)) throw std::invalid_argument("the end of an object must not be empty");
  if (!spec_.dependencies.empty() && spec_.max_members != ExprPool::kUnbounded) {
    throw std::invalid_argument("dependencies cannot be combined with max_members: use a union of objects");
  }
  if (spec_.ordered) {
    std::stable_partition(spec_.members.begin(), spec_.members.end(), [](const ObjectMember& m) { return !m.family; });
  }
  for (ObjectMember& m : spec_.members) {
    std::erase_if(m.values, [&](const ObjectMember::Value& v) { return !pool_.alive(v.value); });
    for (const ObjectMember::Value& v : m.values) depth_ = std::max<uint32_t>(depth_, pool_.node(v.value).depth);
    for (ObjectMember::Value& v : m.values) v.fulfils &= (1ull << spec_.obligations) - 1;
    if (m.family) m.required = false;
    if (pool_.has(m.key, ExprPool::kLetters)) throw std::invalid_argument("object keys must not contain calls");
    const bool bounded = spec_.min_members > 0 || spec_.obligations > 0;
    family_size_.push_back(!m.family                     ? 1
                           : m.key == ExprPool::kEmptyId ? 0
                           : bounded                     ? pool_.count_words(m.key, kMany)
                                                         : kMany);
    if (m.family && m.key != ExprPool::kEmptyId && !pool_.alive(m.key)) family_size_.back() = 0;
  }
  tracks_seen_ = !spec_.ordered || !spec_.dependencies.empty();
  simple_ = spec_.min_members == 0 && spec_.max_members == ExprPool::kUnbounded && spec_.obligations == 0 &&
            spec_.dependencies.empty();
  next_required_.assign(spec_.members.size() + 1, static_cast<uint32_t>(spec_.members.size()));
  for (size_t i = spec_.members.size(); i-- > 0;) {
    next_required_[i] = spec_.members[i].required ? static_cast<uint32_t>(i) : next_required_[i + 1];
  }
  State start;
  if (tracks_seen_) start.seen.assign((spec_.members.size() + 63) / 64, 0);
  states_.push_back(start);
  possible_ = completable(start);
}

bool ObjectFrame::possible_if(const std::function<bool(ExprId)>& productive) const {
  ObjectSpec reduced = spec_;
  for (ObjectMember& m : reduced.members) {
    std::erase_if(m.values, [&](const ObjectMember::Value& v) { return !productive(v.value); });
  }
  return ObjectFrame(pool_, index_, std::move(reduced), open_ended_).possible();
}

void ObjectFrame::mentioned(std::vector<ExprId>& out) const {
  for (const ObjectMember& m : spec_.members) {
    for (const auto& v : m.values) out.push_back(v.value);
  }
}

bool ObjectFrame::seen(const State& s, uint32_t i) const {
  if (spec_.ordered && i < s.position && !tracks_seen_) return true;  // decided: seen or skipped
  return tracks_seen_ && (s.seen[i / 64] >> (i % 64) & 1);
}

uint32_t ObjectFrame::intern(State&& s) {
  std::string key;
  const auto put = [&](uint64_t v) { key.append(reinterpret_cast<const char*>(&v), sizeof v); };
  put(uint64_t{s.position} << 32 | static_cast<uint64_t>(s.phase) << 1 | s.vague);
  put(uint64_t{s.count} << 32 | s.texts);
  put(s.fulfilled);
  for (const uint64_t w : s.seen) put(w);
  const auto [it, inserted] = state_index_.try_emplace(std::move(key), static_cast<uint32_t>(states_.size()));
  if (inserted) states_.push_back(std::move(s));
  return it->second;
}

ObjectFrame::State ObjectFrame::after(const State& s, uint32_t i, uint64_t fulfils) const {
  State t = s;
  t.phase = Phase::kNext;
  t.fulfilled |= fulfils;
  t.count = s.count + 1;
  if (spec_.max_members == ExprPool::kUnbounded) t.count = std::min(t.count, spec_.min_members);
  if (!spec_.members[i].family) {
    if (spec_.ordered) t.position = i + 1;
    if (tracks_seen_) t.seen[i / 64] |= 1ull << (i % 64);
  } else if (spec_.ordered) {
    t.position = static_cast<uint32_t>(spec_.members.size());
  }
  return t;
}

// Literal members that must still come: required ones and what dependencies ask for. False if one of them cannot come.
bool ObjectFrame::needed(const State& s, std::vector<bool>& need) const {
  const uint32_t n = static_cast<uint32_t>(spec_.members.size());
  need.assign(n, false);
  std::vector<uint32_t> work;
  std::vector<bool> present(n, false);
  for (uint32_t i = 0; i < n; ++i) {
    const ObjectMember& m = spec_.members[i];
    if (m.family) continue;
    if (tracks_seen_ && seen(s, i)) {
      present[i] = true;
      work.push_back(i);
    } else if (m.required && !(spec_.ordered && !tracks_seen_ && i < s.position)) {
      need[i] = true;
      present[i] = true;
      work.push_back(i);
    }
  }
  while (!work.empty()) {
    const uint32_t i = work.back();
    work.pop_back();
    for (const auto& [from, to] : spec_.dependencies) {
      if (from != i) continue;
      for (const uint32_t j : to) {
        if (present[j]) continue;
        present[j] = need[j] = true;
        work.push_back(j);
      }
    }
  }
  for (uint32_t i = 0; i < n; ++i) {
    if (need[i] && (spec_.members[i].values.empty() || (spec_.ordered && i < s.position))) return false;
  }
  return true;
}

bool ObjectFrame::completable(const State& s, uint32_t coming) const {
  std::vector<bool> need;
  if (!needed(s, need)) return false;
  if (simple_) return true;
  const uint32_t n = static_cast<uint32_t>(spec_.members.size());
  const auto available = [&](uint32_t i) {
    return !need[i] && !spec_.members[i].values.empty() && (spec_.members[i].family || !seen(s, i)) &&
           !(spec_.ordered && !spec_.members[i].family && i < s.position);
  };
  // How many more members a family or an optional literal can be.
  const auto left = [&](uint32_t i) {
    const uint64_t size = family_size_[i];
    if (!spec_.members[i].family || size == kMany) return size;
    const uint64_t used = uint64_t{texts_.count(s.texts, i)} + (coming == i);
    return size - std::min(size, used);
  };
  // Optional literals whose own dependencies cannot be met never come.
  std::vector<bool> usable(n, false);
  for (uint32_t i = 0; i < n; ++i) usable[i] = available(i);
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [i, js] : spec_.dependencies) {
      if (!usable[i]) continue;
      for (const uint32_t j : js) {
        if (!usable[j] && !need[j] && !(tracks_seen_ && seen(s, j))) {
          usable[i] = false;
          changed = true;
          break;
        }
      }
    }
  }
  uint64_t required = 0, optional = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (need[i]) {
      ++required;
    } else if (usable[i]) {
      optional += left(i);
    }
  }
  // Fewest members that fulfil every obligation: required members choose a value each, optional ones cost one more.
  uint64_t extra = 0;
  const uint64_t goal = spec_.obligations == 64 ? ~0ull : (1ull << spec_.obligations) - 1;
  if ((s.fulfilled & goal) != goal) {
    constexpr uint64_t kNever = ~0ull;
    std::vector<uint64_t> cost(goal + 1, kNever);
    cost[s.fulfilled & goal] = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (!need[i]) continue;
      std::vector<uint64_t> next(goal + 1, kNever);
      for (uint64_t have = 0; have <= goal; ++have) {
        if (cost[have] == kNever) continue;
        for (const auto& v : spec_.members[i].values) {
          uint64_t& c = next[have | (v.fulfils & goal)];
          c = std::min(c, cost[have]);
        }
      }
      cost = std::move(next);
    }
    for (uint32_t i = 0; i < n; ++i) {
      if (!usable[i]) continue;
      const uint64_t times = std::min<uint64_t>(left(i), spec_.obligations);
      for (uint64_t k = 0; k < times; ++k) {
        std::vector<uint64_t> next = cost;
        for (uint64_t have = 0; have <= goal; ++have) {
          if (cost[have] == kNever) continue;
          for (const auto& v : spec_.members[i].values) {
            uint64_t& c = next[have | (v.fulfils & goal)];
            c = std::min(c, cost[have] + 1);
          }
        }
        cost = std::move(next);
      }
    }
    if (cost[goal] == kNever) return false;
    extra = cost[goal];
  }
  if (spec_.max_members != ExprPool::kUnbounded && s.count + required + extra > spec_.max_members) return false;
  return s.count + required + optional >= spec_.min_members;
}

bool ObjectFrame::closable(const State& s) const {
  if (s.count < spec_.min_members) return false;
  if (spec_.obligations && s.fulfilled != (1ull << spec_.obligations) - 1) return false;
  if (spec_.ordered && !tracks_seen_) return next_required_[s.position] == spec_.members.size();
  std::vector<bool> need;
  return needed(s, need) && std::find(need.begin(), need.end(), true) == need.end();
}

ExprId ObjectFrame::value_then(const State& s, uint32_t i, const std::optional<std::string_view>* text) {
  std::vector<ExprId> options;
  for (const ObjectMember::Value& v : spec_.members[i].values) {
    State t = after(s, i, v.fulfils);
    if (text) {
      if (*text) {
        t.texts = texts_.add(t.texts, i, **text);
      } else {
        t.vague = true;
      }
    }
    if (!simple_ && !completable(t, text && !*text ? i : kNoFamily)) continue;
    const ExprId value = pool_.concat(spec_.colon, v.value);
    options.push_back(
        pool_.concat(spec_.flat ? value : pool_.call(value), pool_.frame(index_, intern(std::move(t)), depth_)));
  }
  return pool_.unite(options);
}

ExprId ObjectFrame::members(const State& s) {
  std::vector<ExprId> options;
  const uint32_t n = static_cast<uint32_t>(spec_.members.size());
  if (spec_.max_members != ExprPool::kUnbounded && s.count >= spec_.max_members) return ExprPool::kEmptyId;
  uint32_t begin = 0, end = n;
  if (spec_.ordered) {
    begin = s.position;
    end = std::min(n, next_required_[s.position] + 1);
  }
  for (uint32_t i = begin; i < end; ++i) {
    const ObjectMember& m = spec_.members[i];
    if (m.values.empty() || m.family || seen(s, i)) continue;
    options.push_back(pool_.concat(m.key, value_then(s, i, nullptr)));
  }
  const bool families_open = !spec_.ordered || next_required_[s.position] == n;
  for (uint32_t i = 0; families_open && i < n; ++i) {
    const ObjectMember& m = spec_.members[i];
    if (!m.family || m.values.empty() || family_size_[i] == 0) continue;
    if (family_size_[i] < kMany && texts_.count(s.texts, i) >= family_size_[i]) continue;
    const bool useful = simple_ || std::any_of(m.values.begin(), m.values.end(),
                                               [&](const auto& v) { return completable(after(s, i, v.fulfils), i); });
    if (!useful) continue;
    State at = s;
    const uint32_t id = intern(std::move(at));
    if (key_body(id, i) != ExprPool::kEmptyId) options.push_back(pool_.key(index_, id, i));
  }
  return pool_.unite(options);
}

ExprId ObjectFrame::expand(uint32_t id) {
  const State s = states_[id];
  if (s.phase == Phase::kStart) {
    State t = s;
    t.phase = Phase::kFirst;
    return pool_.concat(spec_.open, pool_.frame(index_, intern(std::move(t)), depth_));
  }
  if (s.vague) {
    // Whether a family has a key left may depend on the one that is not known.
    for (const ObjectMember& m : spec_.members) {
      if (m.family && !m.values.empty() && !open_ended_(m.key)) return pool_.key(index_, id, kUnknown);
    }
  }
  ExprId more = members(s);
  if (s.phase == Phase::kNext) more = pool_.concat(spec_.comma, more);
  return pool_.unite(more, closable(s) ? spec_.close : ExprPool::kEmptyId);
}

// Needed members first; then any whose value fulfils an obligation, or simply counts, the shortest of those.
ExprId ObjectFrame::next_member(const State& s, const Lengths& length) {
  std::vector<bool> need;
  needed(s, need);
  std::vector<uint32_t> required, literals, families;
  for (uint32_t i = 0; i < spec_.members.size(); ++i) {
    if (need[i]) {
      required.push_back(i);
    } else if (spec_.members[i].family) {
      families.push_back(i);
    } else if (!seen(s, i) && !(spec_.ordered && i < s.position)) {
      literals.push_back(i);
    }
  }
  // In order, only the first of the required ones can be next.
  if (spec_.ordered && required.size() > 1) required.erase(required.begin() + 1, required.end());
  // Optional ones may have to come before a required one; families last, for a search is needed to know one of their keys.
  for (const auto* candidates : {&required, &literals, &families}) {
    const ExprId found = shortest_member(s, *candidates, length);
    if (found != ExprPool::kEmptyId) return found;
  }
  return ExprPool::kEmptyId;
}

ExprId ObjectFrame::shortest_member(const State& s, const std::vector<uint32_t>& candidates, const Lengths& length) {
  constexpr uint64_t kNever = ~uint64_t{0}, kOutweighs = uint64_t{1} << 40;
  State at = s;
  const uint32_t id = intern(std::move(at));
  ExprId best = ExprPool::kEmptyId;
  uint64_t least = kNever;
  for (const uint32_t i : candidates) {
    const ObjectMember& m = spec_.members[i];
    if (m.values.empty() || (m.family && (family_size_[i] == 0 || key_body(id, i) == ExprPool::kEmptyId))) continue;
    const uint64_t key = length(m.family ? key_body(id, i) : m.key);
    for (const ObjectMember::Value& v : m.values) {
      State t = after(s, i, v.fulfils);
      const uint64_t value = length(v.value);
      if (key == kNever || value == kNever || !completable(t, m.family ? i : kNoFamily)) continue;
      const bool fulfils = !spec_.obligations || (v.fulfils & ~s.fulfilled);
      const uint64_t total = key + value + (fulfils ? 0 : kOutweighs);
      if (total >= least) continue;
      least = total;
      best = m.family ? pool_.key(index_, id, i)
                      : pool_.concat(std::vector<ExprId>{m.key, spec_.colon, v.value,
                                                         pool_.frame(index_, intern(std::move(t)), depth_)});
    }
  }
  return best;
}

ExprId ObjectFrame::onward(uint32_t id, const Lengths& length) {
  const State s = states_[id];
  if (s.phase == Phase::kStart) return expand(id);
  if (closable(s)) return spec_.close;
  const ExprId member = next_member(s, length);
  return s.phase == Phase::kNext ? pool_.concat(spec_.comma, member) : member;
}

uint32_t ObjectFrame::missing(uint32_t id) {
  const State& s = states_[id];
  std::vector<bool> need;
  needed(s, need);
  const auto count = static_cast<uint32_t>(std::count(need.begin(), need.end(), true));
  const auto unfulfilled = static_cast<uint32_t>(spec_.obligations) - static_cast<uint32_t>(std::popcount(s.fulfilled));
  return std::max({count, s.count < spec_.min_members ? spec_.min_members - s.count : 0, std::min(unfulfilled, 1u)});
}

ExprId ObjectFrame::key_body(uint32_t id, uint32_t family) {
  const ExprId all = texts_.all(states_[id].texts);
  const ExprId key = spec_.members[family].key;
  if (all == ExprPool::kEmptyId) return key;
  const ExprId body = pool_.intersect(key, pool_.complement(all));
  return pool_.alive(body) ? body : ExprPool::kEmptyId;
}

ExprId ObjectFrame::after_key(uint32_t id, uint32_t family, std::optional<std::string_view> text) {
  const State s = states_[id];
  return value_then(s, family, &text);
}

size_t ObjectFrame::memory_bytes() const {
  return states_.size() * (sizeof(State) + 120 + spec_.members.size() / 8) + texts_.memory_bytes() +
         spec_.members.size() * 120;
}

}  // namespace grammask
