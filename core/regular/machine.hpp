#pragma once

#include <cstddef>
#include <cstdint>

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

  // Bytes that occur in words at all; every other byte leads to kDead.
  virtual ByteSet alphabet() const { return ByteSet::all(); }

  // Upper bound estimate of memory, for budgets.
  virtual size_t memory_bytes() const = 0;
};

}  // namespace grammask
