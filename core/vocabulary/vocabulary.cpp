#include "vocabulary/vocabulary.hpp"

#include <algorithm>
#include <stdexcept>

namespace grammask {

namespace {

// The length of the longest token.
uint32_t checked(const Vocabulary::Tokens& tokens) {
  const auto& [bytes, offset, eos] = tokens;
  if (offset.empty()) throw std::invalid_argument("a vocabulary has one offset more than tokens");
  const size_t size = offset.size() - 1;
  if (size >= 1u << 28) throw std::invalid_argument("a vocabulary has at most 2^28 tokens");
  uint32_t longest = 0;
  for (size_t id = 0; id < size; ++id) {
    if (offset[id] > offset[id + 1]) throw std::invalid_argument("the offsets of tokens are not ascending");
    longest = std::max(longest, offset[id + 1] - offset[id]);
  }
  if (offset[0] != 0 || offset[size] != bytes.size()) {
    throw std::invalid_argument("the offsets of tokens do not cover their bytes");
  }
  for (const uint32_t id : eos) {
    if (id >= size) throw std::invalid_argument("end-of-text id " + std::to_string(id) + " is out of range");
    if (offset[id] != offset[id + 1]) throw std::invalid_argument("an end-of-text token has bytes");
  }
  return longest;
}

std::vector<uint32_t> count_characters(const Vocabulary::Tokens& tokens) {
  std::vector<uint32_t> out;
  out.reserve(tokens.offset.size() - 1);
  const char* const bytes = tokens.bytes.data();
  for (size_t id = 0; id + 1 < tokens.offset.size(); ++id) {
    // Bytes 80..BF do not begin a character; as signed numbers they are the lowest.
    const auto n = std::count_if(bytes + tokens.offset[id], bytes + tokens.offset[id + 1],
                                 [](char c) { return static_cast<signed char>(c) >= -64; });
    out.push_back(static_cast<uint32_t>(n));
  }
  return out;
}

Trie trie_of(const Vocabulary::Tokens& tokens) {
  std::vector<std::pair<std::string_view, uint32_t>> texts;
  texts.reserve(tokens.offset.size());
  for (uint32_t id = 0; id + 1 < tokens.offset.size(); ++id) {
    const uint32_t begin = tokens.offset[id], end = tokens.offset[id + 1];
    if (begin < end) texts.emplace_back(std::string_view(tokens.bytes.data() + begin, end - begin), id);
  }
  return build_trie(texts);
}

Vocabulary::Tokens joined(const std::vector<std::optional<std::string>>& tokens, std::vector<uint32_t> eos,
                          uint32_t size) {
  if (tokens.size() > size) throw std::invalid_argument("more tokens than the size of the vocabulary");
  if (size >= 1u << 28) throw std::invalid_argument("a vocabulary has at most 2^28 tokens");
  size_t total = 0;
  for (const auto& t : tokens) total += t ? t->size() : 0;
  if (total > 0xffffffffu) throw std::invalid_argument("the tokens of a vocabulary hold at most 4 GiB");
  std::vector<char> bytes;
  std::vector<uint32_t> offset;
  bytes.reserve(total);
  offset.reserve(size + 1);
  for (uint32_t id = 0; id < size; ++id) {
    offset.push_back(static_cast<uint32_t>(bytes.size()));
    // End-of-text ends the output; it never stands for its text.
    const bool is_eos = std::find(eos.begin(), eos.end(), id) != eos.end();
    if (id < tokens.size() && tokens[id] && !is_eos) bytes.insert(bytes.end(), tokens[id]->begin(), tokens[id]->end());
  }
  offset.push_back(static_cast<uint32_t>(bytes.size()));
  return {std::move(bytes), std::move(offset), std::move(eos)};
}

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::optional<std::string>>& tokens, std::vector<uint32_t> eos, uint32_t size)
    : Vocabulary(joined(tokens, std::move(eos), size)) {}

Vocabulary::Vocabulary(Tokens tokens, std::shared_ptr<const void> memory)
    : memory_(std::move(memory)), tokens_(std::move(tokens)), longest_(checked(tokens_)), trie_(trie_of(tokens_)) {}

Vocabulary::Vocabulary(Tokens tokens, Trie trie, std::shared_ptr<const void> memory)
    : memory_(std::move(memory)), tokens_(std::move(tokens)), longest_(checked(tokens_)), trie_(std::move(trie)) {
  if (!trie_.well_formed(size())) throw std::invalid_argument("the trie of a vocabulary is malformed");
}

const std::vector<uint32_t>& Vocabulary::characters() const {
  std::call_once(counted_, [&] { characters_ = count_characters(tokens_); });
  return characters_;
}

std::span<const uint32_t> Vocabulary::longer_than(uint32_t length) const {
  const auto length_of = [&](uint32_t id) { return tokens_.offset[id + 1] - tokens_.offset[id]; };
  std::call_once(sorted_, [&] {
    for (uint32_t id = 0; id < size(); ++id) {
      if (length_of(id) > kFewLonger) by_length_.push_back(id);
    }
    std::stable_sort(by_length_.begin(), by_length_.end(),
                     [&](uint32_t a, uint32_t b) { return length_of(a) > length_of(b); });
  });
  const auto end =
      std::partition_point(by_length_.begin(), by_length_.end(), [&](uint32_t id) { return length_of(id) > length; });
  return {by_length_.data(), static_cast<size_t>(end - by_length_.begin())};
}

bool Vocabulary::is_eos(uint32_t id) const {
  return std::find(tokens_.eos.begin(), tokens_.eos.end(), id) != tokens_.eos.end();
}

std::optional<std::string_view> Vocabulary::token(uint32_t id) const {
  if (id >= size()) return std::nullopt;
  const uint32_t begin = tokens_.offset[id], end = tokens_.offset[id + 1];
  if (begin == end) return std::nullopt;
  return std::string_view(tokens_.bytes.data() + begin, end - begin);
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
  bool renew = !arena_;
  if (arena_) {
    const std::lock_guard arena_lock(arena_->mutex());
    // One constraint may have used up most of what all masks to come may add.
    renew = arena_->pool().size() > arena_->pool().limit() / 2;
    // Adding up the memory of an arena takes time in its size, so it has to grow by a part of that before the next time.
    constexpr uint64_t kBytesOfOne = 256, kPart = 16, kFew = 1024;
    const uint64_t things = arena_->pool().size() + arena_->state_count() + arena_->mask_bytes() / kBytesOfOne;
    if (things >= next_check_) {
      next_check_ = things + things / kPart + kFew;
      renew = renew || arena_->memory_bytes() > arena_budget_;
    }
  }
  if (renew) {
    arena_ = std::make_shared<Arena>();
    next_check_ = 0;
  }
  return arena_;
}

void Vocabulary::set_arena_budget(size_t bytes) {
  const std::lock_guard lock(arena_mutex_);
  arena_budget_ = bytes;
  next_check_ = 0;
}

size_t Vocabulary::memory_bytes() const {
  return tokens_.bytes.memory_bytes() + tokens_.offset.memory_bytes() + trie_.memory_bytes();
}

}  // namespace grammask
