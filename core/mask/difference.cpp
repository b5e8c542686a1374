#include "mask/difference.hpp"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "mask/walk.hpp"
#include "matcher/stepper.hpp"
#include "regular/finite_words.hpp"

namespace grammask {

namespace {

class Difference {
 public:
  Difference(Arena& arena, const Vocabulary& vocabulary, ExprId e, ExprId whole)
      : arena_(arena),
        trie_(vocabulary.trie()),
        whole_(local_mask(arena, vocabulary, whole)),
        stepper_(arena),
        walker_(stepper_),
        returns_at_once_(arena.state(e).nullable),
        returns_(returns_at_once_) {}

  bool applies() const { return whole_.words && whole_.without.empty(); }

  // What lies below a node at which the whole is in one state and e in another.
  void compare(uint32_t x, const State& mine, const State& whole) { queue_.push_back({x, &mine, &whole}); }
  // What lies at a node, and below it, after which these are left of the two.
  void compare_at(uint32_t x, ExprId mine, ExprId whole);
  void e_may_return() { returns_ = true; }

  // The mask of e after everything was compared; null if too much differs.
  std::unique_ptr<LocalMask> mask();

 private:
  struct Entry {
    uint32_t node;
    const State* mine;
    const State* whole;
  };
  static constexpr size_t kMostDifferent = 4096;

  bool is_too_much() const { return queue_.size() + no_return_.size() > kMostDifferent; }
  void lose_below(uint32_t x);
  void gain_below(uint32_t x, ExprId mine);

  Arena& arena_;
  const Trie& trie_;
  const LocalMask& whole_;
  Stepper stepper_;
  Walker walker_;
  bool returns_at_once_;
  bool returns_;  // e may return where it differs from the whole
  std::vector<Entry> queue_;
  std::unordered_set<uint32_t> no_return_, lost_, gained_;
  std::vector<uint32_t> gained_returns_;
};

void Difference::compare_at(uint32_t x, ExprId mine, ExprId whole) {
  if (mine == whole) return;
  if (mine == ExprPool::kEmptyId) return lose_below(x);
  if (whole == ExprPool::kEmptyId) return gain_below(x, mine);
  if (trie_.child_count[x] == 0) return;
  const State& m = arena_.state(mine);
  const State& w = arena_.state(whole);
  if (w.nullable && !m.nullable) no_return_.insert(x);
  if (m.nullable && !w.nullable) gained_returns_.push_back(x);
  returns_ = returns_ || m.nullable;
  compare(x, m, w);
}

void Difference::lose_below(uint32_t x) {
  std::vector<uint32_t> below{x};
  while (!below.empty() && no_return_.size() <= kMostDifferent) {
    const uint32_t y = below.back();
    below.pop_back();
    no_return_.insert(y);
    lost_.insert(trie_.own(y).begin(), trie_.own(y).end());
    for (uint32_t c = trie_.first_child[y]; c < trie_.first_child[y] + trie_.child_count[y]; ++c) below.push_back(c);
  }
}

void Difference::gain_below(uint32_t x, ExprId mine) {
  const auto gain = [&](std::span<const uint32_t> tokens) { gained_.insert(tokens.begin(), tokens.end()); };
  gain(trie_.own(x));
  if (trie_.child_count[x] == 0) return;
  if (arena_.state(mine).nullable) gained_returns_.push_back(x);
  const Thread start{mine, Stack::kBottom};
  walker_.walk(trie_, {&start, 1}, gain, {&gained_returns_, nullptr, {}}, x);
}

std::unique_ptr<LocalMask> Difference::mask() {
  for (size_t at = 0; at < queue_.size(); ++at) {
    if (is_too_much()) return nullptr;
    const Entry entry = queue_[at];
    const uint32_t end = trie_.first_child[entry.node] + trie_.child_count[entry.node];
    for (uint32_t x = trie_.first_child[entry.node]; x < end; ++x) {
      const uint8_t b = trie_.byte[x];
      compare_at(x, entry.mine->next[entry.mine->class_of[b]], entry.whole->next[entry.whole->class_of[b]]);
    }
  }
  if (is_too_much()) return nullptr;
  auto mask = std::make_unique<LocalMask>();
  mask->words = whole_.words;
  mask->walk_directly = whole_.walk_directly;
  mask->inside_leaves_unlisted = whole_.inside_leaves_unlisted;
  mask->returns_at_once = returns_at_once_;
  for (const uint32_t id : lost_) {
    if ((*whole_.words)[id / 32] >> (id % 32) & 1) mask->without.push_back(id);
  }
  std::sort(mask->without.begin(), mask->without.end());
  // A token that is inside the whole but not inside e may still leave e, at a place that the whole had no reason to list.
  if (whole_.inside_leaves_unlisted && returns_ && !mask->without.empty()) return nullptr;
  for (const uint32_t id : whole_.ids) {
    if (!lost_.count(id)) mask->ids.push_back(id);
  }
  mask->ids.insert(mask->ids.end(), gained_.begin(), gained_.end());
  if (gained_returns_.empty() && (!whole_.leaving || no_return_.empty())) {
    mask->leaving = whole_.leaving;
    return mask;
  }
  std::vector<uint32_t> nodes = std::move(gained_returns_);
  if (whole_.leaving) {
    for (const uint32_t x : whole_.leaving->nodes()) {
      if (!no_return_.count(x)) nodes.push_back(x);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (!nodes.empty()) mask->leaving = arena_.leaving(std::move(nodes));
  return mask;
}

}  // namespace

std::unique_ptr<LocalMask> by_difference(Arena& arena, const Vocabulary& vocabulary, ExprId e, ExprId whole) {
  Difference difference(arena, vocabulary, e, whole);
  if (!difference.applies()) return nullptr;
  difference.compare(0, arena.state(e), arena.state(whole));
  return difference.mask();
}

std::unique_ptr<LocalMask> by_difference_at_words(Arena& arena, const Vocabulary& vocabulary, ExprId e, ExprId whole,
                                                  const std::vector<ExprId>& excluded) {
  std::vector<std::string> words;
  {
    const std::lock_guard lock(arena.mutex());
    for (const ExprId x : excluded) {
      if (!finite_words(arena.pool(), x, words)) return nullptr;
    }
  }
  Difference difference(arena, vocabulary, e, whole);
  if (!difference.applies()) return nullptr;
  const Trie& trie = vocabulary.trie();
  for (const std::string& word : words) {
    uint32_t x = 0;
    ExprId w = whole;
    for (size_t i = 0; i < word.size() && w != ExprPool::kEmptyId; ++i) {
      const auto byte = static_cast<uint8_t>(word[i]);
      x = trie.child(x, byte);
      if (x == 0) break;
      const State& state = arena.state(w);
      if (state.nullable) difference.e_may_return();
      w = state.next[state.class_of[byte]];
    }
    // The empty word says no more than that e may not return at once.
    if (x == 0 || w == ExprPool::kEmptyId) continue;
    ExprId mine = e;
    {
      const std::lock_guard lock(arena.mutex());
      for (const char c : word) mine = arena.pool().derive(mine, static_cast<uint8_t>(c));
      if (!arena.pool().alive(mine)) mine = ExprPool::kEmptyId;
    }
    difference.compare_at(x, mine, w);
  }
  return difference.mask();
}

}  // namespace grammask
