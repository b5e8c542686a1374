#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>

namespace grammask {

// The memory of a mask that Python passes: a writable, contiguous array of int32 with one dimension, of numpy or of any library that speaks
// DLPack. Valid while the object lives. Throws nanobind::type_error for anything else.
std::span<uint32_t> mask_words(nanobind::handle array);

}  // namespace grammask
