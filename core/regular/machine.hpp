#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "regular/byte_set.hpp"

namespace grammask {

// A deterministic automaton over bytes whose states are made on demand.
//
// Implementations do no locking: the caller serialises the calls. A state number stays valid, and keeps its meaning,
// for as long as the machine lives.
class Machine {
 public:
  static constexpr uint32_t kDead = 0xffffffffu;

  virtual ~Machine() = default;

  // kDead when no word at all is accepted.
  virtual uint32_t start() = 0;

  // The state after `byte`, kDead when no accepted word has this prefix. Every other state is alive.
  virtual uint32_t step(uint32_t state, uint8_t byte) = 0;

  virtual bool accepts(uint32_t state) const = 0;

  // A superset of the bytes that may come next in a state; every other byte leads to kDead.
  virtual ByteSet alphabet(uint32_t) const { return ByteSet::all(); }

  // Answers that an implementation may know without a search; false where it does not.
  virtual bool count_words(uint32_t, uint64_t&) const { return false; }
  virtual bool shortest(uint32_t, std::string&) const { return false; }

  // Upper bound estimate of memory, for budgets.
  virtual size_t memory_bytes() const = 0;
};

}  // namespace grammask
