#include "mask/counted_pattern.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "mask/walk.hpp"

namespace grammask {

namespace {

// The pattern as a table over bytes, together with where within a character it is. The two move side by side, so that
// nobody has to find out in how far the pattern consists of characters.
struct Places {
  static constexpr uint16_t kDead = 0;  // as a successor: the first place follows no other, for it follows no byte
  static constexpr size_t kMost = 1024;
  struct Place {
    const State* pattern;
    const State* unit;  // null between characters
    std::array<uint16_t, 256> next;
    std::vector<uint16_t> successors;
    ByteSet loops;  // the first bytes of characters that lead back, all characters with such a byte
  };
  std::vector<Place> all;
  uint16_t start = 0;

  // Whether the places are few enough; all are found then.
  bool find(Arena& arena, ExprId unit, ExprId pattern) {
    const State& first = arena.state(unit);
    const ByteSet characters = arena.characters_to(first, ExprPool::kEpsilonId);
    std::unordered_map<uint64_t, uint16_t> index;
    const auto place_of = [&](ExprId p, ExprId u) {
      const auto [it, fresh] = index.try_emplace(uint64_t{p} << 32 | u, static_cast<uint16_t>(all.size()));
      if (fresh) all.push_back({&arena.state(p), u ? &arena.state(u) : nullptr, {}, {}, {}});
      return it->second;
    };
    all.push_back({nullptr, nullptr, {}, {}, {}});  // kDead
    start = place_of(pattern, 0);
    for (size_t at = start; at < all.size(); ++at) {
      if (all.size() > kMost) return false;
      const State& p = *all[at].pattern;
      const State& u = all[at].unit ? *all[at].unit : first;
      if (!all[at].unit) all[at].loops = characters & arena.character_loops(p);
      uint32_t last = 0xffffffffu;  // neighbouring bytes mostly do the same
      uint16_t to = kDead;
      for (unsigned b = 0; b < 256; ++b) {
        const uint32_t classes = uint32_t{p.class_of[b]} << 8 | u.class_of[b];
        if (classes != last) {
          last = classes;
          const ExprId next = p.next[p.class_of[b]], inner = u.next[u.class_of[b]];
          to = kDead;
          if (next != ExprPool::kEmptyId && inner != ExprPool::kEmptyId)
            to = place_of(next, inner == ExprPool::kEpsilonId ? 0 : inner);
          auto& successors = all[at].successors;
          if (to != kDead && std::find(successors.begin(), successors.end(), to) == successors.end())
            successors.push_back(to);
        }
        all[at].next[b] = to;
      }
    }
    return true;
  }

  // Per place, with how many more characters the pattern can be completed.
  template <typename Lengths>
  std::vector<Lengths> lengths() const {
    std::vector<Lengths> out(all.size());
    std::vector<uint8_t> now(all.size(), 0), before;
    for (size_t n = 0; n < Lengths{}.size(); ++n) {
      before.swap(now);
      now.assign(all.size(), 0);
      // Between characters one more is begun, which leaves one fewer to come.
      for (size_t x = start; x < all.size(); ++x) {
        if (all[x].unit) continue;
        now[x] = n == 0 ? all[x].pattern->nullable
                        : std::ranges::any_of(all[x].successors, [&](uint16_t y) { return before[y] != 0; });
      }
      // Later places mostly come first on the way back.
      for (bool changed = true; changed;) {
        changed = false;
        for (size_t x = all.size(); x-- > start;) {
          if (!all[x].unit || now[x]) continue;
          now[x] = std::ranges::any_of(all[x].successors, [&](uint16_t y) { return now[y] != 0; });
          changed = changed || now[x];
        }
      }
      const bool stays = n > 0 && now == before;
      for (size_t x = start; x < all.size(); ++x) {
        if (!now[x]) continue;
        if (stays) {
          for (size_t more = n; more < out[x].size(); ++more) out[x].set(more);
        } else {
          out[x].set(n);
        }
      }
      if (stays) break;
    }
    return out;
  }

