#pragma once

#include <span>
#include <vector>

#include "matcher/stepper.hpp"
#include "vocabulary/trie.hpp"

namespace grammask {

// Walks a trie with threads, skipping the subtree of every node whose bytes the threads cannot read, and taking as a whole
// the subtree of every node in whose state all bytes below are read without leaving it (most of the trie within a text).
//
// Nodes are taken breadth first, which is the order in which the trie lies in memory. Almost all of the time there is one
// thread whose state decides the byte by a look-up; that loop touches nothing else.
//
// Texts are not kept: keys return vaguely (Stepper::vague_keys), and where that matters the node is reported.
class Walker {
 public:
  // What a walk reports, besides calling visit(tokens) for the tokens at nodes that can be read.
  struct Notes {
    std::vector<uint32_t>* returns = nullptr;  // nodes with children after which the lowest frame may return
    std::vector<uint32_t>* vague = nullptr;    // nodes that could not be decided without the text of a key
    ByteSet skipped;                           // bytes not to be tried at the root
  };

  explicit Walker(Stepper& stepper) : stepper_(stepper) {}

  template <typename Visit>
  void walk(const Trie& trie, std::span<const Thread> start, Visit visit, Notes notes = {}, uint32_t root = 0) {
    if (trie.empty() || start.empty()) return;
    const Lent lent(queue_);
    const Stack::Mark mark = stepper_.stack().mark();
    const bool was_vague = stepper_.vague_keys;
    stepper_.vague_keys = true;
    stepper_.met_vague_key = false;
    queue_.clear();
    sets_.clear();
    next_.assign(start.begin(), start.end());
    enqueue(root, notes);
    if (!notes.skipped.empty()) queue_[0].simple = false;

    const uint8_t* const byte = trie.byte.data();
    const uint16_t* const child_count = trie.child_count.data();
    for (size_t at = 0; at < queue_.size(); ++at) {
      const Entry entry = queue_[at];
      if (entry.simple && !entry.returns && !trie.below_end.empty() && stays(trie, entry)) {
        visit(trie.below(entry.node));
        continue;
      }
      const uint32_t end = trie.first_child[entry.node] + child_count[entry.node];
      if (entry.simple) {
        const State& s = *entry.state;
        const uint8_t* const class_of = s.class_of;
        const uint32_t* const action = s.action.data();
        const auto read = [&](uint32_t x) {
          const uint32_t a = action[class_of[byte[x]]];
          const Act act = static_cast<Act>(a & 3);
          if (act == Act::kDead) return;
          if (act == Act::kNext) {
            visit(trie.own(x));
            if (child_count[x] == 0) return;
            // Most bytes of a text leave its state as it is.
            if (a >> 2 == s.self) {
              queue_.push_back({x, entry.stack_node, entry.state, true, entry.returns});
              if (entry.returns) notes.returns->push_back(x);
            } else {
              next_.assign(1, {a >> 2, entry.stack_node});
              if (enqueue(x, notes)) notes.returns->push_back(x);
            }
          } else {
            step(trie, entry, x, visit, notes);
          }
        };
        // Where one byte out of many can be read, as within a keyword, the others are not looked at.
        constexpr uint32_t kMany = 12;
        if (child_count[entry.node] >= kMany && s.start.is_few()) {
          s.start.for_each([&](uint8_t b) {
            if (const uint32_t x = trie.child(entry.node, b)) read(x);
          });
        } else {
          for (uint32_t x = trie.first_child[entry.node]; x < end; ++x) read(x);
        }
      } else {
        // Most children cannot be read: a look at what may come next at all spares stepping them.
        const ByteSet viable = entry.state ? stepper_.start({entry.state->self, entry.stack_node})
                                           : stepper_.start(std::span(sets_).subspan(entry.stack_node, entry.count));
        for (uint32_t x = trie.first_child[entry.node]; x < end; ++x) {
          if (viable.has(byte[x]) && !(at == 0 && notes.skipped.has(byte[x]))) step(trie, entry, x, visit, notes);
        }
      }
    }
    stepper_.vague_keys = was_vague;
    stepper_.stack().truncate(mark);
  }

