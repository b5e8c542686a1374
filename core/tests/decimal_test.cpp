#include "regular/decimal.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using grammask::canonical_key;
using grammask::DecimalSpec;
using grammask::Machine;
using grammask::make_decimal_machine;

namespace {

constexpr std::string_view kAlphabet = "0123456789-+.eE";

enum class Verdict { kDead, kPrefix, kAccepted };

Verdict read(Machine& machine, std::string_view text) {
  uint32_t state = machine.start();
  for (const char c : text) {
    if (state == Machine::kDead) return Verdict::kDead;
    state = machine.step(state, static_cast<uint8_t>(c));
  }
  if (state == Machine::kDead) return Verdict::kDead;
  return machine.accepts(state) ? Verdict::kAccepted : Verdict::kPrefix;
}

struct Case {
  DecimalSpec spec;
  std::vector<std::string> accepted, prefixes, dead;
};

void check(const Case& example) {
  const auto machine = make_decimal_machine(example.spec);
  CAPTURE(canonical_key(example.spec));
  const auto expect = [&machine](const std::vector<std::string>& texts, Verdict verdict) {
    for (const std::string& text : texts) {
      CAPTURE(text);
      CHECK(read(*machine, text) == verdict);
    }
  };
  expect(example.accepted, Verdict::kAccepted);
  expect(example.prefixes, Verdict::kPrefix);
  expect(example.dead, Verdict::kDead);
}

// How many states there are, and of how many of them an accepting state is within reach. The machine numbers its states
// in the order in which they are first met.
struct Census {
  size_t states = 0, alive = 0;
};

Census census(Machine& machine) {
  std::vector<std::vector<uint32_t>> predecessors;
  std::vector<uint32_t> reached;  // from which an accepting state is within reach
  uint32_t met = machine.start() == Machine::kDead ? 0 : 1;
  for (uint32_t state = 0; state < met; ++state) {
    for (const char byte : kAlphabet) {
      const uint32_t next = machine.step(state, static_cast<uint8_t>(byte));
      if (next == Machine::kDead) continue;
      met = std::max(met, next + 1);
      if (predecessors.size() < met) predecessors.resize(met);
      predecessors[next].push_back(state);
    }
    if (machine.accepts(state)) reached.push_back(state);
  }
  std::vector<bool> marked(met);
  for (const uint32_t state : reached) marked[state] = true;
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const uint32_t previous : predecessors[reached[i]]) {
      if (!marked[previous]) reached.push_back(previous);
      marked[previous] = true;
    }
  }
  return {met, reached.size()};
}

