#include "regular/decimal.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regular/decimal_set.hpp"

// How the machine knows which prefixes are alive.
//
// Take a set S of positive numbers: those between two bounds that are multiples of m = unit * 10^exponent. (Negative
// texts are the same question about the mirrored set, zero is a special case that needs no arithmetic.) Both bounds are
// first moved inwards to multiples of m, so that unless S is empty they belong to it.
//
// Let the digits read so far, from the first nonzero one, be the integer M of n digits. Whatever follows, the value
// will be one whose digits begin with those of M: it lies in a *block* [M, M+1) * 10^k. What is still open decides
// which k are possible:
//
//     after the point             one block, k = -places
//     before the point            every k >= 0: one for each number of digits that may follow
//     if an exponent may follow   every integer k
//
// So the prefix is alive when one of these blocks meets S, and a block relates to S in one of three ways:
//
//   1. It holds a bound: the digits of M are the first digits of the bound, and k makes the magnitudes agree. As bounds
//      belong to S, the prefix is alive.
//   2. It lies outside of the bounds, and is of no use.
//   3. It lies between the bounds entirely. Then it meets S when it holds a multiple of m, that is, with
//      t = k - exponent, when a multiple of unit lies in [M, M+1) * 10^t. For t >= 0 this says that -M * 10^t modulo
//      unit is less than 10^t; for t < 0 it says that M itself is a multiple of unit * 10^-t.
//
// Among the blocks of the third kind only the largest k has to be looked at: if v is a multiple of m then so is 10 v,
// hence a block that meets S would still do so one magnitude further up.
//
// Nothing here needs M itself. How M compares with the digits of either bound is a three-valued state that each digit
// updates (Order); M modulo unit and the number of zeros at the end of M / unit answer the rest.
//
// Without a multiple S is an interval of reals. Its bounds may be open: the open upper bound 12 is treated as
// 11.999..., which numbers approach but no finite text equals, and an open lower bound still has members of S in every
// block that it lies in. The three cases then hold as they stand, and every block of the third kind meets S.
//
// Exponents. When the mantissa is complete, the exponents that put its value into S are an interval of integers: the
// lower bound and the upper bound allow everything from, or up to, a certain magnitude, and a multiple of 10^e * M stays
// one when e grows. That interval is all that the states within an exponent need to know.
//
// The limit on mantissas (decimal.hpp) takes members from S for the sake of texts with an exponent: those that need
// more than R digits. They are the numbers that are no multiple of 10^(magnitude - R); the treatment of cases 1 and 3
// in exponent_alive() takes this into account.
//
// Bounded spelling. To texts without an exponent, a limit of P places after the point is a multiple of 10^-P more, and a
// count of the digits written: a block that meets the set holds a member of at most P places. In texts with an
// exponent, R is P + 1, as one digit stands before the point. Three digits of an exponent reach every magnitude that
// matters: finite ends of the intervals of exponents lie closer to zero.

namespace grammask {
namespace {

enum class Phase : uint8_t {
  kStart,
  kSign,           // after the minus sign
  kZero,           // after an integer part that is 0
  kInteger,        // within another integer part
  kPoint,          // after the point
  kFraction,       // within the fraction
  kExponent,       // after e
  kExponentSign,   // after the sign of the exponent
  kExponentDigit,  // within the exponent
};

// How the digits read so far, from the first nonzero one, compare with as many digits of a bound.
enum class Order : uint8_t { kLess, kEqual, kGreater };

constexpr int32_t kLargestExponent = 999;  // of kExponentDigits digits

// Fields that the phase gives no meaning keep their defaults, so that equal situations are equal states.
struct State {
  Phase phase = Phase::kStart;
  bool negative = false;

  // Within the mantissa:
  bool zero = false;   // it has no nonzero digit yet
  bool plain = false;  // no text with an exponent can follow
  Order low = Order::kGreater;
  Order high = Order::kLess;
  int32_t lead = 0;  // place of its first nonzero digit, as in Decimal::point; before it, the place it would have
  int32_t places = 0;  // digits after the point, zero while the mantissa is
  int32_t slack = 0;  // zeros at the end of M / unit, when that is whole
  int32_t written = 0;  // digits after the point, or of the exponent, where spelling is bounded
  uint64_t remainder = 0;  // M modulo unit

