#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mask/local_mask.hpp"

namespace grammask {

// What the frame below decides about the tokens that leave the frame above it.
//
// It depends on which tokens leave and on where the frame below goes on, but not on how either came about: within a
// string it is the same after every character, and in an array of objects the same in each of them.
struct RemainderMask {
  std::vector<uint32_t> ids;    // tokens whose remainders are read without leaving the frame below as well
  std::vector<uint32_t> vague;  // tokens that cannot be decided without the text of a key
  std::shared_ptr<const Leaving> leaving;  // those that leave that frame, too; null if there are none
};

// Made on first use and kept in the arena.
const RemainderMask& remainder_mask(Arena& arena, const Vocabulary& vocabulary, const Leaving& leaving, ExprId rest);

}  // namespace grammask