  // How many bytes the shortest way to the end has that takes the fewest characters, from wherever that is most.
  template <typename Lengths>
  uint32_t way_out(const std::vector<Lengths>& lengths) const {
    const auto fewest = [&](size_t x) {
      uint32_t n = 0;
      while (n < lengths[x].size() && !lengths[x].test(n)) ++n;
      return n;
    };
    std::vector<uint32_t> characters, bytes(all.size(), Arena::kFar);
    for (size_t x = 0; x < all.size(); ++x) characters.push_back(fewest(x));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t x = all.size(); x-- > start;) {
        uint32_t least = bytes[x];
        if (!all[x].unit && all[x].pattern->nullable) least = 0;
        for (const uint16_t y : all[x].successors) {
          const bool shortest = characters[y] + (all[x].unit ? 0 : 1) == characters[x];
          if (shortest && bytes[y] != Arena::kFar) least = std::min(least, bytes[y] + 1);
        }
        changed = changed || least != bytes[x];
        bytes[x] = least;
      }
    }
    uint32_t most = 0;
    for (size_t x = start; x < all.size(); ++x) {
      if (lengths[x].any()) most = std::max(most, bytes[x]);
    }
    return most;
  }
};

}  // namespace

std::optional<CountedPattern::Form> CountedPattern::form_of(Arena& arena, ExprId e) {
  ExprPool& pool = arena.pool();
  const Expr& n = pool.node(e);
  if (n.kind != Kind::kConcat || !pool.has(e, ExprPool::kCounted) || pool.has(e, ExprPool::kLetters))
    return std::nullopt;
  const ExprId both = n.a, rest = n.b;
  if (pool.node(both).kind != Kind::kIntersection || pool.nullable(rest)) return std::nullopt;
  std::vector<ExprId> parts(pool.children(both).begin(), pool.children(both).end());
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expr length = pool.node(parts[i]);
    if (length.kind != Kind::kRepeat || length.c > kMostCount || !arena.counts_characters(length.a, rest)) continue;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
    return Form{length.a, pool.intersect(parts), rest, length.b, length.c};
  }
  return std::nullopt;
}

CountedPattern::CountedPattern(Arena& arena, const Vocabulary& vocabulary, ExprId unit, ExprId pattern, ExprId rest) {
  Places places;
  if (!places.find(arena, unit, pattern)) return;
  lengths_ = places.lengths<Lengths>();
  way_out_ = places.way_out(lengths_);

  const Trie& trie = vocabulary.trie();
  const std::vector<uint32_t>& characters_in = vocabulary.characters();
  const State& after = arena.state(rest);
  const Thread rest_thread{rest, Stack::kBottom};
  Stepper stepper(arena);
  Walker walker(stepper);
  struct Entry {
    uint32_t node;
    uint16_t place;
    uint16_t units;       // begun
    uint16_t characters;  // begun according to UTF-8, of which a unit may have several
  };
  struct Ending {
    uint32_t token;
    uint16_t place, units;
  };
  const ByteSet not_first = ByteSet::range(0x80, 0xbf);
  std::vector<Entry> queue{{0, places.start, 0, 0}};
  std::vector<Ending> endings;
  endings.reserve(vocabulary.size());
  std::vector<uint32_t> returns;
  for (size_t at = 0; at < queue.size(); ++at) {
    const Entry entry = queue[at];
    const Places::Place& place = places.all[entry.place];
    const bool between = !place.unit;
    if (between && trie.whole_below(entry.node) && (trie.bytes_below(entry.node) & ~place.loops & ~not_first).empty()) {
      for (const uint32_t id : trie.below(entry.node)) {
        const uint32_t units = entry.units + (characters_in[id] - entry.characters);
        if (units <= kMostCount) endings.push_back({id, entry.place, static_cast<uint16_t>(units)});
      }
    } else if (!between || entry.units < kMostCount) {
      const auto units = static_cast<uint16_t>(entry.units + (between ? 1 : 0));
      const uint32_t end = trie.first_child[entry.node] + trie.child_count[entry.node];
      for (uint32_t x = trie.first_child[entry.node]; x < end; ++x) {
        const uint16_t to = place.next[trie.byte[x]];
        if (to == Places::kDead) continue;
        for (const uint32_t id : trie.own(x)) endings.push_back({id, to, units});
        if (trie.child_count[x] == 0) continue;
        const auto characters = static_cast<uint16_t>(entry.characters + (not_first.has(trie.byte[x]) ? 0 : 1));
        queue.push_back({x, to, units, characters});
      }
    }
    if (!between || !place.pattern->nullable || (trie.bytes_below(entry.node) & after.start).empty()) continue;
    returns.clear();
    walker.walk(
        trie, {&rest_thread, 1},
        [&](std::span<const uint32_t> tokens) {
          for (const uint32_t id : tokens) closing_.push_back({entry.units, id});
        },
        {&returns, nullptr, {}}, entry.node);
    for (const uint32_t x : returns) leaving_.push_back({entry.units, x});
  }
  size_t below = 0;
  for (const Counted& c : leaving_) below += trie.below(c.value).size();
  many_leave_ = below > LocalMask::kManyBelow;
  if (many_leave_) leaving_ = {};

  // By place and units.
  uint32_t most_units = 0;
  for (const Ending& t : endings) most_units = std::max<uint32_t>(most_units, t.units);
  const auto key = [&](const Ending& t) { return size_t{t.place} * (most_units + 1) + t.units; };
  std::vector<uint32_t> begin(places.all.size() * (most_units + 1) + 1, 0);
  for (const Ending& t : endings) ++begin[key(t) + 1];
  for (size_t k = 1; k < begin.size(); ++k) {
    if (begin[k] != 0) {
      groups_.push_back({static_cast<uint32_t>((k - 1) % (most_units + 1)),
                         static_cast<uint32_t>((k - 1) / (most_units + 1)), begin[k - 1]});
    }
    begin[k] += begin[k - 1];
  }
  groups_.push_back({0, 0, static_cast<uint32_t>(endings.size())});
  tokens_.resize(endings.size());
  auto words = std::make_shared<std::vector<uint32_t>>(vocabulary.words(), 0u);
  for (const Ending& t : endings) {
    tokens_[begin[key(t)]++] = t.token;
    (*words)[t.token / 32] |= 1u << (t.token % 32);
  }
  inside_ = std::move(words);
}

