#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace grammask {

// An exact decimal number: 0.d1d2d3... * 10^point, negated if `negative`.
//
// The digits hold values 0 to 9, neither the first nor the last of them is zero, and zero has none. So each number has
// one representation, and `point` says where the first digit stands: 1 for units, 0 for tenths, -2 for thousandths.
struct Decimal {
  bool negative = false;
  std::vector<uint8_t> digits;
  int32_t point = 0;

  bool is_zero() const { return digits.empty(); }
  bool operator==(const Decimal&) const = default;
};

// The positive number unit * 10^exponent, unit not divisible by ten.
struct Multiple {
  uint64_t unit = 1;
  int32_t exponent = 0;
};

// Reads a JSON number. `role` names the number in the message of the std::invalid_argument thrown when the text is
// malformed or has digits further than kMaxDecimalPlaces (decimal.hpp) from the decimal point.
Decimal parse_decimal(std::string_view text, std::string_view role);

// The number in a spelling of its own: its digits, then an exponent.
std::string to_string(const Decimal& value);

// Negative, zero or positive as |a| is less than, equal to or greater than |b|.
int compare_magnitudes(const Decimal& a, const Decimal& b);

// The greatest multiple <= value, or < value if `strict`, of a value that is not negative. May be zero.
Decimal floor_to_multiple(const Decimal& value, const Multiple& multiple, bool strict);

// The least multiple >= value, or > value if `strict`, of a value that is not negative.
Decimal ceil_to_multiple(const Decimal& value, const Multiple& multiple, bool strict);

}  // namespace grammask
