#include "mask/remainder_mask.hpp"

#include <algorithm>

#include "mask/walk.hpp"
#include "matcher/stepper.hpp"
#include "regular/long_work.hpp"

namespace grammask {

namespace {

std::unique_ptr<RemainderMask> by_walk(Arena& arena, const Vocabulary& vocabulary, const Leaving& leaving,
                                       ExprId rest) {
  auto mask = std::make_unique<RemainderMask>();
  Stepper stepper(arena);
  const Thread start{rest, Stack::kBottom};
  std::vector<uint32_t> nodes;
  leaving.for_each_remainders(vocabulary.trie(), stepper.start(start), [&](const RemainderTrie& remainders) {
    std::vector<uint32_t> returned, vague;
    Walker(stepper).walk(
        remainders.trie, {&start, 1},
        [&](std::span<const uint32_t> tokens) { mask->ids.insert(mask->ids.end(), tokens.begin(), tokens.end()); },
        {&returned, &vague, {}});
    for (const uint32_t x : vague)
      for_each_token_below(remainders.trie, x, [&](uint32_t id) { mask->vague.push_back(id); });
    for (const uint32_t x : returned) {
      nodes.insert(nodes.end(), remainders.origins.begin() + remainders.origin_begin[x],
                   remainders.origins.begin() + remainders.origin_begin[x + 1]);
    }
  });
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (!nodes.empty()) mask->leaving = arena.leaving(std::move(nodes));
  mask->ids.shrink_to_fit();
  return mask;
}

}  // namespace

const RemainderMask& remainder_mask(Arena& arena, const Vocabulary& vocabulary, const Leaving& leaving, ExprId rest) {
  {
    const std::lock_guard lock(arena.mutex());
    if (const RemainderMask* known = arena.remainder_mask(leaving, rest)) return *known;
  }
  LongWork::begins();
  auto made = by_walk(arena, vocabulary, leaving, rest);
  const std::lock_guard lock(arena.mutex());
  return *arena.keep(leaving, rest, std::move(made));
}

}  // namespace grammask
