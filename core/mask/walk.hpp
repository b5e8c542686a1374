#pragma once

#include <span>
#include <vector>

#include "matcher/stepper.hpp"
#include "vocabulary/trie.hpp"

namespace grammask {

// Walks a trie with threads, depth first: visit(node) for every node whose bytes the threads can read, in which case its
// subtree is walked too. leave(node) is asked for nodes with children: true records that the lowest frame may return
// there (only when `returns` is given).
class Walker {
 public:
  explicit Walker(Stepper& stepper) : stepper_(stepper) {}

  template <typename Visit>
  void walk(const Trie& trie, std::span<const Thread> start, Visit visit, std::vector<uint32_t>* returns = nullptr,
            uint32_t root = 0) {
    levels_.clear();
    threads_.assign(start.begin(), start.end());
    if (trie.empty() || start.empty()) return;
    levels_.push_back({trie.first_child[root], trie.first_child[root] + trie.child_count[root], 0,
                       static_cast<uint32_t>(threads_.size()), stepper_.stack().mark()});
    const size_t base_text = stepper_.text().size();
    while (!levels_.empty()) {
      Level& level = levels_.back();
      if (level.child == level.end) {
        stepper_.stack().truncate(level.mark);
        threads_.resize(level.begin);
        levels_.pop_back();
        if (stepper_.text().size() > base_text) stepper_.text().pop_back();
        continue;
      }
      const uint32_t x = level.child++;
      const uint8_t b = trie.byte[x];
      const uint32_t begin = level.begin, end = level.begin + level.count;
      const Stack::Mark mark = stepper_.stack().mark();
      const uint32_t fresh = static_cast<uint32_t>(threads_.size());
      if (level.count == 1) {
        Thread t = threads_[begin];
        const auto result = stepper_.step_one(t, b);
        if (result == Stepper::Result::kDead) continue;
        if (result == Stepper::Result::kOne) {
          threads_.push_back(t);
        } else {
          step_set(begin, end, b);
        }
      } else {
        step_set(begin, end, b);
      }
      if (threads_.size() == fresh) {
        stepper_.stack().truncate(mark);
        continue;
      }
      visit(x);
      if (trie.child_count[x] == 0) {
        threads_.resize(fresh);
        stepper_.stack().truncate(mark);
        continue;
      }
      if (returns) {
        for (uint32_t i = fresh; i < threads_.size(); ++i) {
          if (stepper_.may_finish(threads_[i])) {
            returns->push_back(x);
            break;
          }
        }
      }
      stepper_.text().push_back(static_cast<char>(b));
      levels_.push_back({trie.first_child[x], trie.first_child[x] + trie.child_count[x], fresh,
                         static_cast<uint32_t>(threads_.size()) - fresh, mark});
    }
  }

 private:
  struct Level {
    uint32_t child, end;
    uint32_t begin, count;  // threads
    Stack::Mark mark;       // the stack before these threads were made
  };

  void step_set(uint32_t begin, uint32_t end, uint8_t b) {
    next_.clear();
    stepper_.step_set(std::span(threads_).subspan(begin, end - begin), b, next_);
    threads_.insert(threads_.end(), next_.begin(), next_.end());
  }

  Stepper& stepper_;
  std::vector<Level> levels_;
  std::vector<Thread> threads_;
  std::vector<Thread> next_;
};

}  // namespace grammask
