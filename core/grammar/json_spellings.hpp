#pragma once

#include <string>
#include <unordered_map>

#include "grammar/json_text.hpp"
#include "regular/expr.hpp"

namespace grammask {

class Arena;

// Every text that stands for a JSON value, with any white space.
class JsonSpellings {
 public:
  explicit JsonSpellings(Arena& arena);

  // kEmptyId if no automaton holds them: numbers with exponents of hundreds. canonical: that of the value.
  ExprId of(const JsonText& value, const std::string& canonical);
  size_t memory_bytes() const { return known_.size() * 200; }

 private:
  ExprId make(const JsonText& value);
  ExprId quoted(std::string_view utf8);

  Arena& arena_;
  ExprPool& pool_;
  std::unordered_map<std::string, ExprId> known_;
};

}  // namespace grammask
