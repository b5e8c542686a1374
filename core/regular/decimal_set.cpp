#include "regular/decimal_set.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace grammask {
namespace {

// With so many digits in the unit of a multiple, ten times a remainder fits 64 bits.
constexpr size_t kMaxUnitDigits = 18;

Multiple read_multiple(const std::string& text) {
  const Decimal value = parse_decimal(text, "multiple");
  if (value.negative || value.is_zero()) {
    throw std::invalid_argument("multiple \"" + text.substr(0, 60) + "\" is not positive");
  }
  if (value.digits.size() > kMaxUnitDigits) {
    throw std::invalid_argument("multiple \"" + text.substr(0, 60) + "\" has more than " +
                                std::to_string(kMaxUnitDigits) + " significant digits");
  }
  Multiple multiple{0, value.point - static_cast<int32_t>(value.digits.size())};
  for (const uint8_t digit : value.digits) multiple.unit = multiple.unit * 10 + digit;
  return multiple;
}

// An interval of positive numbers.
struct Interval {
  std::optional<Decimal> low, high;
  bool low_open = false, high_open = false;

  bool contains(const Decimal& value) const {
    if (low) {
      const int order = compare_magnitudes(value, *low);
      if (order < 0 || (order == 0 && low_open)) return false;
    }
    if (high) {
      const int order = compare_magnitudes(value, *high);
      if (order > 0 || (order == 0 && high_open)) return false;
    }
    return true;
  }

  bool empty() const {
    if (!low || !high) return false;
    const int order = compare_magnitudes(*low, *high);
    return order > 0 || (order == 0 && (low_open || high_open));
  }
};

std::optional<Interval> positive_part(const NumberSet& set, bool negative) {
  const auto& nearest = negative ? set.maximum : set.minimum;  // the bound on the side of zero
  const auto& farthest = negative ? set.minimum : set.maximum;
  if (farthest && (farthest->is_zero() || farthest->negative != negative)) return std::nullopt;
  Interval interval;
  if (nearest && !nearest->is_zero() && nearest->negative == negative) {
    interval.low = *nearest;
    interval.low_open = negative ? set.maximum_open : set.minimum_open;
  }
  if (farthest) {
    interval.high = *farthest;
    interval.high_open = negative ? set.minimum_open : set.maximum_open;
  }
  if (interval.empty()) return std::nullopt;
  return interval;
}

bool contains_zero(const NumberSet& set) {
  if (set.minimum && !set.minimum->negative && (!set.minimum->is_zero() || set.minimum_open)) return false;
  if (set.maximum && (set.maximum->negative || (set.maximum->is_zero() && set.maximum_open))) return false;
  return true;
}

Bound lower_bound(const Interval& interval) {
  Bound bound;
  bound.digits = interval.low->digits;
  bound.point = interval.low->point;
  bound.attained = !interval.low_open;
  return bound;
}

Bound upper_bound(const Interval& interval) {
  Bound bound;
  bound.digits = interval.high->digits;
  bound.point = interval.high->point;
  if (interval.high_open) {  // 12 becomes 11.999..., 21 becomes 20.999..., 1 becomes 0.999...
    bound.tail = 9;
    bound.attained = false;
    --bound.digits.back();
    if (bound.digits.front() == 0) {  // it was a power of ten
      bound.digits.clear();
      --bound.point;
    }
  }
  return bound;
}

// How many digits of the bound another number of the same magnitude has in common with it.
int32_t common_prefix(const Bound& bound, const Decimal& value) {
  if (value.point != bound.point) return 0;
  const size_t compared = std::max(value.digits.size(), bound.digits.size());
  for (size_t i = 0; i < compared; ++i) {
    const uint8_t digit = i < value.digits.size() ? value.digits[i] : 0;
    if (digit != bound.digit(i)) return static_cast<int32_t>(i);
  }
  return kUnlimited;
}

// Sets Bound::reach_prefix: the nearest member of at most `reach` digits, seen inwards from the bound, tells it.
void limit_length(Side& side, const Interval& interval, const std::optional<Multiple>& multiple, int32_t reach) {
  // The multiples of this are the members with the first digit at `point` and at most `reach` digits.
  const auto short_multiple = [&multiple, reach](int32_t point) {
    const int32_t last_place = point - reach;
    if (!multiple) return Multiple{1, last_place};
    if (last_place <= multiple->exponent) return *multiple;
    return Multiple{without_tens(multiple->unit, last_place - multiple->exponent), last_place};
  };
  if (side.low) {
    const Decimal least = ceil_to_multiple(*interval.low, short_multiple(side.low->point), interval.low_open);
    side.low->reach_prefix = interval.contains(least) ? common_prefix(*side.low, least) : 0;
  }
  if (side.high) {
    const Decimal greatest = floor_to_multiple(*interval.high, short_multiple(side.high->point), interval.high_open);
    side.high->reach_prefix = interval.contains(greatest) ? common_prefix(*side.high, greatest) : 0;
  }
}

void check_places(const DecimalSpec& spec) {
  const int places = spec.places.value_or(0);
  if (places < 0 || places > kMaxDecimalPlaces) throw std::invalid_argument("places are 0 to 400");
  if (!spec.places || !allows_exponent(spec)) return;
  if (spec.plain || !spec.scientific || spec.within_reach || places >= kExponentReach) {
    throw std::invalid_argument("places limit texts without exponents, or scientific ones to fewer than 40");
  }
}

}  // namespace