std::unique_ptr<LocalMask> CountedPattern::mask(Arena& arena, uint32_t low, uint32_t high) const {
  auto mask = std::make_unique<LocalMask>();
  std::vector<uint32_t> fitting, others;  // groups
  size_t fit = 0;
  for (uint32_t g = 0; g + 1 < groups_.size(); ++g) {
    const Group& group = groups_[g];
    bool possible = false;
    if (group.units <= high) {
      const Lengths& lengths = lengths_[group.place];
      for (uint32_t n = low > group.units ? low - group.units : 0; n <= high - group.units && !possible; ++n)
        possible = lengths.test(n);
    }
    (possible ? fitting : others).push_back(g);
    if (possible) fit += groups_[g + 1].begin - group.begin;
  }
  const auto for_each = [&](const std::vector<uint32_t>& groups, auto f) {
    for (const uint32_t g : groups) std::for_each(&tokens_[groups_[g].begin], tokens_.data() + groups_[g + 1].begin, f);
  };
  const size_t rest = tokens_.size() - fit;
  constexpr size_t kFew = 512;
  if (fit <= kFew) {
    for_each(fitting, [&](uint32_t id) { mask->ids.push_back(id); });
  } else if (rest <= kFew) {
    mask->words = inside_;
    for_each(others, [&](uint32_t id) { mask->without.push_back(id); });
    std::sort(mask->without.begin(), mask->without.end());
  } else if (rest < fit) {
    auto words = std::make_shared<std::vector<uint32_t>>(*inside_);
    for_each(others, [&](uint32_t id) { (*words)[id / 32] &= ~(1u << (id % 32)); });
    mask->words = std::move(words);
  } else {
    auto words = std::make_shared<std::vector<uint32_t>>(inside_->size(), 0u);
    for_each(fitting, [&](uint32_t id) { (*words)[id / 32] |= 1u << (id % 32); });
    mask->words = std::move(words);
  }
  for (const Counted& c : closing_) {
    if (low <= c.units && c.units <= high) mask->ids.push_back(c.value);
  }
  mask->walk_directly = many_leave_;
  std::vector<uint32_t> nodes;
  for (const Counted& c : leaving_) {
    if (low <= c.units && c.units <= high) nodes.push_back(c.value);
  }
  std::sort(nodes.begin(), nodes.end());
  if (!nodes.empty()) mask->leaving = arena.leaving(std::move(nodes));
  return mask;
}

size_t CountedPattern::memory_bytes() const {
  return sizeof(*this) + lengths_.capacity() * sizeof(Lengths) + groups_.capacity() * sizeof(Group) +
         (tokens_.capacity() + (inside_ ? inside_->capacity() : 0)) * 4 +
         (closing_.capacity() + leaving_.capacity()) * sizeof(Counted);
}

}  // namespace grammask
