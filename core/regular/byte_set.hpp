#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace grammask {

// A set of bytes, as 256 bits.
struct ByteSet {
  std::array<uint64_t, 4> words{};

  static ByteSet all() { return {{~0ull, ~0ull, ~0ull, ~0ull}}; }
  static ByteSet single(uint8_t b) {
    ByteSet s;
    s.add(b);
    return s;
  }
  static ByteSet range(uint8_t low, uint8_t high) {
    ByteSet s;
    for (int b = low; b <= high; ++b) s.add(static_cast<uint8_t>(b));
    return s;
  }

  void add(uint8_t b) { words[b >> 6] |= 1ull << (b & 63); }
  bool has(uint8_t b) const { return (words[b >> 6] >> (b & 63)) & 1; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  int count() const {
    return std::popcount(words[0]) + std::popcount(words[1]) + std::popcount(words[2]) + std::popcount(words[3]);
  }
  // Whether there are at most four; without counting them all.
  bool is_few() const {
    int n = 0;
    for (uint64_t w : words) {
      for (; w; w &= w - 1) {
        if (++n > 4) return false;
      }
    }
    return true;
  }
  bool is_single() const {
    int n = 0;
    for (const uint64_t w : words) {
      if (w & (w - 1)) return false;
      n += w != 0;
    }
    return n == 1;
  }
  // The smallest member; the set must not be empty.
  uint8_t lowest() const {
    for (int i = 0;; ++i) {
      if (words[static_cast<size_t>(i)])
        return static_cast<uint8_t>(i * 64 + std::countr_zero(words[static_cast<size_t>(i)]));
    }
  }
  template <typename F>
  void for_each(F&& f) const {
    for (size_t i = 0; i < 4; ++i) {
      for (uint64_t w = words[i]; w; w &= w - 1)
        f(static_cast<uint8_t>(i * 64 + static_cast<size_t>(std::countr_zero(w))));
    }
  }

  ByteSet operator|(const ByteSet& o) const {
    return {{words[0] | o.words[0], words[1] | o.words[1], words[2] | o.words[2], words[3] | o.words[3]}};
  }
  ByteSet operator&(const ByteSet& o) const {
    return {{words[0] & o.words[0], words[1] & o.words[1], words[2] & o.words[2], words[3] & o.words[3]}};
  }
  ByteSet operator~() const { return {{~words[0], ~words[1], ~words[2], ~words[3]}}; }
  bool operator==(const ByteSet&) const = default;

  uint64_t hash() const {
    uint64_t h = words[0] * 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 29) ^ words[1]) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 32) ^ words[2]) * 0x94d049bb133111ebull;
    h = (h ^ (h >> 29) ^ words[3]) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 32);
  }
};

}  // namespace grammask
