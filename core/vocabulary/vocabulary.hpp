#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/arena.hpp"
#include "vocabulary/trie.hpp"

namespace grammask {

// The tokens of one tokenizer as bytes, their trie, and the arena that constraints over it share.
class Vocabulary {
 public:
  // The bytes of all tokens, one after the other, and where each begins, for ids 0 to size - 1, and where the last ends.
  // Ids that never match text, those of end-of-text among them, have no bytes.
  struct Tokens {
    Column<char> bytes;
    Column<uint32_t> offset;
    std::vector<uint32_t> eos;
  };

  // tokens: nullopt for ids that never match text. Ids from tokens.size() to size - 1 are padding.
  // Throws std::invalid_argument for ids out of range.
  Vocabulary(const std::vector<std::optional<std::string>>& tokens, std::vector<uint32_t> eos_token_ids, uint32_t size);
  // memory: what holds the bytes and offsets, where the columns do not own them.
  // Throws std::invalid_argument for ids and offsets out of range, and where an end-of-text token has bytes.
  explicit Vocabulary(Tokens tokens, std::shared_ptr<const void> memory = nullptr);
  // With a trie that was built before, of these very tokens; throws if it is not well formed.
  Vocabulary(Tokens tokens, Trie trie, std::shared_ptr<const void> memory);

  uint32_t size() const { return static_cast<uint32_t>(tokens_.offset.size()) - 1; }
  const Tokens& tokens() const { return tokens_; }
  uint32_t words() const { return (size() + 31) / 32; }
  const std::vector<uint32_t>& eos_token_ids() const { return tokens_.eos; }
  bool is_eos(uint32_t id) const;
  // The bytes of a token, nullopt if it never matches text.
  std::optional<std::string_view> token(uint32_t id) const;
  // How many characters of UTF-8 begin in each token.
  const std::vector<uint32_t>& characters() const;
  const Trie& trie() const { return trie_; }
  uint32_t longest() const { return longest_; }
  // Tokens of more than so many bytes, but at least kFewLonger of them; the longest first.
  std::span<const uint32_t> longer_than(uint32_t length) const;
  static constexpr uint32_t kFewLonger = 16;
  std::vector<uint32_t> tokenize_greedy(std::string_view text, bool hold_back) const;

  // The bytes that are tokens by themselves.
  ByteSet single_bytes() const;
  // Appends the fewest tokens that spell the text; false if none do.
  bool tokenize_shortest(std::string_view text, std::vector<uint32_t>& out) const;

  // The current arena. A new generation begins when the old one has outgrown the budget; constraints keep the one they
  // were compiled in, so the memory of an old generation is freed with its last constraint.
  std::shared_ptr<Arena> arena();
  void set_arena_budget(size_t bytes);
  size_t arena_budget() const { return arena_budget_; }
  size_t memory_bytes() const;

 private:
  std::shared_ptr<const void> memory_;
  Tokens tokens_;
  uint32_t longest_;
  Trie trie_;
  mutable std::once_flag sorted_, counted_;
  mutable std::vector<uint32_t> characters_;
  mutable std::vector<uint32_t> by_length_;  // tokens of more than kFewLonger bytes, the longest first
  ArenaMutex arena_mutex_;
  std::shared_ptr<Arena> arena_;
  uint64_t next_check_ = 0;  // how many things the arena holds when its memory is added up again
  size_t arena_budget_ = size_t{256} << 20;
};

}  // namespace grammask