NumberSet read_number_set(const DecimalSpec& spec) {
  check_places(spec);
  NumberSet set;
  if (spec.minimum) {
    set.minimum = parse_decimal(*spec.minimum, "minimum");
    set.minimum_open = spec.exclusive_minimum;
  }
  if (spec.maximum) {
    set.maximum = parse_decimal(*spec.maximum, "maximum");
    set.maximum_open = spec.exclusive_maximum;
  }
  if (spec.multiple_of) set.multiple = read_multiple(*spec.multiple_of);
  // The least common multiple with 10^place. As unit is no multiple of ten it has only twos or only fives to lose, and
  // so becomes none.
  const auto restrict = [&set](int32_t place) {
    const Multiple given = set.multiple.value_or(Multiple{1, place});
    set.multiple = given.exponent < place ? Multiple{without_tens(given.unit, place - given.exponent), place} : given;
  };
  if (spec.integer || !spec.point) restrict(0);
  if (spec.places && !allows_exponent(spec)) restrict(-*spec.places);
  return set;
}

uint64_t without_tens(uint64_t unit, int32_t power) {
  for (const uint64_t prime : {2u, 5u}) {
    for (int32_t i = 0; i < power && unit % prime == 0; ++i) unit /= prime;
  }
  return unit;
}

Side make_side(const NumberSet& set, bool negative, const DecimalSpec& spec) {
  Side side;
  side.zero = contains_zero(set) && !(spec.places && allows_exponent(spec));

  std::optional<Interval> interval = positive_part(set, negative);
  if (!interval) return side;
  if (const auto& multiple = set.multiple) {
    const Decimal first = ceil_to_multiple(Decimal{}, *multiple, true);
    const Decimal least = interval->low ? ceil_to_multiple(*interval->low, *multiple, interval->low_open) : first;
    if (interval->high) interval->high = floor_to_multiple(*interval->high, *multiple, interval->high_open);
    interval->low = least;
    interval->low_open = interval->high_open = false;
    if (interval->empty()) return side;
    side.smallest_point = least.point;
    if (least == first) interval->low.reset();
  } else if (interval->low) {
    side.smallest_point = interval->low->point;
  }

  side.nonzero = true;
  if (interval->low) side.low = lower_bound(*interval);
  if (interval->high) side.high = upper_bound(*interval);
  if (spec.scientific) {
    side.first_exponent_lead = side.last_exponent_lead = 1;
  } else if (spec.within_reach || side.low || side.high || set.multiple) {
    side.first_exponent_lead = -kExponentReach;
    side.last_exponent_lead = kExponentReach;
  }
  side.limited_length = spec.within_reach || set.multiple || spec.places;
  if (side.limited_length) limit_length(side, *interval, set.multiple, mantissa_reach(spec));

  for (const auto* bound : {&side.low, &side.high}) {
    if (!*bound) continue;
    side.greatest_lead = std::max(side.greatest_lead, (*bound)->point + 1);
    side.least_lead = std::min(side.least_lead, (*bound)->point - 1);
  }
  if (set.multiple) side.least_lead = std::min(side.least_lead, set.multiple->exponent - 1);
  if (allows_exponent(spec) && side.last_exponent_lead != kUnlimited) {
    side.greatest_lead = std::max(side.greatest_lead, side.last_exponent_lead + 1);
    side.least_lead = std::min(side.least_lead, side.first_exponent_lead - 1);
  }
  return side;
}

}  // namespace grammask