std::string message_of(const DecimalSpec& spec) {
  try {
    make_decimal_machine(spec);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("decimal: the grammar of JSON numbers") {
  check({{},
         {"0", "-0", "7", "10", "0.0", "-0.50", "1e5", "1E+05", "0e-999", "12345678901234567890.5e-12345"},
         {"", "-", "1.", "1e", "1e+", "0.0e-"},
         {"+", "01", "-01", ".5", "1.e", "1..", "1.5.", "1e+-", "1e5.", "e", " ", "0x", "--", "1f"}});
  check({{.exponent = false}, {"0", "-1.50"}, {"-"}, {"1e", "0.0E", "0e"}});
  check({{.exponent = false}, {std::string(5000, '9') + "." + std::string(5000, '0')}, {}, {}});
}

TEST_CASE("decimal: every byte outside of the alphabet is dead") {
  const auto machine = make_decimal_machine({});
  const uint32_t integer = machine->step(machine->start(), '1');
  for (int byte = 0; byte < 256; ++byte) {
    if (kAlphabet.find(static_cast<char>(byte)) != std::string_view::npos) continue;
    CAPTURE(byte);
    CHECK(machine->step(machine->start(), static_cast<uint8_t>(byte)) == Machine::kDead);
    CHECK(machine->step(integer, static_cast<uint8_t>(byte)) == Machine::kDead);
  }
}

TEST_CASE("decimal: bounds") {
  check({{.minimum = "10", .maximum = "20", .exponent = false},
         {"10", "20", "20.000", "19.999", "15"},
         {"1", "2"},
         {"0", "3", "-", "9", "21", "100", "20.01", "9.9"}});
  check({{.minimum = "10", .maximum = "20"},
         {"10", "1e1", "1.5e1", "150e-1", "0.2e2", "0.00012e+005", "200e-1", "2e1", "100000000e-7"},
         {"1", "2", "1e", "0", "0.1", "100", "1e0", "200e-", "2e000"},
         {"3", "-", "1e-", "1e2", "2.01e1", "201e", "21e", "0.0e", "0e"}});
  check({{.minimum = "10", .maximum = "20", .exclusive_minimum = true, .exclusive_maximum = true, .exponent = false},
         {"10.0001", "19.99999", "11", "19"},
         {"10", "1", "10.0"},
         {"20", "2", "9"}});
  check({{.minimum = "-21", .maximum = "1.01", .exclusive_minimum = true, .exclusive_maximum = true, .exponent = false},
         {"-20.999", "-20", "-3", "1", "1.00999", "1.0000"},
         {"-", "1."},
         {"-21", "-22", "-29", "-30", "1.01", "1.02", "1.09", "1.1", "2"}});
  const std::string large = "9727837981879871";
  check({{.maximum = large + "00000000000", .exclusive_maximum = true},
         {"972783798187987099999999999", "9.727837981879870e+26", "9.7278379818798709999e26", large + "0000000000"},
         {large + "00000000000", "972783798187987200000000000"},  // a negative exponent may follow
         {"9.727837981879871e+26", "9.727837981879879e+26", "9.8e26"}});
  check({{.maximum = large + "00000000000", .exclusive_maximum = true, .scientific = true},
         {"972783798187987099999999999", "9.727837981879870e+26", "9.727837981879871e+2"},
         {"9.727837981879871e"},
         {large + "00000000000", "972783798187987200000000000", "9.727837981879871e+26"}});
  check({{.minimum = "-1.5", .maximum = "0.25", .exponent = false},
         {"-1.5", "-1.500", "-0", "0", "0.25", "-0.9", "0.2499"},
         {"-", "-1.", "0."},
         {"-1.51", "-2", "1", "0.26", "0.3", "0.2500001"}});
  check({{.minimum = "0"}, {"0", "-0", "-0.00e7", "5e-324", "1e999999999999"}, {"-"}, {"-1", "-0.01"}});
  check({{.minimum = "0", .exclusive_minimum = true}, {"1e-99999", "0.001"}, {"0", "0.00"}, {"-", "0e"}});
  check({{.maximum = "0", .exclusive_maximum = true}, {"-1e-99999", "-0.001"}, {"", "-", "-0"}, {"0", "1"}});
  check({{.minimum = "0", .maximum = "0"}, {"0", "-0", "0.000", "-0.0e+9"}, {"-"}, {"1", "0.001"}});
  check({{.minimum = "1e15", .maximum = "2e17"},
         {"1e15", "1e0016", "1E+17"},
         {"1e1", "1e0", "1e+001"},
         {"1e2", "1e-", "1e14", "1e18", "1e3", "1e100"}});
  check({{.minimum = "-2e-115", .maximum = "-1e-117"}, {"-1e-117"}, {"-1e-1", "-1e-11"}, {"-1e+", "-1e-2", "-1e-110"}});
  check({{.minimum = "5e-324", .maximum = "1.7976931348623157e308"},
         {"1e308", "17.976931348623157e307", "5e-324", "0.5e-323", "2e30"},
         {"1e-", "4e-"},
         {"1.7976931348623157e309", "2e308", "4e-324", "1.7976931348623158e308", "-"}});
}

TEST_CASE("decimal: multiples") {
  check({{.multiple_of = "0.01", .exponent = false},
         {"0", "1.25", "-3.5", "7", "0.010"},
         {"0.", "1."},
         {"0.001", "1.255"}});
  check({{.multiple_of = "2.5", .exponent = false},
         {"0", "2.5", "-5", "7.5", "10.0"},
         {"1", "2", "13"},
         {"1.", "2.4", "5.5", "2.51"}});
  check(
      {{.multiple_of = "1e3", .exponent = false}, {"1000", "-12000.0", "0.0"}, {"1", "100", "1234"}, {"100.", "0.1"}});
  check({{.multiple_of = "1e15"}, {"1e15", "3E+16", "2000000000000000", "0.5e16"}, {"5e1"}, {"1e-", "1.e"}});
  check({{.multiple_of = "999999999999999999", .exponent = false}, {"1999999999999999998"}, {"1", "5"}, {"1."}});
  check({{.integer = true},
         {"1", "1.0", "1.50e1", "1e5", "1E+22", "120e-1", "-0", "0.5e1", "10000000000000000000000e-22", "1e-0"},
         {"1.5", "0.1", "0.1e", "1.5e0"},
         {"1e-1", "15e-01", "1.50e-", "0.5e-"}});
  check({{.integer = true, .exponent = false}, {"1.000", "0.0", "12"}, {"1."}, {"1.5", "0.1", "1.00001"}});
  check(
      {{.multiple_of = "3", .exponent = true}, {"3e7", "0.3e1", "1.2e1", "12e0"}, {"1", "3e-"}, {"3e-1", "1e", "4e"}});
  check({{.multiple_of = "2.5", .integer = true, .exponent = false}, {"5", "10.0", "-15"}, {"2"}, {"2.", "7."}});
}

TEST_CASE("decimal: whole numbers without a point") {
  check({{.point = false},
         {"0", "-0", "-7", "120", "1" + std::string(5000, '0')},
         {"", "-"},
         {"1.", "0.", "1e", "0e", "01", "1.0", "1e5"}});
  check({{.minimum = "1.5", .maximum = "12", .exclusive_maximum = true, .multiple_of = "0.5", .point = false},
         {"2", "9", "10", "11"},
         {"1"},
         {"0", "-", "12", "13", "2.", "2e", "100"}});
  check({{.multiple_of = "2.5", .point = false}, {"0", "5", "-10"}, {"1", "12"}, {"5.", "2."}});
  CHECK(make_decimal_machine({.minimum = "1.2", .maximum = "1.9", .point = false})->start() == Machine::kDead);
}

TEST_CASE("decimal: scientific notation") {
  check({{.scientific = true},
         {"1e5", "-1.25E-7", "0e3", "0.0e3", "-0.00", "12", "12.50", "0.001"},
         {"1.5e+"},
         {"12e", "12.5e", "0.1e", "0.01e", "10.0e"}});
  check({{.integer = true, .scientific = true},
         {"1e+22", "1.50e1", "1.0", "15.0", "0e7", std::string(60, '9')},
         {"1.5", "1.50e", "1e-", "1.5e0"},
         {"10e", "10.5", "15e", "1e-1", "1.5e-", "0.5"}});
  check({{.minimum = "0", .maximum = "100", .scientific = true},
         {"1e2", "100.0", "9.99e1", "1e0000", "1e-7"},
         {"1e", "2e-"},
         {"1000", "100.1", "101", "10e", "1e3", "2e2"}});
}

TEST_CASE("decimal: bounded spelling") {
  check({{.exponent = false, .places = 2},
         {"0", "-0", "0.00", "1.25", std::string(60, '9')},
         {"0.", "-"},
         {"0.000", "1.250", "1e"}});
  check({{.minimum = "1.5", .exclusive_minimum = true, .exponent = false, .places = 2},
         {"1.51", "2"},
         {"1", "1.5"},
         {"1.50", "1.500"}});
  check({{.integer = true, .exponent = false, .places = 1}, {"1.0", "100"}, {"1."}, {"1.00", "1.1"}});
  check({{.integer = true, .exponent = false, .places = 0}, {"12"}, {"-"}, {"1."}});
  check({{.scientific = true, .plain = false, .places = 2},
         {"1.25e7", "1e007", "1.00E-999"},
         {"1", "1.25", "1e", "1e-"},
         {"0", "12", "1.250", "1e0007", "1e1000"}});
  check({{.minimum = "1e5", .maximum = "2e5", .scientific = true, .plain = false, .places = 2},
         {"1e5", "1e+05", "1.99E005", "2e5"},
         {"1e", "1e0", "1e00", "2.0"},
         {"1e4", "1e50", "1e000", "1e-", "2.01e", "0"}});
}

TEST_CASE("decimal: multiples between bounds") {
  check({{.minimum = "1.05", .maximum = "1.07", .multiple_of = "0.02", .exponent = false},
         {"1.06", "1.0600"},
         {"1", "1.", "1.0"},
         {"1.05", "1.07", "1.061", "0", "2"}});
  check({{.minimum = "1", .maximum = "20", .multiple_of = "7", .exponent = false},
         {"7", "14", "14.0"},
         {"1"},
         {"2", "3", "12", "8", "0", "21"}});
  check({{.minimum = "0", .maximum = "1e300", .multiple_of = "7", .exponent = false},
         {"7" + std::string(299, '0')},
         {"1" + std::string(298, '0'), "9" + std::string(298, '0')},
         {"7" + std::string(300, '0'), "1" + std::string(299, '0')}});
}

TEST_CASE("decimal: no member, no start") {
  const std::vector<DecimalSpec> none = {
      {.minimum = "10.5", .maximum = "10.9", .multiple_of = "1"},
      {.minimum = "1", .maximum = "2", .exclusive_minimum = true, .exclusive_maximum = true, .integer = true},
      {.minimum = "2", .maximum = "1"},
      {.minimum = "1", .maximum = "1.0", .exclusive_maximum = true},
      {.minimum = "0", .maximum = "0", .exclusive_minimum = true},
      {.minimum = "0", .maximum = "1", .exclusive_minimum = true, .multiple_of = "1.5"},
      {.minimum = "-0.9", .maximum = "-0.1", .integer = true},
  };
  for (const DecimalSpec& spec : none) {
    CAPTURE(canonical_key(spec));
    CHECK(make_decimal_machine(spec)->start() == Machine::kDead);
  }
  CHECK(make_decimal_machine({.minimum = "1", .maximum = "1.0"})->start() != Machine::kDead);
}

TEST_CASE("decimal: the limits on mantissas before an exponent") {
  const std::string zeros(40, '0');
  const std::string far = "0." + zeros + "01";  // the first nonzero digit has 41 zeros before it
  check({{.minimum = "1", .maximum = "9"},
         {"0." + zeros + "1e41", "1" + zeros.substr(1) + "e-39"},
         {},
         {far, "1" + zeros}});
  check({{.integer = true}, {"1" + zeros, "1" + zeros.substr(1) + "e-39"}, {}, {"1" + zeros + "e"}});
  check({{.integer = true}, {"1.0" + zeros.substr(2) + "e5", "1.0" + zeros}, {}, {"1.0" + zeros + "e", "1.5" + zeros}});
  check({{.maximum = "9"}, {"1.5" + zeros + zeros + "e0"}, {}, {}});  // the length is limited with multiples only
  check({{.minimum = "0"}, {far + "e50", "1" + zeros + "e0"}, {}, {}});
  check({{.within_reach = true}, {far, "0." + zeros + "1e7", "0.0" + zeros + zeros + "e3"}, {}, {far + "e"}});
  // A bound that no short mantissa comes near to.
  const std::string long_one = "1." + zeros + "1";
  check({{.minimum = long_one, .maximum = "1." + zeros + "2", .within_reach = true},
         {long_one},
         {"1"},
         {"0", "1e", "10"}});
}

TEST_CASE("decimal: numbers as programs print them") {
  const auto machine = make_decimal_machine({.minimum = "-1e30", .maximum = "1e30"});
  const auto integer = make_decimal_machine({.minimum = "-1e30", .maximum = "1e30", .integer = true});
  const auto cents = make_decimal_machine({.multiple_of = "1e-7"});
  for (const char* text : {"1e-07", "5e-05", "1.2345e+16", "1e+22", "6.02214076e+23"}) {
    CAPTURE(text);
    CHECK(read(*machine, text) == Verdict::kAccepted);
    const bool whole = std::string_view(text).find('-') == std::string_view::npos;
    CHECK(read(*integer, text) == (whole ? Verdict::kAccepted : Verdict::kDead));
    CHECK(read(*cents, text) == Verdict::kAccepted);
  }
}

TEST_CASE("decimal: from every state a number can be completed") {
  const std::vector<DecimalSpec> specs = {
      {},
      {.within_reach = true},
      {.minimum = "-12.5", .maximum = "1e-3"},
      {.minimum = "0.5", .maximum = "0.5", .within_reach = true},
      {.minimum = "3", .maximum = "450", .multiple_of = "0.07"},
      {.minimum = "1", .maximum = "100", .integer = true},
      {.minimum = "-1", .multiple_of = "64e-3", .exponent = false},
      {.minimum = "0", .maximum = "1e60", .multiple_of = "7", .exponent = false},
      {.minimum = "99e40", .maximum = "101e40", .multiple_of = "16"},
      {.minimum = "-31", .maximum = "1e9", .exclusive_minimum = true, .scientific = true},
      {.maximum = "2101", .exclusive_maximum = true, .multiple_of = "7", .point = false},
      {.minimum = "12", .maximum = "500", .integer = true, .scientific = true},
  };
  for (const DecimalSpec& spec : specs) {
    CAPTURE(canonical_key(spec));
    const auto machine = make_decimal_machine(spec);
    const Census result = census(*machine);
    CHECK(result.states > 1);
    CHECK(result.alive == result.states);
    CHECK(machine->memory_bytes() > result.states * sizeof(uint64_t));
  }
}

TEST_CASE("decimal: states are shared") {
  CHECK(census(*make_decimal_machine({})).states == 12);
  CHECK(census(*make_decimal_machine({.integer = true, .exponent = false})).states == 8);
  CHECK(census(*make_decimal_machine({.integer = true, .point = false})).states == 4);
  CHECK(census(*make_decimal_machine({.minimum = "0", .maximum = "1", .exponent = false})).states == 12);
}

TEST_CASE("decimal: an integer of any length passes through few states") {
  const auto machine = make_decimal_machine({.integer = true, .scientific = true});
  uint32_t state = machine->step(machine->start(), '1');
  state = machine->step(state, '7');
  for (const char digit : std::string("00123456789900000000000000000000000000000000000000001")) {
    CHECK(machine->step(state, static_cast<uint8_t>(digit)) == state);
  }
}

TEST_CASE("decimal: large sets make states on demand only") {
  const auto machine = make_decimal_machine({.minimum = "-1e300", .maximum = "1e300", .multiple_of = "123456789e-9"});
  CHECK(read(*machine, "123456789123456789123456789.123456789") == Verdict::kAccepted);
  CHECK(machine->memory_bytes() < 100'000);
}

TEST_CASE("decimal: keys") {
  const DecimalSpec spec{.minimum = "1.0", .multiple_of = "0.5", .integer = true};
  CHECK(canonical_key(spec) == canonical_key({.minimum = "10e-1", .exclusive_maximum = true, .multiple_of = "1"}));
  CHECK(canonical_key({.minimum = "-0"}) == canonical_key({.minimum = "0e5"}));
  CHECK(canonical_key({.exponent = false}) == canonical_key({.exponent = false, .within_reach = true}));
  CHECK(canonical_key({.integer = true, .point = false}) == canonical_key({.point = false, .within_reach = true}));
  CHECK(canonical_key({.multiple_of = "2"}) == canonical_key({.multiple_of = "2", .within_reach = true}));
  const std::vector<DecimalSpec> different = {
      {},
      {.minimum = "1"},
      {.maximum = "1"},
      {.minimum = "-1"},
      {.minimum = "1", .exclusive_minimum = true},
      {.minimum = "1", .maximum = "1"},
      {.multiple_of = "1"},
      {.multiple_of = "10"},
      {.point = false},
      {.exponent = false},
      {.scientific = true},
      {.within_reach = true},
      {.scientific = true, .within_reach = true},
  };
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK(canonical_key(different[i]) != canonical_key(different[j]));
  }
}

TEST_CASE("decimal: malformed and oversized numbers are refused") {
  for (const char* text :
       {"", "-", "+1", "01", "1.", ".5", "1e", "0x1", "1 ", " 1", "Infinity", "NaN", "1e5.0", "--1"}) {
    CAPTURE(text);
    CHECK(message_of({.minimum = text}).find("minimum \"" + std::string(text) + "\"") == 0);
    CHECK(message_of({.maximum = text}).find("maximum") == 0);
    CHECK(message_of({.multiple_of = text}).find("multiple") == 0);
    CHECK_THROWS_AS(canonical_key({.minimum = text}), std::invalid_argument);
  }
  for (const char* text : {"0", "0.00", "-1", "-0"}) {
    CHECK(message_of({.multiple_of = text}) == "multiple \"" + std::string(text) + "\" is not positive");
  }
  CHECK(message_of({.multiple_of = "1234567890123456789"}).find("more than 18 significant digits") !=
        std::string::npos);
  CHECK(message_of({.multiple_of = "123456789012345678000"}) == "");
  for (const char* text : {"1e400", "1e-401", "-1e99999999999999999999999", "1e-9223372036854775808"}) {
    CAPTURE(text);
    CHECK(message_of({.maximum = text}).find("400 places") != std::string::npos);
  }
  for (const char* text : {"9e399", "1e-400", "0e99999999999999999999"}) CHECK(message_of({.maximum = text}) == "");
  CHECK(message_of({.maximum = std::string(1000, '9')}).size() < 200);
}
