#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "vocabulary/vocabulary.hpp"

namespace grammask {

// A vocabulary as one block of bytes, laid out as it is used: a file of it, mapped into memory, needs no parsing, and
// processes that map it share its pages.
//
//   header    what it is, its length, a checksum over all of it, and where each section lies
//   sections  one array each, aligned for the machine
//
// A block may come from a file that was cut off, overwritten, or made to do harm. The checksum finds accidents; against
// intent, everything that an index or a walk relies on is checked on loading, in time linear in the block. Who writes a
// well-formed block of other tokens gets those tokens, as with any tokenizer file.

// notes: kept with the vocabulary and given back, for what else its owner knows of it.
std::string to_block(const Vocabulary& vocabulary, std::string_view notes);

// Writes the right checksum into a block, which has at least a header.
void seal(std::span<char> block);

struct Loaded {
  std::shared_ptr<Vocabulary> vocabulary;
  std::string_view notes;  // inside the block
};
// The vocabulary reads the block as long as it lives, and keeps `memory` until then. The block begins at a multiple of 8.
// Throws std::invalid_argument if it is not a block of this version and this machine's byte order, or is damaged.
Loaded from_block(std::span<const char> block, std::shared_ptr<const void> memory);

}  // namespace grammask
