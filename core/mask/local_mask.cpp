#include "mask/local_mask.hpp"

#include <algorithm>

#include "mask/walk.hpp"
#include "matcher/stepper.hpp"

namespace grammask {

void LocalMask::add_inside_to(uint32_t* out) const {
  for (size_t i = 0; i < words.size(); ++i) out[i] |= words[i];
  for (const uint32_t id : ids) out[id / 32] |= 1u << (id % 32);
}

namespace {

std::unique_ptr<LocalMask> make_local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  auto mask = std::make_unique<LocalMask>();
  const Trie& trie = vocabulary.trie();
  mask->returns_at_once = arena.state(e).nullable;
  Stepper stepper(arena);
  stepper.vague_keys = true;
  std::vector<uint32_t> vague;
  const Thread start{e, Stack::kBottom};
  Walker(stepper).walk(
      trie, {&start, 1},
      [&](uint32_t x) {
        for (uint32_t k = trie.token_begin[x]; k < trie.token_begin[x + 1]; ++k) mask->ids.push_back(trie.tokens[k]);
      },
      {&mask->returns_at, &vague});
  // Tokens that hold a whole key and the start of another: read each with its text.
  stepper.vague_keys = false;
  for (const uint32_t x : vague) {
    for_each_token_below(trie, x, [&](uint32_t id) {
      if (stepper.can_read({&start, 1}, *vocabulary.token(id))) mask->ids.push_back(id);
    });
  }
  if (mask->ids.size() > vocabulary.words() / 2) {
    mask->words.assign(vocabulary.words(), 0);
    for (const uint32_t id : mask->ids) mask->words[id / 32] |= 1u << (id % 32);
    mask->ids = {};
  }
  mask->ids.shrink_to_fit();
  mask->returns_at.shrink_to_fit();
  mask->remainders = build_remainder_trie(trie, mask->returns_at);
  return mask;
}

}  // namespace

const LocalMask& local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e) {
  State& state = arena.mutable_state(e);
  if (const LocalMask* known = state.mask.load(std::memory_order_acquire)) return *known;
  auto made = make_local_mask(arena, vocabulary, e);
  const std::lock_guard lock(arena.mutex());
  if (const LocalMask* known = state.mask.load(std::memory_order_acquire)) return *known;
  LocalMask* published = arena.keep(std::move(made));
  state.mask.store(published, std::memory_order_release);
  return *published;
}

}  // namespace grammask
