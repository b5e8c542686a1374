#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "grammar/arena.hpp"
#include "vocabulary/trie.hpp"
#include "vocabulary/vocabulary.hpp"

namespace grammask {

// Tokens that leave a frame: the trie nodes after which it may return, and what remains of tokens below them as a trie of
// its own, in which equal remainders are one path. The trie is made when first asked for.
class Leaving {
 public:
  explicit Leaving(std::vector<uint32_t> nodes);
  // Another number for each.
  uint32_t number() const { return number_; }
  const std::vector<uint32_t>& nodes() const { return nodes_; }
  const RemainderTrie& remainders(const Trie& trie) const {
    std::call_once(once_, [&] { remainders_ = build_remainder_trie(trie, nodes_); });
    return remainders_;
  }
  // Only the remainders that begin with some bytes, as one trie or as one for each of these bytes. After blanks, say, any
  // word may follow, but mostly only brackets, quotation marks and numbers are asked for.
  template <typename F>
  void for_each_remainders(const Trie& trie, const ByteSet& starts, F&& f) const {
    constexpr int kFewStarts = 32;
    if (starts.count() > kFewStarts) return f(remainders(trie));
    starts.for_each([&](uint8_t b) { f(remainders_from(trie, b)); });
  }
  size_t memory_bytes() const { return nodes_.capacity() * 12 + sizeof(*this); }

 private:
  const RemainderTrie& remainders_from(const Trie& trie, uint8_t first) const;

  std::vector<uint32_t> nodes_;
  uint32_t number_;
  mutable std::once_flag once_;
  mutable RemainderTrie remainders_;
  mutable ArenaMutex mutex_;  // of by_first_
  mutable std::map<uint8_t, std::unique_ptr<const RemainderTrie>> by_first_;
};

// What a state alone decides about every token, whatever lies below its frame on the stack.
//
// A token is *inside* if it can be read without leaving the frame. A token that leaves the frame somewhere in its middle
// is decided by the frames below. For an unconstrained JSON string the first kind is most of any vocabulary and the
// second about one token in a hundred.
struct LocalMask {
  // Inside tokens: (words without `without`) and `ids`. Large bit sets are shared between the masks of similar states.
  std::shared_ptr<const std::vector<uint32_t>> words;
  std::vector<uint32_t> without;  // sorted
  std::vector<uint32_t> ids;
  // So many tokens leave that a trie of remainders would not pay: what follows the frame is read as part of it instead.
  // `leaving` need not be known then.
  bool walk_directly = false;
  static constexpr size_t kManyBelow = 4096;
  bool returns_at_once = false;  // the state is nullable: every token may also belong to the frames below
  std::shared_ptr<const Leaving> leaving;  // null if no token leaves
  bool inside_leaves_unlisted = false;  // leaving does not list the nodes below which all tokens are inside

  // fresh: out holds nothing yet, not even zeros.
  void add_inside_to(uint32_t* out, size_t size, bool fresh) const;
  size_t memory_bytes() const;
};

// The local mask of a state, made on first use and kept in the arena.
const LocalMask& local_mask(Arena& arena, const Vocabulary& vocabulary, ExprId e);

}  // namespace grammask
