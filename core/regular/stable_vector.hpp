#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace grammask {

// A vector whose elements never move, so that readers need no lock while one writer (under a lock) appends.
// Chunk k holds 2^(kFirstBits + k) elements.
template <typename T>
class StableVector {
 public:
  static constexpr uint32_t kFirstBits = 10;

  T& operator[](uint32_t i) { return *slot(i); }
  const T& operator[](uint32_t i) const { return *const_cast<StableVector*>(this)->slot(i); }
  uint32_t size() const { return size_; }
  size_t memory_bytes() const {
    size_t n = 0;
    for (uint32_t k = 0; k < kChunks && chunks_[k].load(std::memory_order_relaxed); ++k) n += chunk_size(k) * sizeof(T);
    return n;
  }

  uint32_t push(T&& value) {
    const uint32_t i = size_;
    const uint32_t k = chunk_of(i);
    if (!chunks_[k].load(std::memory_order_relaxed)) {
      owned_[k] = std::make_unique<T[]>(chunk_size(k));
      chunks_[k].store(owned_[k].get(), std::memory_order_release);
    }
    *slot(i) = std::move(value);
    size_ = i + 1;
    return i;
  }

 private:
  static constexpr uint32_t kChunks = 32 - kFirstBits;
  static size_t chunk_size(uint32_t k) { return size_t{1} << (kFirstBits + k); }
  static uint32_t chunk_of(uint32_t i) { return static_cast<uint32_t>(std::bit_width((i >> kFirstBits) + 1u)) - 1u; }
  T* slot(uint32_t i) {
    const uint32_t k = chunk_of(i);
    const uint32_t base = ((1u << k) - 1u) << kFirstBits;
    return chunks_[k].load(std::memory_order_acquire) + (i - base);
  }

  uint32_t size_ = 0;
  std::array<std::atomic<T*>, kChunks> chunks_{};
  std::array<std::unique_ptr<T[]>, kChunks> owned_{};
};

}  // namespace grammask
