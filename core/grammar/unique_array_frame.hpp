#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/frame.hpp"
#include "grammar/item_counts.hpp"
#include "grammar/json_spellings.hpp"

// JSON arrays whose items are compared: pairwise different values, or two of them equal.
//
// An item is a captured text. The next item is (item) minus every spelling of the values so far, so where the items form
// a regular language, the mask is exact: an array of unique booleans that needs a third item is never begun, and an item
// does not use up the only value that a later position could take. Items that
// recurse or hold free keys cannot be subtracted; for those an item that repeats a value cannot be closed
// (Frame::repeats, asked by the stepper), so the text must go another way.
//
// Where items are counted as well, or two must be equal, they are of kinds that share no value. Each kind is a family of
// keys, and ItemCounts tells which may follow. Until two items are equal, all are remembered; where none but an equal one
// is left to come, the next is (kind) and any spelling of an earlier value. That does not see through calls, so for kinds
// that are no regular language it may also be an earlier text as it stands there. From then on nothing is remembered, and
// items are calls.
//
// Tests: tests/core/test_exactness.py.

namespace grammask {

struct UniqueArraySpec {
  std::vector<ExprId> prefix;  // items by position; with kinds: the items of each kind
  ExprId item = 0;             // the others; kEmptyId if there are none
  ExprId open = 0, comma = 0, close = 0;
  uint32_t min_items = 0;
  uint32_t max_items = ExprPool::kUnbounded;
  ExprId before_item = ExprPool::kEpsilonId;  // blanks that the items begin with; only asked for with kinds
  std::optional<ItemRules> kinds;  // says again how many items there are; the frame finds out the supply
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
    uint32_t count = 0;   // items so far, clipped where nothing can notice; with kinds their profile
    uint32_t values = 0;  // TextList of canonical values
    ExprId spellings = ExprPool::kEmptyId;  // of all values so far
    bool unspelled = false;  // but for one whose spellings no automaton holds: items are compared when complete
    std::vector<ExprId> copies;  // by kind: the texts of values that can only be repeated as they are
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
  std::map<std::string, JsonText> easy_values(ExprId body, uint64_t enough);
  const FewValues& few_values(uint32_t family);
  bool completable(uint32_t count, uint32_t values, const std::string* also);
  const Refused& refused(uint32_t id);
  ExprId after_text(uint32_t state, uint32_t family, std::string_view text);
  void remember(State& s, const struct JsonText& value, const std::string& canonical);
  ExprId other_than(ExprId seen, ExprId body);

  // With kinds.
  bool two_equal() const { return spec_.kinds && spec_.kinds->repeats; }
  ItemCounts& counts();
  bool unknown_matters(const State& s);
  std::optional<uint32_t> completable_after(const State& s, uint32_t kind, bool again);
  ExprId next_item(uint32_t id, uint32_t kind);
  ExprId next_items(uint32_t id);
  ExprId body_of_kind(const State& s, uint32_t kind);
  ExprId after_kind(const State& s, uint32_t kind, std::string_view text, const struct JsonText& value);
  ExprId onward_with_kinds(uint32_t id, const Lengths& length);

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
  JsonSpellings spellings_;
  std::optional<ItemCounts> counts_;
};

}  // namespace grammask
