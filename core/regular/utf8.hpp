#pragma once

#include <cstdint>

// Well-formed UTF-8 (The Unicode Standard, table 3-7) as an automaton over the places within a character.

namespace grammask::utf8 {

// The places.
constexpr uint8_t kBetween = 0;    // between characters
constexpr uint8_t kOneLeft = 1;    // one more byte 80..BF
constexpr uint8_t kTwoLeft = 2;    // two more
constexpr uint8_t kThreeLeft = 3;  // three more
constexpr uint8_t kAfterE0 = 4;    // A0..BF, then one more
constexpr uint8_t kAfterED = 5;    // 80..9F, then one more
constexpr uint8_t kAfterF0 = 6;    // 90..BF, then two more
constexpr uint8_t kAfterF4 = 7;    // 80..8F, then two more
constexpr uint8_t kPlaces = 8;
constexpr uint8_t kNowhere = 0xff;
constexpr uint8_t kEveryPlace = 0xff;  // as a set: bit p is place p

constexpr uint8_t step(uint8_t place, uint8_t b) {
  const bool continues = b >= 0x80 && b <= 0xbf;
  switch (place) {
    case kBetween:
      if (b < 0x80) return kBetween;
      if (b >= 0xc2 && b <= 0xdf) return kOneLeft;
      if (b == 0xe0) return kAfterE0;
      if (b == 0xed) return kAfterED;
      if (b >= 0xe1 && b <= 0xef) return kTwoLeft;
      if (b == 0xf0) return kAfterF0;
      if (b >= 0xf1 && b <= 0xf3) return kThreeLeft;
      return b == 0xf4 ? kAfterF4 : kNowhere;
    case kOneLeft: return continues ? kBetween : kNowhere;
    case kTwoLeft: return continues ? kOneLeft : kNowhere;
    case kThreeLeft: return continues ? kTwoLeft : kNowhere;
    case kAfterE0: return b >= 0xa0 && b <= 0xbf ? kOneLeft : kNowhere;
    case kAfterED: return b >= 0x80 && b <= 0x9f ? kOneLeft : kNowhere;
    case kAfterF0: return b >= 0x90 && b <= 0xbf ? kTwoLeft : kNowhere;
    case kAfterF4: return b >= 0x80 && b <= 0x8f ? kTwoLeft : kNowhere;
    default: return kNowhere;
  }
}

// The places from which `byte` leads to one of a set of places.
constexpr uint8_t places_before(uint8_t byte, uint8_t set) {
  uint8_t out = 0;
  for (uint8_t p = 0; p < kPlaces; ++p) {
    const uint8_t next = step(p, byte);
    if (next != kNowhere && (set >> next & 1)) out = static_cast<uint8_t>(out | 1u << p);
  }
  return out;
}

}  // namespace grammask::utf8
