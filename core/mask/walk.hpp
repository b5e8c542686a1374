#pragma once

#include <span>
#include <vector>

#include "matcher/stepper.hpp"
#include "vocabulary/trie.hpp"

namespace grammask {

// Walks a trie with threads, depth first, skipping the subtree of every node whose bytes the threads cannot read.
//
// Almost all of the time there is one thread whose state decides the byte by a look-up; that loop touches nothing else.
class Walker {
 public:
  // What a walk reports, besides calling visit(node) for every node that can be read.
  struct Notes {
    std::vector<uint32_t>* returns = nullptr;  // nodes with children after which the lowest frame may return
    std::vector<uint32_t>* vague = nullptr;    // nodes that could not be decided without the text of a key
  };

  explicit Walker(Stepper& stepper) : stepper_(stepper) {}

  template <typename Visit>
  void walk(const Trie& trie, std::span<const Thread> start, Visit visit, Notes notes = {}) {
    if (trie.empty() || start.empty()) return;
    levels_.clear();
    threads_.assign(start.begin(), start.end());
    const size_t base_text = stepper_.text().size();
    const uint8_t* const byte = trie.byte.data();
    const uint16_t* const child_count = trie.child_count.data();
    const uint32_t* const first_child = trie.first_child.data();
    enter(first_child[0], child_count[0], 0, stepper_.stack().mark());

    while (!levels_.empty()) {
      Level& level = levels_.back();
      uint32_t x = 0;
      bool readable = false;
      const uint32_t made = level.begin + level.count;  // successors go behind this level's threads
      const Stack::Mark mark = stepper_.stack().mark();
      if (level.simple) {
        const uint8_t* const class_of = level.state->class_of;
        const uint32_t* const action = level.state->action.data();
        while (level.child < level.end) {
          x = level.child++;
          const uint32_t a = action[class_of[byte[x]]];
          const Act act = static_cast<Act>(a & 3);
          if (act == Act::kDead) continue;
          if (act == Act::kNext) {
            threads_.push_back({a >> 2, threads_[level.begin].node});
            readable = true;
            break;
          }
          if (step(level, byte[x])) {
            readable = true;
            break;
          }
          note_vague(notes, x);
        }
      } else {
        while (level.child < level.end) {
          x = level.child++;
          if (step(level, byte[x])) {
            readable = true;
            break;
          }
          note_vague(notes, x);
        }
      }
      if (!readable) {
        stepper_.stack().truncate(level.mark);
        threads_.resize(level.begin);
        levels_.pop_back();
        if (stepper_.text().size() > base_text) stepper_.text().pop_back();
        continue;
      }
      visit(x);
      if (notes.vague && stepper_.met_vague_key) note_vague(notes, x);
      if (child_count[x] == 0) {
        threads_.resize(made);
        stepper_.stack().truncate(mark);
        continue;
      }
      stepper_.text().push_back(static_cast<char>(byte[x]));
      enter(first_child[x], child_count[x], made, mark);
      if (notes.returns && may_finish()) notes.returns->push_back(x);
    }
  }

 private:
  struct Level {
    uint32_t child, end;
    uint32_t begin, count;  // its threads
    Stack::Mark mark;       // the stack before these threads were made
    const State* state;     // of the only thread
    bool simple;            // that thread is decided by its state alone
  };

  void enter(uint32_t child, uint32_t children, uint32_t begin, Stack::Mark mark) {
    Level level{child, child + children, begin, static_cast<uint32_t>(threads_.size()) - begin, mark, nullptr, false};
    if (level.count == 1) {
      const Thread& t = threads_[begin];
      const Stack::Node& node = stepper_.stack().node(t.node);
      level.state = &stepper_.arena().state(t.expr);
      level.simple = !node.checked && (!level.state->nullable || node.edge == Stack::kNone);
    }
    levels_.push_back(level);
  }

  bool may_finish() {
    const Level& level = levels_.back();
    for (uint32_t i = level.begin; i < level.begin + level.count; ++i) {
      if (stepper_.may_finish(threads_[i])) return true;
    }
    return false;
  }

  // Appends the successors of the level's threads; false if there are none.
  bool step(const Level& level, uint8_t b) {
    const Stack::Mark mark = stepper_.stack().mark();
    if (level.count == 1) {
      Thread t = threads_[level.begin];
      switch (stepper_.step_one(t, b)) {
        case Stepper::Result::kDead: return false;
        case Stepper::Result::kOne: threads_.push_back(t); return true;
        case Stepper::Result::kSet: break;
      }
    }
    next_.clear();
    stepper_.step_set(std::span(threads_).subspan(level.begin, level.count), b, next_);
    if (next_.empty()) {
      stepper_.stack().truncate(mark);
      return false;
    }
    threads_.insert(threads_.end(), next_.begin(), next_.end());
    return true;
  }

  void note_vague(const Notes& notes, uint32_t x) {
    if (!notes.vague || !stepper_.met_vague_key) return;
    notes.vague->push_back(x);
    stepper_.met_vague_key = false;
  }

  Stepper& stepper_;
  std::vector<Level> levels_;
  std::vector<Thread> threads_;
  std::vector<Thread> next_;
};

// Calls f for every token at or below a node.
template <typename F>
void for_each_token_below(const Trie& trie, uint32_t node, F&& f) {
  std::vector<uint32_t> work{node};
  while (!work.empty()) {
    const uint32_t x = work.back();
    work.pop_back();
    for (uint32_t k = trie.token_begin[x]; k < trie.token_begin[x + 1]; ++k) f(trie.tokens[k]);
    for (uint32_t c = trie.first_child[x]; c < trie.first_child[x] + trie.child_count[x]; ++c) work.push_back(c);
  }
}

}  // namespace grammask
