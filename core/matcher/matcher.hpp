#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mask/local_mask.hpp"
#include "mask/remainder_mask.hpp"
#include "mask/walk.hpp"
#include "matcher/stepper.hpp"
#include "vocabulary/vocabulary.hpp"

namespace grammask {

// A constraint compiled for a vocabulary: immutable, shared by its matchers.
struct Compiled {
  std::shared_ptr<Vocabulary> vocabulary;
  std::shared_ptr<Arena> arena;
  ExprId root;
  bool names_tokens = false;  // some rule names a token by its id
  // How long one mask or one token may take; the matcher throws TooLarge beyond it and stays where it was.
  double work_seconds = 10.0;
};

// The position of one sequence inside a compiled constraint. Used by one thread at a time.
class Matcher {
 public:
  // Held by the thread that uses the matcher, where threads may meet. Throws std::runtime_error if another one does.
  class Use {
   public:
    explicit Use(Matcher& m) : flag_(m.in_use_) {
      if (flag_.exchange(true, std::memory_order_acquire))
        throw std::runtime_error("the matcher is being used by another thread: each sequence needs its own (copy())");
    }
    ~Use() { flag_.store(false, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic<bool>& flag_;
  };

  explicit Matcher(std::shared_ptr<const Compiled> compiled);
  Matcher(const Matcher&);
  Matcher& operator=(const Matcher&) = delete;

  const Compiled& compiled() const { return *compiled_; }

  // out: words() words of the vocabulary, bit t % 32 of word t / 32 is token t.
  // Like everything that steps the matcher, throws TooLarge after Compiled::work_seconds.
  void fill_mask(uint32_t* out);
  // True and moved on, or false and unchanged.
  bool accept(uint32_t token_id);
  bool accept_bytes(std::string_view bytes);
  size_t matched_prefix(std::string_view bytes);
  std::string next_bytes();
  // Undoes the last n calls of accept and accept_bytes. Throws std::out_of_range if there were fewer.
  void rollback(size_t n);
  std::string forced_bytes(size_t limit);
  std::vector<uint32_t> forced_tokens();
  // Tokens that complete the output from here: those of a short text, in as few tokens as it can be written with. Empty
  // if the output is complete, nullopt if no completion was found.
  std::optional<std::vector<uint32_t>> shortest_completion();
  bool is_complete();
  bool is_terminated() const { return terminated_; }
  size_t history_size() const { return history_.size(); }
  std::vector<std::string> stack();
  size_t memory_bytes() const;

 private:
  struct Moment {  // what to restore
    std::vector<Thread> threads;
    Stack::Mark mark;
    size_t text;
    bool terminated;
  };
  bool step(uint8_t byte, std::vector<Thread>& threads);
  // Goes back to where the matcher was, also when something throws, unless told to keep what happened.
  struct Back {
    Matcher& matcher;
    Moment before;
    bool keep = false;
    explicit Back(Matcher& m) : matcher(m), before(m.now()) {}
    ~Back() {
      if (!keep) matcher.restore(std::move(before));
    }
    Back(const Back&) = delete;
    Back& operator=(const Back&) = delete;
  };
  Moment now() const { return {threads_, stepper_.stack().mark(), stepper_.text().size(), terminated_}; }
  void restore(Moment&& m);
  uint64_t length_below(uint32_t node, int depth);
  bool complete_frame(std::vector<uint32_t>& symbols);
  Thread inside(Thread thread);
  void add_mask(Thread thread, uint32_t* out);
  void add_readable(const Thread& thread, const Trie& trie, uint32_t* out);
  void add_remainders(const Thread& thread, const Leaving& leaving, uint32_t* out);
  void add_by_walk(const Trie& trie, std::span<const Thread> from, const Thread& thread, uint32_t* out);
  const RemainderMask& remainder_mask_of(const Leaving& leaving, ExprId rest);
  void clear_if_fresh(uint32_t* out);

  std::shared_ptr<const Compiled> compiled_;
  Stepper stepper_;
  Walker walker_;
  std::vector<Thread> threads_;
  std::vector<Thread> scratch_;
  // While a mask is computed: threads whose mask is to be added, those seen, frames that tokens leave, undecided nodes.
  std::vector<Thread> work_;
  SeenSet masked_;
  struct Left {
    const Leaving* leaving;
    uint32_t node;
    bool operator==(const Left&) const = default;
  };
  std::vector<Left> left_;
  std::vector<Thread> below_;
  std::vector<uint32_t> vague_;
  // What was looked up in the arena last, by a hash.
  struct Looked {
    uint64_t key = ~uint64_t{0};
    const RemainderMask* mask = nullptr;
  };
  std::array<Looked, 16> looked_;
  std::vector<Moment> history_;
  std::atomic<bool> in_use_{false};
  bool terminated_ = false;
  bool fresh_ = false;  // nothing was written to the mask yet
};

}  // namespace grammask
