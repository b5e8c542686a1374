#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/frame.hpp"

// JSON arrays whose items are pairwise different values.
//
// An item is a captured text. The next item is (item) minus every spelling of the values so far, so where the items form
// a regular language, the mask is exact: an array of unique booleans that needs a third item is never begun, and an item
// does not use up the only value that a later position could take. Items that
// recurse or hold free keys cannot be subtracted; for those an item that repeats a value cannot be closed
// (Frame::repeats, asked by the stepper), so the text must go another way.
//
// Tests: tests/core/test_exactness.py.

namespace grammask {

struct UniqueArraySpec {
  std::vector<ExprId> prefix;  // items by position
  ExprId item = 0;             // the others; kEmptyId if there are none
  ExprId open = 0, comma = 0, close = 0;
  uint32_t min_items = 0;
  uint32_t max_items = ExprPool::kUnbounded;
};

class Arena;

class UniqueArrayFrame final : public Frame {
 public:
  static constexpr uint32_t kStart = 0;

  UniqueArrayFrame(Arena& arena, uint32_t index, UniqueArraySpec spec);

  const UniqueArraySpec& spec() const { return spec_; }
  uint32_t depth() const { return depth_; }  // of the deepest item
  // Whether any array satisfies the specification.
  bool possible();
  // The same as far as only the productivity of items is concerned.
  bool possible_if(const std::function<bool(ExprId)>& productive) const;

  ExprId expand(uint32_t state) override;
  ExprId key_body(uint32_t state, uint32_t family) override;
  ExprId after_key(uint32_t state, uint32_t family, std::optional<std::string_view> text) override;
  bool vague(uint32_t state) const override { return states_[state].vague; }
  ExprId whole_key(uint32_t family) override { return body_of(family); }
  bool checked(uint32_t state, uint32_t family) override;
  bool repeats(uint32_t state, std::string_view text) override;
  ExprId onward(uint32_t state, const Lengths& length) override;
  uint32_t missing(uint32_t state) override;
  void mentioned(std::vector<ExprId>& out) const override;
  size_t memory_bytes() const override;

 private:
  enum class Phase : uint8_t { kStart, kFirst, kNext };
  struct State {
    Phase phase = Phase::kStart;
    bool vague = false;
    uint32_t count = 0;   // items so far, clipped where nothing can notice
    uint32_t values = 0;  // TextList of canonical values
    ExprId spellings = ExprPool::kEmptyId;  // of all values so far
    bool unspelled = false;  // but for one whose spellings no automaton holds: items are compared when complete
  };
  uint32_t intern(const State& s);
  State after(const State& s) const;
  uint32_t family_at(uint32_t count) const;
  ExprId item_of(uint32_t family) const;
  ExprId body_of(uint32_t family);
  // The different values of a family if they are few.
  struct Value {
    std::string canonical;
    ExprId spellings;
  };
  struct FewValues {
    bool few = false;
    std::vector<Value> values;
  };
  // Values with which no array of the required length could be completed.
  struct Refused {
    ExprId spellings = ExprPool::kEmptyId;
    std::unordered_set<std::string> canonical;
  };
  const FewValues& few_values(uint32_t family);
  bool completable(uint32_t count, uint32_t values, const std::string* also);
  const Refused& refused(uint32_t id);
  ExprId after_text(uint32_t state, std::string_view text);
  // kEmptyId if no automaton holds them: numbers with exponents of hundreds.
  ExprId spellings(const struct JsonText& value);

  Arena& arena_;
  ExprPool& pool_;
  const uint32_t index_;
  UniqueArraySpec spec_;
  uint32_t depth_ = 0;
  TextList values_;
  std::vector<ExprId> bodies_;  // per family: the item as one expression, 0 until made
  std::unordered_map<uint32_t, FewValues> few_values_;
  std::unordered_map<uint32_t, Refused> refused_;
  std::vector<State> states_;
  std::unordered_map<std::string, uint32_t> state_index_;
  std::unordered_map<std::string, ExprId> after_texts_;  // memo of after_key, by state and text; a few of them
  std::unordered_map<std::string, ExprId> spelled_;      // spellings of the values met, by their canonical text
};

}  // namespace grammask
