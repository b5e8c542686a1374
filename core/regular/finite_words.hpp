#pragma once

#include <string>
#include <vector>

#include "regular/expr.hpp"

namespace grammask {

// Appends the words of an expression that spells them one by one: unions of literals and word machines. False if it is of another
// kind, or has more than a few thousand.
bool finite_words(ExprPool& pool, ExprId e, std::vector<std::string>& out);

// An intersection of which some parts are complements, as a text that is not one of some words: the others, and what is excluded.
struct Exclusion {
  std::vector<ExprId> included, excluded;
  static Exclusion of(const ExprPool& pool, ExprId intersection);
};

}  // namespace grammask