  // Within the exponent e: after its sign the range of |e|, before it that of e, and |e| as far as it is written.
  int32_t least = 0, greatest = 0, magnitude = 0;

  bool operator==(const State&) const = default;
};

struct StateHash {
  size_t operator()(const State& state) const {
    uint64_t hash = 0;
    const auto mix = [&hash](uint64_t word) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    };
    const auto pair = [](int32_t a, int32_t b) {
      return static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 | static_cast<uint32_t>(b);
    };
    mix(static_cast<uint64_t>(state.phase) | uint64_t{state.negative} << 8 | uint64_t{state.zero} << 9 |
        uint64_t{state.plain} << 10 | static_cast<uint64_t>(state.low) << 16 | static_cast<uint64_t>(state.high) << 24);
    mix(pair(state.lead, state.places));
    mix(pair(state.slack, state.magnitude));
    mix(pair(state.least, state.greatest));
    mix(static_cast<uint64_t>(static_cast<uint32_t>(state.written)));
    mix(state.remainder);
    return static_cast<size_t>(hash);
  }
};

// The columns of the transition table: one for each digit, and for - + . and both cases of e.
constexpr size_t kColumns = 14;

constexpr size_t kNoColumn = kColumns;

size_t column_of(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - size_t{'0'};
  switch (byte) {
    case '-': return 10;
    case '+': return 11;
    case '.': return 12;
    case 'e':
    case 'E': return 13;
    default: return kNoColumn;
  }
}

// Exponents from `least` to `greatest`; a missing end is unlimited.
struct Exponents {
  int32_t least = -kUnlimited;
  int32_t greatest = kUnlimited;

  bool empty() const { return least > greatest; }
  bool contains_zero() const { return least <= 0 && greatest >= 0; }
};

// Whether a multiple of `unit` lies in [M, M+1) * 10^shift, given M modulo unit and the zeros at the end of M / unit.
bool block_holds_multiple(uint64_t remainder, int32_t slack, uint64_t unit, int32_t shift) {
  if (shift < 0) return remainder == 0 && slack >= -shift;
  uint64_t width = 1;
  for (; shift > 0 && width < unit; --shift) {
    remainder = remainder * 10 % unit;
    width *= 10;
  }
  return width >= unit || (unit - remainder) % unit < width;
}

class DecimalMachine final : public Machine {
 public:
  DecimalMachine(const NumberSet& set, const DecimalSpec& spec)
      : multiple_(set.multiple),
        point_(spec.point),
        exponent_(allows_exponent(spec)),
        plain_(spec.plain),
        places_(spec.places),
        reach_(mantissa_reach(spec)),
        sides_{make_side(set, false, spec), make_side(set, true, spec)},
        symmetric_(sides_[0] == sides_[1]) {
    for (const bool negative : {false, true}) exponent_nonzero_[negative] = exponent_spells_nonzero(negative);
  }

  ByteSet alphabet(uint32_t) const override {
    ByteSet s = ByteSet::range('0', '9');
    for (const char c : {'-', '+', '.', 'e', 'E'}) s.add(static_cast<uint8_t>(c));
    return s;
  }

  uint32_t start() override {
    State state;
    if (!starts_alive(state)) return kDead;
    return intern(state);
  }

  uint32_t step(uint32_t id, uint8_t byte) override {
    const size_t column = column_of(byte);
    if (column == kNoColumn) return kDead;
    if (next_[id][column] == kUnknown) {
      State state = states_[id];
      const uint32_t next = advance(state, byte) ? intern(state) : kDead;
      next_[id][column] = next;
    }
    return next_[id][column];
  }

  bool accepts(uint32_t id) const override { return accepted_[id]; }

