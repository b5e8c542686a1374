#pragma once

#include <memory>
#include <optional>
#include <string>

#include "regular/machine.hpp"

namespace grammask {

// A set of numbers, and the texts that may spell them.
//
// The texts are those of the JSON grammar, -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?, whose exact decimal value
// lies in the set. "-0" spells zero, and so does "0e7"; "1.50" spells 1.5.
//
// Texts with an exponent. How a mantissa of unlimited length compares with an exponent of unlimited size is not a
// regular question, so where the answer depends on it the mantissa is limited. With R = kExponentReach, a text with an
// exponent belongs to the language when its value is in the set and
//   - its mantissa is zero, or there is no multiple and on this side of zero no bound but zero: nothing else is asked;
//   - there is another bound, but no multiple: the first nonzero digit of the mantissa is at most the R-th before the
//     point, or has at most R zeros between the point and itself;
//   - there is a multiple (`integer` is one): as before, and the mantissa has at most R digits from that first nonzero
//     digit to its end.
// The exponent itself is never limited. Texts without an exponent are never limited either.
//
// `scientific` narrows this to how programs print numbers, 1.5e+22: one digit before the point, which is zero only if the
// mantissa is. Beyond the first digit of an integer part there are then no exponents to wait for, which makes for few
// states, and 1000 is not a beginning of 1000e-3 where the maximum is 100.
struct DecimalSpec {
  // Decimal texts of the JSON grammar, such as "-12.5" or "1e-3".
  std::optional<std::string> minimum = std::nullopt, maximum = std::nullopt;
  bool exclusive_minimum = false, exclusive_maximum = false;
  // A positive decimal text: the value is a whole multiple of it.
  std::optional<std::string> multiple_of = std::nullopt;
  // The value is whole: 1.0 and 1.50e1 are.
  bool integer = false;
  // False leaves out every text with a point or an exponent: the value is whole and spelled so.
  bool point = true;
  // False leaves out every text with an exponent.
  bool exponent = true;
  // Leaves out texts with an exponent whose mantissa has other than one digit before the point, or a nonzero one after 0.
  bool scientific = false;
  // False leaves out every text without an exponent.
  bool plain = true;
  // Bounded spelling: at most so many digits after the point, at most kExponentDigits in an exponent, and no exponent
  // after zero. As the two kinds of texts then differ in what numbers they can spell, the specification leaves out those
  // without an exponent, or those with one, and the latter are `scientific`. A language of both is the union of two.
  std::optional<int> places = std::nullopt;
  // Applies the strictest of the limits above to every set. The texts then come from one fixed language whatever the
  // set, so a complement relative to DecimalSpec{.within_reach = true} is exact.
  bool within_reach = false;
};

inline constexpr int kExponentReach = 40;

// Enough for every magnitude that a bound or multiple can ask for.
inline constexpr int kExponentDigits = 3;

// The digits of a bound must lie within so many places of the decimal point.
inline constexpr int kMaxDecimalPlaces = 400;

// Specifications of the same language have equal keys, whenever they differ only in how their numbers are spelled, in
// flags without effect, or in `integer` being implied by the multiple. Throws like make_decimal_machine.
std::string canonical_key(const DecimalSpec& spec);

// The texts of the specification; a machine whose start() is kDead when there are none.
//
// Throws std::invalid_argument for a malformed number, a multiple that is not positive, a bound or multiple with digits
// further than kMaxDecimalPlaces from the decimal point, a multiple of more than 18 significant digits, and `places`
// that are negative, beyond kMaxDecimalPlaces, or (with exponents) not below kExponentReach or not of one kind of texts.
std::unique_ptr<Machine> make_decimal_machine(const DecimalSpec& spec);

}  // namespace grammask
