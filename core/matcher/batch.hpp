#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "matcher/matcher.hpp"

namespace grammask {

// Fills one row of `out` for each matcher, on a pool of threads (threads <= 0: as many as the machine has cores).
// Throws the first error of a row, after every row has been tried.
void fill_masks(std::span<Matcher* const> matchers, uint32_t* out, size_t row_words, int threads);

}  // namespace grammask