  size_t memory_bytes() const override {
    constexpr size_t kNodeOverhead = 4 * sizeof(void*);
    return sizeof(*this) + states_.capacity() * sizeof(State) + next_.capacity() * sizeof(Row) +
           accepted_.capacity() / 8 + ids_.size() * (sizeof(State) + sizeof(uint64_t) + kNodeOverhead) +
           ids_.bucket_count() * sizeof(void*);
  }

 private:
  // The states after each column's byte; kUnknown where nobody has asked yet.
  using Row = std::array<uint32_t, kColumns>;
  static constexpr uint32_t kUnknown = kDead - 1;

  const Side& side(const State& state) const { return sides_[state.negative]; }

  bool exponent_spells_nonzero(bool negative) const;

  // Moves the state past a byte; false, with the state in pieces, when that is dead.
  bool advance(State& state, uint8_t byte) const;
  void advance_mantissa(State& state, uint8_t digit) const;
  bool advance_exponent(State& state, uint8_t digit) const;
  bool begin_exponent(State& state) const;
  bool sign_exponent(State& state, bool negative) const;

  bool settle(State& state) const;
  void forget(State& state) const;

  bool starts_alive(const State& state) const;
  bool plain_alive(const State& state) const;
  bool exponent_alive(const State& state) const;
  bool in_reach(const State& state) const;
  Exponents exponents(const State& state) const;
  bool accepting(const State& state) const;
  uint32_t intern(const State& state);

