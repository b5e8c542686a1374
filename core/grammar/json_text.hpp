#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace grammask {

// A JSON value as needed for comparing values: numbers by exact value, strings decoded, object members by key.
struct JsonText {
  enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string scalar;  // number: "-123e-2" without trailing zeros in the digits; string: UTF-8
  std::vector<JsonText> items;
  std::vector<std::pair<std::string, JsonText>> members;  // sorted by key

  // A text that is equal for equal values only.
  std::string canonical() const;
  // The number in the JSON grammar.
  std::string number_text() const { return scalar; }
};

// nullopt if the bytes are not one JSON value (white space around it allowed).
std::optional<JsonText> parse_json_text(std::string_view bytes);

}  // namespace grammask
