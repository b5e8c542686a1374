#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "grammar/arena.hpp"
#include "matcher/stack.hpp"

namespace grammask {

// One way to read the text so far: the expression still to match in the current frame, and the frames below.
struct Thread {
  ExprId expr;
  uint32_t node;
  bool operator==(const Thread&) const = default;
};

// Which numbers were seen: a list while they are few, as they nearly always are, then a hash set.
class SeenSet {
 public:
  void clear() {
    few_.clear();
    if (!many_.empty()) many_ = {};  // clear() takes time in the most that it ever held
  }
  bool has(uint64_t x) const {
    return many_.empty() ? std::find(few_.begin(), few_.end(), x) != few_.end() : many_.count(x) > 0;
  }
  // Whether x is new.
  bool insert(uint64_t x) {
    if (!many_.empty()) return many_.insert(x).second;
    if (std::find(few_.begin(), few_.end(), x) != few_.end()) return false;
    few_.push_back(x);
    constexpr size_t kFew = 32;
    if (few_.size() > kFew) many_.insert(few_.begin(), few_.end());
    return true;
  }
  bool insert(const Thread& t) { return insert(uint64_t{t.expr} << 32 | t.node); }

 private:
  std::vector<uint64_t> few_;
  std::unordered_set<uint64_t> many_;
};

// Moves threads by bytes and special tokens.
//
// The simple case is one thread whose state says what the byte does: go on, call one letter, or return; step_one decides
// it by look-ups. Where several apply, step_set closes over calls and returns with a work list, one stack node per
// letter and position (Scott & Johnstone's GLL). Letters that may derive the empty text were resolved when the state was
// built, so a frame never returns at the position where it was called.
//
// Tests: core/tests/matcher_test.cpp, tests/core/test_exactness.py.
class Stepper {
 public:
  enum class Result { kDead, kOne, kSet };

  explicit Stepper(Arena& arena) : arena_(arena) {}

  Arena& arena() { return arena_; }
  Stack& stack() { return stack_; }
  const Stack& stack() const { return stack_; }
  std::string& text() { return text_; }
  const std::string& text() const { return text_; }

  // kOne: `thread` was replaced by its successor. kSet: use step_set (thread is unchanged).
  Result step_one(Thread& thread, uint8_t byte);
  // Appends the successors to out, without duplicates. Where every thread is decided by its state alone nothing is called.
  void step_set(std::span<const Thread> threads, uint8_t byte, std::vector<Thread>& out);
  void step_token(std::span<const Thread> threads, uint32_t token_id, std::vector<Thread>& out);
  // Whether the threads can read all of the bytes; everything is left as it was.
  bool can_read(std::span<const Thread> threads, std::string_view bytes);
  // Special tokens that may come next.
  void special_tokens(std::span<const Thread> threads, std::vector<uint32_t>& out);
  // Whether the thread may return through the bottom of its stack without reading more.
  bool may_finish(Thread thread);
  // Whether the key of a frame may still turn out to repeat an earlier one in a way that its body cannot exclude: scalars
  // are excluded by their spellings, so only collections and numbers of hundreds of digits can.
  bool may_repeat(uint32_t node) const;
  // Calls a letter from `parent`: the new frame's node.
  uint32_t call(const Letter& letter, uint32_t parent) { return push(letter, parent); }
  // What a frame still reads and then the only frame below it, as one frame; false where that is not the same.
  bool merge_frames(Thread& thread);
  // The threads after this frame returns now.
  void returned(const Thread& thread, std::vector<Thread>& out);
  // A superset of the bytes that may come next.
  ByteSet start(std::span<const Thread> threads);
  ByteSet start(Thread thread);

  // While masks are computed, keys return without their text (one expression for all of them), which matters only if
  // another key of the same object begins before the walk ends: met_vague_key tells, and the walk is done again with texts.
  bool vague_keys = false;
  bool met_vague_key = false;

 private:
  struct Work {
    Thread thread;
    bool fresh;  // called at this position: may not return yet
  };
  uint32_t push(const Letter& letter, uint32_t parent);
  // What is left of `next` in a frame whose key is complete with the text and this byte.
  ExprId checked(ExprId next, uint32_t node, uint8_t byte);
  bool step_each(std::span<const Thread> threads, uint8_t byte, std::vector<Thread>& out);
  ExprId after_return(const Stack::Node& node, ExprId rest);
  bool may_continue(ExprId rest, uint32_t parent, uint8_t byte, int depth);
  bool may_finish_somehow(const Thread& thread);
  template <typename Consume, typename Enter>
  void close(std::span<const Thread> threads, Consume consume, Enter enter);

  Arena& arena_;
  Stack stack_;
  std::string text_;
  std::vector<Work> work_;
  SeenSet returning_, fresh_;  // what is in work_
  SeenSet stepped_;            // what was appended to the result
  std::vector<std::pair<ExprId, uint32_t>> called_;  // letters called at this position and their nodes
};

}  // namespace grammask
