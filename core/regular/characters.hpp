#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "regular/expr.hpp"

namespace grammask {

// How a code point is spelled in bytes.
enum class Spelling {
  kUtf8,           // its UTF-8 bytes
  kJson,           // every spelling RFC 8259 allows inside a JSON string
  kJsonCanonical,  // the one spelling that json.dumps(ensure_ascii=False) writes
};

using CodePointRanges = std::vector<std::pair<uint32_t, uint32_t>>;  // inclusive

// One code point out of the ranges. Surrogates have no spelling and are dropped.
ExprId characters(ExprPool& pool, const CodePointRanges& ranges, Spelling spelling);

// Exactly these code points, one after the other. Throws std::invalid_argument for a surrogate.
ExprId text(ExprPool& pool, const std::vector<uint32_t>& code_points, Spelling spelling);

// Sorted, disjoint, merged, within Unicode and without surrogates.
CodePointRanges normalize(CodePointRanges ranges);

}  // namespace grammask
