#include "vocabulary/vocabulary.hpp"

#include <algorithm>
#include <stdexcept>

namespace grammask {

Vocabulary::Vocabulary(std::vector<std::optional<std::string>> tokens, std::vector<uint32_t> eos, uint32_t size)
    : size_(size), eos_(std::move(eos)) {
  if (tokens.size() > size) throw std::invalid_argument("more tokens than the size of the vocabulary");
  if (size >= 1u << 28) throw std::invalid_argument("a vocabulary has at most 2^28 tokens");
  for (const uint32_t id : eos_) {
    if (id >= size) throw std::invalid_argument("end-of-text id " + std::to_string(id) + " is out of range");
  }
  size_t total = 0;
  for (const auto& t : tokens) total += t ? t->size() : 0;
  if (total > 0xffffffffu) throw std::invalid_argument("the tokens of a vocabulary hold at most 4 GiB");
  bytes_.reserve(total);
  offset_.reserve(size + 1);
  is_text_.assign(size, false);
  for (uint32_t id = 0; id < size; ++id) {
    offset_.push_back(static_cast<uint32_t>(bytes_.size()));
    // End-of-text ends the output; it never stands for its text.
    if (id < tokens.size() && tokens[id] && !tokens[id]->empty() && !is_eos(id)) {
      bytes_ += *tokens[id];
      is_text_[id] = true;
      longest_ = std::max(longest_, static_cast<uint32_t>(tokens[id]->size()));
    }
  }
  offset_.push_back(static_cast<uint32_t>(bytes_.size()));
  std::vector<std::pair<std::string_view, uint32_t>> texts;
  texts.reserve(size);
  for (uint32_t id = 0; id < size; ++id) {
    if (is_text_[id]) texts.emplace_back(*token(id), id);
  }
  trie_ = build_trie(std::move(texts));
}

bool Vocabulary::is_eos(uint32_t id) const { return std::find(eos_.begin(), eos_.end(), id) != eos_.end(); }

std::optional<std::string_view> Vocabulary::token(uint32_t id) const {
  if (id >= size_ || !is_text_[id]) return std::nullopt;
  return std::string_view(bytes_).substr(offset_[id], offset_[id + 1] - offset_[id]);
}

std::vector<uint32_t> Vocabulary::tokenize_greedy(std::string_view text, bool hold_back) const {
  std::vector<uint32_t> out;
  for (size_t at = 0; at < text.size();) {
    uint32_t node = 0, best = 0xffffffffu;
    size_t length = 0, i = at;
    for (; i < text.size(); ++i) {
      const uint32_t child = trie_.child(node, static_cast<uint8_t>(text[i]));
      if (child == 0) break;
      node = child;
      if (!trie_.own(node).empty()) {
        best = trie_.own(node).front();
        length = i + 1 - at;
      }
    }
    // The text ran out inside the trie: a longer token could still cover this and what follows.
    if (hold_back && i == text.size() && trie_.child_count[node]) return out;
    if (length == 0) return out;
    out.push_back(best);
    at += length;
  }
  return out;
}

ByteSet Vocabulary::single_bytes() const {
  ByteSet out;
  for (uint32_t x = trie_.first_child[0]; x < trie_.first_child[0] + trie_.child_count[0]; ++x) {
    if (!trie_.own(x).empty()) out.add(trie_.byte[x]);
  }
  return out;
}

bool Vocabulary::tokenize_shortest(std::string_view text, std::vector<uint32_t>& out) const {
  constexpr uint32_t kNone = 0xffffffffu;
  struct Way {
    uint32_t tokens = kNone, first = kNone, length = 0;
  };
  std::vector<Way> from(text.size() + 1);
  from[text.size()].tokens = 0;
  for (size_t at = text.size(); at-- > 0;) {
    uint32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      node = trie_.child(node, static_cast<uint8_t>(text[i]));
      if (node == 0) break;
      if (trie_.own(node).empty() || from[i + 1].tokens == kNone) continue;
      // Of equally short ways the one that starts with the longest token.
      if (from[i + 1].tokens + 1 <= from[at].tokens) {
        from[at] = {from[i + 1].tokens + 1, trie_.own(node).front(), static_cast<uint32_t>(i + 1 - at)};
      }
    }
  }
  if (from[0].tokens == kNone) return false;
  for (size_t at = 0; at < text.size(); at += from[at].length) out.push_back(from[at].first);
  return true;
}

std::shared_ptr<Arena> Vocabulary::arena() {
  const std::lock_guard lock(arena_mutex_);
  // Adding up the memory of an arena takes time in its size: once in a while is enough.
  constexpr uint32_t kUsesBetweenChecks = 16;
  bool renew = !arena_;
  if (arena_) {
    const std::lock_guard arena_lock(arena_->mutex());
    // One constraint may have used up most of what all masks to come may add.
    renew = arena_->pool().size() > arena_->pool().limit() / 2;
    if (++arena_uses_ % kUsesBetweenChecks == 0) renew = renew || arena_->memory_bytes() > arena_budget_;
  }
  if (renew) arena_ = std::make_shared<Arena>();
  return arena_;
}

size_t Vocabulary::memory_bytes() const {
  return bytes_.capacity() + offset_.capacity() * 4 + is_text_.capacity() / 8 + trie_.memory_bytes();
}

}  // namespace grammask
