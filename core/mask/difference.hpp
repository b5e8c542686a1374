#pragma once

#include <memory>
#include <vector>

#include "mask/local_mask.hpp"

namespace grammask {

// Masks of expressions that differ from another one, whose mask is known or shared, in a few places: those of a text that is
// not one of some words. Both expressions are free of calls. Null where that does not pay or cannot be told.

// The mask of e from that of `whole`, by walking where their automata differ.
std::unique_ptr<LocalMask> by_difference(Arena& arena, const Vocabulary& vocabulary, ExprId e, ExprId whole);

// The same where e is (w ∩ ¬x ∩ ...) and then something, `whole` is w and that, each x in `excluded` is a finite set of words,
// and no prefix of w is dead for want of finitely many words (Arena::open_ended): nothing differs before one of the words ends.
std::unique_ptr<LocalMask> by_difference_at_words(Arena& arena, const Vocabulary& vocabulary, ExprId e, ExprId whole,
                                                  const std::vector<ExprId>& excluded);

}  // namespace grammask
