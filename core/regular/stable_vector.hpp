#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace grammask {

// A vector whose elements never move, so that readers need no lock while one writer (under a lock) appends. Chunks are
// small, so that no push takes long.
template <typename T>
class StableVector {
 public:
  static constexpr uint32_t kChunkBits = 13;
  static constexpr uint32_t kChunks = 1u << 13;
  static constexpr uint32_t kMost = kChunks << kChunkBits;

  StableVector() = default;
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;
  ~StableVector() {
    for (uint32_t k = 0; k < used_chunks(); ++k) delete[] chunks_[k].load(std::memory_order_relaxed);
  }

  T& operator[](uint32_t i) { return *slot(i); }
  const T& operator[](uint32_t i) const { return *slot(i); }
  uint32_t size() const { return size_; }
  size_t memory_bytes() const { return sizeof(*this) + size_t{used_chunks()} * (sizeof(T) << kChunkBits); }

  // Throws std::length_error beyond kMost elements.
  uint32_t push(T&& value) {
    const uint32_t i = size_;
    if (i == kMost) throw std::length_error("too many elements");
    if (i >> kChunkBits == used_chunks()) {
      chunks_[i >> kChunkBits].store(new T[size_t{1} << kChunkBits], std::memory_order_release);
    }
    *slot(i) = std::move(value);
    size_ = i + 1;
    return i;
  }

 private:
  uint32_t used_chunks() const { return (size_ + (1u << kChunkBits) - 1) >> kChunkBits; }
  T* slot(uint32_t i) const {
    return chunks_[i >> kChunkBits].load(std::memory_order_acquire) + (i & ((1u << kChunkBits) - 1));
  }

  uint32_t size_ = 0;
  std::array<std::atomic<T*>, kChunks> chunks_{};
};

}  // namespace grammask
