#include "regular/words.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace grammask {

WordMachine::WordMachine(std::span<const std::string_view> words) : index_(16, Hash{this}, Equal{this}) {
  uint64_t bytes = 0;
  for (const std::string_view w : words) bytes += w.size();
  if (bytes >= std::numeric_limits<uint32_t>::max() || words.size() >= std::numeric_limits<uint32_t>::max())
    throw std::length_error("the words take more than 4 GiB");
  text_.reserve(bytes);
  begin_.reserve(words.size() + 1);
  for (const std::string_view w : words) {
    begin_.push_back(static_cast<uint32_t>(text_.size()));
    text_ += w;
  }
  begin_.push_back(static_cast<uint32_t>(text_.size()));
}

size_t WordMachine::Hash::operator()(uint32_t state) const {
  const Range r = machine->states_[state];
  if (r.high - r.low == 1) return std::hash<std::string_view>{}(machine->rest(r));
  return std::hash<uint64_t>{}((uint64_t{r.low} << 32 | r.depth) * 0x9e3779b97f4a7c15u);
}

bool WordMachine::Equal::operator()(uint32_t a, uint32_t b) const {
  const Range x = machine->states_[a], y = machine->states_[b];
  const bool one = x.high - x.low == 1;
  if (one != (y.high - y.low == 1)) return false;
  if (one) return machine->rest(x) == machine->rest(y);
  return x.low == y.low && x.high == y.high && x.depth == y.depth;
}

uint32_t WordMachine::number(Range r) {
  const auto fresh = static_cast<uint32_t>(states_.size());
  states_.push_back(r);
  const auto [known, inserted] = index_.insert(fresh);
  if (!inserted) states_.pop_back();
  return *known;
}

uint32_t WordMachine::first_from(Range r, int byte) const {
  if (byte > 255) return r.high;
  // The answer is mostly near: steps of growing size, then halving.
  uint32_t low = r.low, high = r.high;
  for (uint32_t stride = 1; low < high; stride *= 2) {
    const uint32_t probe = stride < high - low ? low + stride - 1 : high - 1;
    if (byte_at(probe, r.depth) >= byte) {
      high = probe;
      break;
    }
    low = probe + 1;
  }
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (byte_at(middle, r.depth) >= byte) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

uint32_t WordMachine::step(uint32_t state, uint8_t byte) {
  Range r = longer(states_[state]);
  r.low = first_from(r, byte);
  if (r.low == r.high || byte_at(r.low, r.depth) != byte) return kDead;
  r.high = first_from(r, byte + 1);
  ++r.depth;
  return number(r);
}

ByteSet WordMachine::alphabet(uint32_t state) const {
  ByteSet bytes;
  for (Range r = longer(states_[state]); r.low < r.high;) {
    const uint8_t b = byte_at(r.low, r.depth);
    bytes.add(b);
    r.low = first_from(r, b + 1);
  }
  return bytes;
}

bool WordMachine::count_words(uint32_t state, uint64_t& count) const {
  count = states_[state].high - states_[state].low;
  return true;
}

bool WordMachine::shortest(uint32_t state, std::string& out) const {
  const Range r = states_[state];
  uint32_t best = r.low;
  for (uint32_t i = r.low; i < r.high; ++i) {
    if (length(i) < length(best)) best = i;
  }
  out = word(best).substr(r.depth);
  return true;
}

size_t WordMachine::memory_bytes() const {
  constexpr size_t kPerEntry = 32;  // of the hash table
  return sizeof(*this) + text_.capacity() + begin_.capacity() * sizeof(uint32_t) + states_.capacity() * sizeof(Range) +
         index_.size() * kPerEntry;
}

bool WordMachine::equals(std::span<const std::string_view> words) const {
  if (words.size() != size()) return false;
  for (uint32_t i = 0; i < size(); ++i) {
    if (words[i] != word(i)) return false;
  }
  return true;
}

void sort_words(std::vector<std::string_view>& words) {
  // The first bytes as a number decide nearly every comparison without a look at the text.
  struct Entry {
    uint64_t head;
    std::string_view word;
  };
  constexpr size_t kHead = 8;
  std::vector<Entry> entries;
  entries.reserve(words.size());
  for (const std::string_view w : words) {
    uint64_t head = 0;
    for (size_t i = 0; i < kHead; ++i) head = head << 8 | (i < w.size() ? static_cast<uint8_t>(w[i]) : 0u);
    entries.push_back({head, w});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.head != b.head ? a.head < b.head : a.word < b.word; });
  for (size_t i = 0; i < words.size(); ++i) words[i] = entries[i].word;
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

uint64_t hash_words(std::span<const std::string_view> words) {
  uint64_t h = words.size();
  for (const std::string_view w : words) {
    h = (h ^ std::hash<std::string_view>{}(w)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

}  // namespace grammask