 private:
  struct Entry {
    uint32_t node;
    uint32_t stack_node;  // of the only thread; else where its threads begin in sets_
    const State* state;   // of the only thread; null if there are several
    bool simple;          // that thread is decided by its state alone
    bool returns;         // the lowest frame may return here
    uint32_t count = 1;
  };

  // The queue of the thread's last walk, lent to the next one: it may hold as many entries as the trie has nodes, and memory
  // that is new to the process costs more than the walk.
  class Lent {
   public:
    explicit Lent(std::vector<Entry>& queue) : queue_(queue) { queue_.swap(spare()); }
    ~Lent() { queue_.swap(spare()); }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;

   private:
    static std::vector<Entry>& spare() {
      static thread_local std::vector<Entry> kept;
      return kept;
    }
    std::vector<Entry>& queue_;
  };

  // Whether all that is below a node leads back to its state, byte by byte or character by character.
  bool stays(const Trie& trie, const Entry& entry) {
    const ByteSet& below = trie.bytes_below(entry.node);
    const State& s = *entry.state;
    if ((below & ~s.loops).empty()) return true;
    if (!trie.whole_below(entry.node)) return false;
    // Bytes in the middle of characters are known to be in order.
    static const ByteSet kMiddle = ByteSet::range(0x80, 0xbf);
    const ByteSet ascii{{~uint64_t{0}, ~uint64_t{0}, 0, 0}};
    if (!(below & ascii & ~s.loops).empty()) return false;
    return (below & ~stepper_.arena().character_loops(s) & ~kMiddle).empty();
  }

  // Queues a node with the threads in next_. Whether the lowest frame may return there and somebody wants to know.
  bool enqueue(uint32_t x, const Notes& notes) {
    Entry entry{x, 0, nullptr, false, false, static_cast<uint32_t>(next_.size())};
    if (next_.size() == 1) {
      entry.state = &stepper_.arena().state(next_[0].expr);
      entry.stack_node = next_[0].node;
      const Stack::Node& node = stepper_.stack().node(entry.stack_node);
      entry.simple = !node.checked && (!entry.state->nullable || node.edge == Stack::kNone);
      entry.returns = notes.returns && entry.state->nullable && stepper_.may_finish(next_[0]);
    } else {
      entry.stack_node = static_cast<uint32_t>(sets_.size());
      sets_.insert(sets_.end(), next_.begin(), next_.end());
      for (const Thread& t : next_) entry.returns = entry.returns || (notes.returns && stepper_.may_finish(t));
    }
    queue_.push_back(entry);
    return entry.returns;
  }

  template <typename Visit>
  void step(const Trie& trie, const Entry& entry, uint32_t x, Visit& visit, const Notes& notes) {
    const uint8_t b = trie.byte[x];
    next_.clear();
    bool decided = false;
    if (entry.count == 1) {
      Thread t{entry.state->self, entry.stack_node};
      const auto result = stepper_.step_one(t, b);
      decided = result != Stepper::Result::kSet;
      if (result == Stepper::Result::kOne) next_.push_back(t);
      if (!decided) {
        const Thread whole{entry.state->self, entry.stack_node};
        stepper_.step_set({&whole, 1}, b, next_);
      }
    } else {
      stepper_.step_set(std::span(sets_).subspan(entry.stack_node, entry.count), b, next_);
    }
    if (stepper_.met_vague_key) {
      stepper_.met_vague_key = false;
      if (notes.vague) notes.vague->push_back(x);
    }
    if (next_.empty()) return;
    visit(trie.own(x));
    if (trie.child_count[x] && enqueue(x, notes)) notes.returns->push_back(x);
  }

  Stepper& stepper_;
  std::vector<Entry> queue_;
  std::vector<Thread> sets_;
  std::vector<Thread> next_;
};

// Calls f for every token at or below a node.
template <typename F>
void for_each_token_below(const Trie& trie, uint32_t node, F&& f) {
  std::vector<uint32_t> work{node};
  while (!work.empty()) {
    const uint32_t x = work.back();
    work.pop_back();
    for (const uint32_t id : trie.own(x)) f(id);
    for (uint32_t c = trie.first_child[x]; c < trie.first_child[x] + trie.child_count[x]; ++c) work.push_back(c);
  }
}

}  // namespace grammask