  std::optional<Multiple> multiple_;
  bool point_, exponent_, plain_;  // whether the language has texts with a point, with an exponent, and without one
  std::optional<int32_t> places_;  // DecimalSpec::places
  int32_t reach_;  // most digits of a limited mantissa
  std::array<Side, 2> sides_;  // positive, negative
  bool symmetric_;  // both sides are the same: the sign may be forgotten
  std::array<bool, 2> exponent_nonzero_;  // whether some text with an exponent spells a number of that side
  std::vector<State> states_;
  std::vector<Row> next_;
  std::vector<bool> accepted_;
  std::unordered_map<State, uint32_t, StateHash> ids_;
};

// ---- Reading

bool DecimalMachine::advance(State& state, uint8_t byte) const {
  if (byte >= '0' && byte <= '9') {
    const auto digit = static_cast<uint8_t>(byte - '0');
    switch (state.phase) {
      case Phase::kZero: return false;
      case Phase::kExponent: return sign_exponent(state, false) && advance_exponent(state, digit);
      case Phase::kExponentSign:
      case Phase::kExponentDigit: return advance_exponent(state, digit);
      case Phase::kPoint:
      case Phase::kFraction:
        if (places_ && ++state.written > *places_) return false;
        [[fallthrough]];
      default: advance_mantissa(state, digit); return settle(state);
    }
  }
  switch (byte) {
    case '-':
      if (state.phase == Phase::kExponent) return sign_exponent(state, true);
      if (state.phase != Phase::kStart) return false;
      state.phase = Phase::kSign;
      state.negative = true;
      return starts_alive(state);
    case '+': return state.phase == Phase::kExponent && sign_exponent(state, false);
    case '.':
      if (!point_ || places_ == 0 || (state.phase != Phase::kZero && state.phase != Phase::kInteger)) return false;
      state.phase = Phase::kPoint;
      return settle(state);
    case 'e':
    case 'E': return begin_exponent(state);
    default: return false;
  }
}

void DecimalMachine::advance_mantissa(State& state, uint8_t digit) const {
  const Side& set = side(state);
  bool first_nonzero = false;
  int32_t index = state.lead + state.places;  // of this digit among those from the first nonzero one
  switch (state.phase) {
    case Phase::kStart:
    case Phase::kSign:
      state.phase = digit == 0 ? Phase::kZero : Phase::kInteger;
      state.negative = state.negative && !symmetric_;
      state.plain = !exponent_;
      state.low = set.low ? Order::kEqual : Order::kGreater;
      state.high = set.high ? Order::kEqual : Order::kLess;
      state.zero = digit == 0;
      if (state.zero) return;
      first_nonzero = true;
      state.lead = 1;
      break;
    case Phase::kInteger: state.lead = std::min(state.lead + 1, set.greatest_lead); break;
    default:
      state.phase = Phase::kFraction;
      if (state.zero && digit == 0) {
        state.lead = std::max(state.lead - 1, set.least_lead);
        return;
      }
      first_nonzero = state.zero;
      state.zero = false;
      state.places = first_nonzero ? 1 - state.lead : state.places + 1;
  }
  if (first_nonzero) index = 0;

  const auto compare = [index, digit](Order& order, const std::optional<Bound>& bound) {
    if (order != Order::kEqual) return;
    const uint8_t other = bound->digit(static_cast<size_t>(index));
    if (digit != other) order = digit < other ? Order::kLess : Order::kGreater;
  };
  compare(state.low, set.low);
  compare(state.high, set.high);

  if (!multiple_) return;
  // A zero appended to M is one more at the end of M / unit, if that was whole. If it was not, then M / unit * 10 does
  // not end with a zero even if it is whole; and neither does a multiple of unit that ends with another digit.
  state.slack = digit == 0 && state.remainder == 0 ? state.slack + 1 : 0;
  state.remainder = (state.remainder * 10 + digit) % multiple_->unit;
}

bool DecimalMachine::begin_exponent(State& state) const {
  if (state.phase != Phase::kZero && state.phase != Phase::kInteger && state.phase != Phase::kFraction) return false;
  if (state.plain) return false;
  Exponents range = exponents(state);
  if (places_) {
    range.least = std::max(range.least, -kLargestExponent);
    range.greatest = std::min(range.greatest, kLargestExponent);
  }
  state = State{};
  state.phase = Phase::kExponent;
  state.least = range.least;
  state.greatest = range.greatest;
  return !range.empty();
}

bool DecimalMachine::sign_exponent(State& state, bool negative) const {
  if (negative) {
    state.least = -state.least;
    state.greatest = -state.greatest;
    std::swap(state.least, state.greatest);
  }
  state.phase = Phase::kExponentSign;
  state.least = std::max(state.least, 0);
  return state.least <= state.greatest;
}

bool DecimalMachine::advance_exponent(State& state, uint8_t digit) const {
  state.phase = Phase::kExponentDigit;
  int32_t left = std::numeric_limits<int32_t>::digits10 + 1;  // further digits that could decide something
  if (places_) {
    if (++state.written > kExponentDigits) return false;
    left = kExponentDigits - state.written;
  }
  const int64_t magnitude = int64_t{state.magnitude} * 10 + digit;
  if (magnitude > state.greatest) return false;
  const bool unlimited = state.greatest == (places_ ? kLargestExponent : kUnlimited);
  // Beyond the least all are alike when there is no greatest.
  state.magnitude = static_cast<int32_t>(unlimited ? std::min<int64_t>(magnitude, state.least) : magnitude);
  int64_t last = magnitude;  // with further digits, from `first` to `last`
  for (int64_t first = magnitude; left >= 0 && first <= state.greatest; --left, first *= 10, last = last * 10 + 9) {
    if (last >= state.least) return true;
  }
  return false;
}

// ---- Judging

bool DecimalMachine::exponent_spells_nonzero(bool negative) const {
  for (uint8_t digit = 1; digit <= 9; ++digit) {
    State state;
    state.negative = negative;
    advance_mantissa(state, digit);
    if (exponent_alive(state)) return true;
  }
  return false;
}

// Completes a step within the mantissa: false if the state is dead, else it takes its final form.
bool DecimalMachine::settle(State& state) const {
  state.plain = !exponent_alive(state);
  if (state.plain && !plain_alive(state)) return false;
  if (!state.zero) forget(state);
  return true;
}

// Levels differences that no longer matter between states with a nonzero mantissa.
void DecimalMachine::forget(State& state) const {
  const Side& set = side(state);
  const bool integer = state.phase == Phase::kInteger;
  if (integer && state.lead == set.greatest_lead) {
    state.low = Order::kGreater;
    state.high = Order::kLess;
  }
  if (state.plain) {
    // The magnitude decides unless it is that of the bound, and no exponent will change it.
    if (set.low && state.lead > set.low->point) state.low = Order::kGreater;
    if (set.high && state.lead < set.high->point && !integer) state.high = Order::kLess;
    if (!integer && state.low == Order::kGreater && state.high == Order::kLess) {
      state.lead = set.low ? set.low->point : set.high ? set.high->point : 0;  // any place between the bounds
    }
    if (multiple_) {
      // Only zeros can follow the last place of the multiple, and before it only some zeros of the slack are needed.
      state.places = std::min(state.places, std::max(0, -multiple_->exponent));
      state.slack = std::min(state.slack, std::max(0, multiple_->exponent));
    }
  }
  if (!multiple_ && (state.plain || !set.limited_length)) {
    // Digits are counted only to be compared with those of a bound.
    size_t compared = 0;
    if (state.low == Order::kEqual) compared = std::max(compared, set.low->digits.size());
    if (state.high == Order::kEqual) compared = std::max(compared, set.high->digits.size());
    const bool comparing = state.low == Order::kEqual || state.high == Order::kEqual;
    const int32_t counted = comparing ? std::max(0, static_cast<int32_t>(compared) - state.lead) : 0;
    state.places = std::min(state.places, counted);
  }
}

bool DecimalMachine::starts_alive(const State& state) const {
  for (uint8_t digit = '0'; digit <= '9'; ++digit) {
    State next = state;
    if (advance(next, digit)) return true;
  }
  State next = state;
  return state.phase == Phase::kStart && advance(next, '-');
}

// The magnitudes (places of the first digit) at which the block of this mantissa lies between the bounds entirely.
int32_t least_inside(const Side& set, const State& state) {
  return set.low ? set.low->point + (state.low == Order::kGreater ? 0 : 1) : -kUnlimited;
}

int32_t greatest_inside(const Side& set, const State& state) {
  return set.high ? set.high->point - (state.high == Order::kLess ? 0 : 1) : kUnlimited;
}

// Whether some text without an exponent can follow.
bool DecimalMachine::plain_alive(const State& state) const {
  if (!plain_) return false;
  const Side& set = side(state);
  if (state.zero) return set.zero || (set.nonzero && set.smallest_point <= state.lead);
  if (!set.nonzero) return false;

  const bool integer = state.phase == Phase::kInteger;
  const auto holds = [&state, integer](Order order, const std::optional<Bound>& bound) {
    if (!bound || order != Order::kEqual) return false;
    return integer ? state.lead <= bound->point : state.lead == bound->point;
  };
  if (holds(state.low, set.low) || holds(state.high, set.high)) return true;

  int32_t top = greatest_inside(set, state);
  if (top < state.lead) return false;
  if (!integer) top = state.lead;
  if (top < least_inside(set, state)) return false;
  if (!multiple_ || top == kUnlimited) return true;
  const int32_t shift = top - state.lead - state.places - multiple_->exponent;
  return block_holds_multiple(state.remainder, state.slack, multiple_->unit, shift);
}

// Whether some text with an exponent can follow.
bool DecimalMachine::exponent_alive(const State& state) const {
  const Side& set = side(state);
  if (state.plain) return false;
  if (state.zero) return set.zero || (exponent_nonzero_[state.negative] && in_reach(state));
  if (!set.nonzero || !in_reach(state)) return false;

  const int32_t length = state.lead + state.places;
  const auto holds = [length](Order order, const std::optional<Bound>& bound) {
    return bound && order == Order::kEqual && length <= bound->reach_prefix;
  };
  if (holds(state.low, set.low) || holds(state.high, set.high)) return true;

  const int32_t top = greatest_inside(set, state);
  if (top < least_inside(set, state)) return false;
  if (!multiple_) return true;
  // With no more than reach_ digits, the value is a multiple of 10^(top - reach_). Where that is no power within the
  // multiple anyway, M followed by the digits that there is room for must be a multiple of what those tens leave of
  // unit. Without an upper bound the magnitude may grow until unit has no twos or fives left.
  constexpr int32_t kAllTens = 64;
  const int32_t tens = top == kUnlimited ? kAllTens : top - reach_ - multiple_->exponent;
  if (tens <= 0) {
    return block_holds_multiple(state.remainder, state.slack, multiple_->unit, top - length - multiple_->exponent);
  }
  const uint64_t unit = without_tens(multiple_->unit, tens);
  return block_holds_multiple(state.remainder % unit, 0, unit, reach_ - length);
}

// Whether the limits on mantissas allow an exponent after this one, or after one that continues it.
bool DecimalMachine::in_reach(const State& state) const {
  const Side& set = side(state);
  if (state.lead < set.first_exponent_lead || state.lead > set.last_exponent_lead) return false;
  if (!set.limited_length || state.zero) return true;
  const int32_t still_needed = state.phase == Phase::kPoint ? 1 : 0;
  return state.lead + state.places + still_needed <= reach_;
}

// The exponents that put the value of this mantissa into the set; 0 stands for none.
Exponents DecimalMachine::exponents(const State& state) const {
  constexpr Exponents kNone{1, 0};
  const Side& set = side(state);
  if (state.zero) return set.zero ? Exponents{} : kNone;
  if (!set.nonzero) return kNone;

  const auto length = static_cast<size_t>(std::max(0, state.lead + state.places));
  // Equal so far, the bound is greater if it has digits left, as the last of them is not zero.
  const auto equals = [length](Order order, const Bound& bound) {
    return order == Order::kEqual && length >= bound.digits.size() && bound.tail == 0;
  };
  Exponents range;
  if (set.low) {
    const bool above = state.low == Order::kGreater || (equals(state.low, *set.low) && set.low->attained);
    range.least = set.low->point - state.lead + (above ? 0 : 1);
  }
  if (set.high) {
    const bool below = state.high == Order::kLess ||
                       (state.high == Order::kEqual && (!equals(state.high, *set.high) || set.high->attained));
    range.greatest = set.high->point - state.lead - (below ? 0 : 1);
  }
  if (multiple_) {
    // M * 10^power is a multiple of unit from this power on.
    int32_t power = -state.slack;
    for (uint64_t rest = state.remainder; rest != 0; ++power) {
      if (power == std::numeric_limits<uint64_t>::digits) return kNone;  // unit has other factors than twos and fives
      rest = rest * 10 % multiple_->unit;
    }
    range.least = std::max(range.least, power + state.places + multiple_->exponent);
  }
  return range;
}

bool DecimalMachine::accepting(const State& state) const {
  switch (state.phase) {
    case Phase::kZero:
    case Phase::kInteger:
    case Phase::kFraction: return plain_ && exponents(state).contains_zero();
    case Phase::kExponentDigit: return state.least <= state.magnitude && state.magnitude <= state.greatest;
    default: return false;
  }
}

uint32_t DecimalMachine::intern(const State& state) {
  const auto [entry, added] = ids_.try_emplace(state, static_cast<uint32_t>(states_.size()));
  if (added) {
    states_.push_back(state);
    next_.emplace_back().fill(kUnknown);
    accepted_.push_back(accepting(state));
  }
  return entry->second;
}

}  // namespace

std::string canonical_key(const DecimalSpec& spec) {
  const NumberSet set = read_number_set(spec);
  std::string key;
  if (set.minimum) key += (set.minimum_open ? ">" : ">=") + to_string(*set.minimum) + " ";
  if (set.maximum) key += (set.maximum_open ? "<" : "<=") + to_string(*set.maximum) + " ";
  if (set.multiple)
    key += "%" + std::to_string(set.multiple->unit) + "e" + std::to_string(set.multiple->exponent) + " ";
  if (!spec.point) return key + "digits";
  if (spec.exponent) key += spec.scientific ? "scientific" : "exponent";
  // With a multiple, the strictest limits hold anyway.
  if (spec.exponent && spec.within_reach && !set.multiple) key += " reach";
  if (!spec.plain) key += " only";
  if (spec.places) key += " places " + std::to_string(*spec.places);
  return key;
}

std::unique_ptr<Machine> make_decimal_machine(const DecimalSpec& spec) {
  return std::make_unique<DecimalMachine>(read_number_set(spec), spec);
}

}  // namespace grammask
