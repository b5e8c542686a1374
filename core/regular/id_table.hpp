#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace grammask {

// A hash table of the ids 0, 1, 2 … of things that are kept elsewhere, by hashes of these. It grows a little with every
// insertion: a table of millions that was moved at once would keep one caller waiting for tens of milliseconds.
class IdTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  IdTable() : now_(make(kFirst)), size_(kFirst) {}

  // same(id) tells whether that is what is looked for. kNone if there is no such id.
  template <typename Same>
  uint32_t find(uint64_t hash, Same same) const {
    const uint32_t found = find_in(now_, size_, hash, same);
    return found != kNone || !before_ ? found : find_in(before_, size_ / 2, hash, same);
  }

  // Adds the next id; hash_of(id) is asked about earlier ones.
  template <typename HashOf>
  void insert(uint64_t hash, HashOf hash_of) {
    put(hash, count_++);
    // Done long before the table is half full again.
    constexpr int kMovedAtOnce = 4;
    for (int i = 0; before_ && i < kMovedAtOnce; ++i) {
      if (moved_ < to_move_) {
        put(hash_of(moved_), moved_);
        ++moved_;
      } else {
        before_.reset();
      }
    }
    if (size_t{count_} * 2 <= size_) return;
    before_ = std::move(now_);
    size_ *= 2;
    now_ = make(size_);
    moved_ = 0;
    to_move_ = count_;
  }

  size_t memory_bytes() const { return (size_ + (before_ ? size_ / 2 : 0)) * sizeof(uint32_t); }

 private:
  struct Free {
    void operator()(uint32_t* p) const { std::free(p); }
  };
  using Slots = std::unique_ptr<uint32_t[], Free>;  // ids + 1, 0 where there is none; open addressing

  static constexpr size_t kFirst = 1 << 12;

  // Zeros that cost nothing until they are used.
  static Slots make(size_t size) {
    Slots slots(static_cast<uint32_t*>(std::calloc(size, sizeof(uint32_t))));
    if (!slots) throw std::bad_alloc();
    return slots;
  }

  template <typename Same>
  static uint32_t find_in(const Slots& slots, size_t size, uint64_t hash, Same& same) {
    for (size_t i = hash & (size - 1); slots[i]; i = (i + 1) & (size - 1)) {
      if (same(slots[i] - 1)) return slots[i] - 1;
    }
    return kNone;
  }

  void put(uint64_t hash, uint32_t id) {
    size_t i = hash & (size_ - 1);
    while (now_[i]) i = (i + 1) & (size_ - 1);
    now_[i] = id + 1;
  }

  Slots now_;
  Slots before_;  // while its ids are moved: complete, but for those added since
  size_t size_;
  uint32_t count_ = 0, moved_ = 0, to_move_ = 0;
};

}  // namespace grammask
