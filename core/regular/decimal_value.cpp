#include "regular/decimal_value.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "regular/decimal.hpp"

namespace grammask {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

[[noreturn]] void fail(std::string_view role, std::string_view text, std::string_view reason) {
  constexpr size_t kShown = 60;
  std::string shown(text.substr(0, kShown));
  if (text.size() > kShown) shown += "...";
  throw std::invalid_argument(std::string(role) + " \"" + shown + "\" " + std::string(reason));
}

// 0.d1d2... * 10^point of digits that may begin or end with zeros.
Decimal normalized(std::vector<uint8_t> digits, int64_t point) {
  const auto nonzero = [](uint8_t digit) { return digit != 0; };
  const auto first = std::find_if(digits.begin(), digits.end(), nonzero);
  point -= first - digits.begin();
  digits.erase(digits.begin(), first);
  while (!digits.empty() && digits.back() == 0) digits.pop_back();
  Decimal value;
  if (!digits.empty()) value.point = static_cast<int32_t>(point);
  value.digits = std::move(digits);
  return value;
}

// floor(|value| / 10^exponent), most significant digit first, and whether the division is exact.
std::vector<uint8_t> whole_units(const Decimal& value, int32_t exponent, bool& exact) {
  const int32_t length = std::max(0, value.point - exponent);
  std::vector<uint8_t> whole = value.digits;
  exact = whole.size() <= static_cast<size_t>(length);
  whole.resize(static_cast<size_t>(length), 0);
  return whole;
}

uint64_t modulo(const std::vector<uint8_t>& whole, uint64_t divisor) {
  uint64_t rest = 0;
  for (const uint8_t digit : whole) rest = (rest * 10 + digit) % divisor;
  return rest;
}

void subtract(std::vector<uint8_t>& whole, uint64_t amount) {
  uint64_t borrow = amount;
  for (size_t i = whole.size(); i-- > 0 && borrow != 0;) {
    const auto digit = static_cast<uint8_t>(borrow % 10);
    borrow /= 10;
    if (whole[i] < digit) {
      whole[i] = static_cast<uint8_t>(whole[i] + 10);
      ++borrow;
    }
    whole[i] = static_cast<uint8_t>(whole[i] - digit);
  }
}

void add(std::vector<uint8_t>& whole, uint64_t amount) {
  uint64_t carry = amount;
  for (size_t i = whole.size(); i-- > 0 && carry != 0;) {
    carry += whole[i];
    whole[i] = static_cast<uint8_t>(carry % 10);
    carry /= 10;
  }
  for (; carry != 0; carry /= 10) whole.insert(whole.begin(), static_cast<uint8_t>(carry % 10));
}

Decimal from_units(std::vector<uint8_t> whole, int32_t exponent) {
  const int64_t point = static_cast<int64_t>(whole.size()) + exponent;
  return normalized(std::move(whole), point);
}

}  // namespace

Decimal parse_decimal(std::string_view text, std::string_view role) {
  constexpr std::string_view kMalformed = "is not a JSON number";
  size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };

  const bool negative = peek() == '-';
  if (negative) ++at;
  std::vector<uint8_t> digits;
  const auto read_digits = [&] {
    if (!is_digit(peek())) fail(role, text, kMalformed);
    for (; is_digit(peek()); ++at) digits.push_back(static_cast<uint8_t>(peek() - '0'));
  };

  const bool zero_integer = peek() == '0';
  read_digits();
  if (zero_integer && digits.size() > 1) fail(role, text, "has a leading zero");
  int64_t point = static_cast<int64_t>(digits.size());
  if (peek() == '.') {
    ++at;
    read_digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at;
    const bool downwards = peek() == '-';
    if (downwards || peek() == '+') ++at;
    if (!is_digit(peek())) fail(role, text, kMalformed);
    constexpr int64_t kHuge = int64_t{1} << 40;  // far out of reach for any mantissa that fits in memory
    int64_t exponent = 0;
    for (; is_digit(peek()); ++at) exponent = std::min(kHuge, exponent * 10 + (peek() - '0'));
    point += downwards ? -exponent : exponent;
  }
  if (at != text.size()) fail(role, text, kMalformed);

  while (!digits.empty() && digits.back() == 0) digits.pop_back();
  const auto first = std::find_if(digits.begin(), digits.end(), [](uint8_t digit) { return digit != 0; });
  const int64_t leading_zeros = first - digits.begin();
  const int64_t places = static_cast<int64_t>(digits.size()) - point;
  if (!digits.empty() && (point - leading_zeros > kMaxDecimalPlaces || places > kMaxDecimalPlaces)) {
    fail(role, text, "has digits more than " + std::to_string(kMaxDecimalPlaces) + " places from the decimal point");
  }
  Decimal value = normalized(std::move(digits), point);
  value.negative = negative && !value.is_zero();
  return value;
}

std::string to_string(const Decimal& value) {
  if (value.is_zero()) return "0";
  std::string text = value.negative ? "-" : "";
  for (const uint8_t digit : value.digits) text.push_back(static_cast<char>('0' + digit));
  return text + "e" + std::to_string(value.point - static_cast<int32_t>(value.digits.size()));
}

int compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.is_zero() || b.is_zero()) return static_cast<int>(b.is_zero()) - static_cast<int>(a.is_zero());
  if (a.point != b.point) return a.point < b.point ? -1 : 1;
  if (a.digits == b.digits) return 0;
  return a.digits < b.digits ? -1 : 1;  // no trailing zeros: a proper prefix is the lesser number
}

Decimal floor_to_multiple(const Decimal& value, const Multiple& multiple, bool strict) {
  bool exact = false;
  std::vector<uint8_t> whole = whole_units(value, multiple.exponent, exact);
  const uint64_t rest = modulo(whole, multiple.unit);
  const bool is_multiple = exact && rest == 0;
  subtract(whole, is_multiple && strict ? multiple.unit : rest);
  return from_units(std::move(whole), multiple.exponent);
}

Decimal ceil_to_multiple(const Decimal& value, const Multiple& multiple, bool strict) {
  bool exact = false;
  std::vector<uint8_t> whole = whole_units(value, multiple.exponent, exact);
  const uint64_t rest = modulo(whole, multiple.unit);
  const bool is_multiple = exact && rest == 0;
  if (!is_multiple || strict) add(whole, multiple.unit - rest);
  return from_units(std::move(whole), multiple.exponent);
}

}  // namespace grammask
