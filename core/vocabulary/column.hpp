#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace grammask {

// An array that is either owned, and may then grow, or lies in memory that somebody else keeps (a mapped file).
template <typename T>
class Column {
 public:
  Column() = default;
  Column(std::vector<T> values) : owned_(std::move(values)) { settle(); }  // NOLINT(google-explicit-constructor)
  explicit Column(std::span<const T> elsewhere) : data_(elsewhere.data()), size_(elsewhere.size()) {}
  Column(Column&& other) noexcept { *this = std::move(other); }
  Column& operator=(Column&& other) noexcept {
    owned_ = std::move(other.owned_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  const T& operator[](size_t i) const { return data_[i]; }
  const T* data() const { return data_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Only of owned memory, so that what is shared counts once.
  size_t memory_bytes() const { return owned_.capacity() * sizeof(T); }

  // Only for columns that are owned.
  void push_back(T value) {
    owned_.push_back(value);
    settle();
  }
  void append(std::span<const T> values) {
    owned_.insert(owned_.end(), values.begin(), values.end());
    settle();
  }

 private:
  void settle() {
    data_ = owned_.data();
    size_ = owned_.size();
  }

  std::vector<T> owned_;
  const T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace grammask
