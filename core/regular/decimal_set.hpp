#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "regular/decimal.hpp"
#include "regular/decimal_value.hpp"

// The numbers that a DecimalSpec asks for, prepared for the machine that reads them (decimal.cpp).

namespace grammask {

// A specification with its numbers read and `integer` made part of the multiple.
struct NumberSet {
  std::optional<Decimal> minimum, maximum;
  bool minimum_open = false, maximum_open = false;
  std::optional<Multiple> multiple;
};

// Throws std::invalid_argument as make_decimal_machine says.
NumberSet read_number_set(const DecimalSpec& spec);

// unit / gcd(unit, 10^power): by this must M be divisible for M * 10^power to be a multiple of unit.
uint64_t without_tens(uint64_t unit, int32_t power);

inline constexpr int32_t kUnlimited = std::numeric_limits<int32_t>::max();

// One end of a set of positive numbers, as the infinite digit string 0.d1d2d3... * 10^point.
struct Bound {
  std::vector<uint8_t> digits;
  int32_t point = 0;
  uint8_t tail = 0;      // the digit repeated forever after `digits`: 9 in an open upper bound, else 0
  bool attained = true;  // the bound belongs to the set

  // Among the numbers that share this many first digits and the magnitude with the bound there are members of the set
  // of at most mantissa_reach() digits. Only set where Side::limited_length is.
  int32_t reach_prefix = kUnlimited;

  bool operator==(const Bound&) const = default;

  uint8_t digit(size_t index) const { return index < digits.size() ? digits[index] : tail; }
};

// The positive part of a NumberSet, or the absolute values of its negative part; and whether the set holds zero.
struct Side {
  bool zero = false;
  bool nonzero = false;

  // Absent when every positive number satisfies it or, if there is a multiple, every positive multiple. With a multiple
  // both are attained.
  std::optional<Bound> low, high;

  // Where the smallest numbers of the set have their first digit.
  int32_t smallest_point = std::numeric_limits<int32_t>::min();

  // The limits on mantissas before an exponent (decimal.hpp): where their first nonzero digit may be, and whether there
  // may be no more than mantissa_reach() digits from there on.
  int32_t first_exponent_lead = -kUnlimited, last_exponent_lead = kUnlimited;
  bool limited_length = false;

  // Further than this from the point, it makes no difference where the first nonzero digit is.
  int32_t greatest_lead = 1, least_lead = 0;

  bool operator==(const Side&) const = default;
};

// Whether texts with an exponent may belong to the language at all.
inline bool allows_exponent(const DecimalSpec& spec) { return spec.exponent && spec.point; }

// Where the length of mantissas before an exponent is limited: so many digits from the first nonzero one.
inline int32_t mantissa_reach(const DecimalSpec& spec) { return spec.places ? *spec.places + 1 : kExponentReach; }

// The side of set = read_number_set(spec).
Side make_side(const NumberSet& set, bool negative, const DecimalSpec& spec);

}  // namespace grammask
