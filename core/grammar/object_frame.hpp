#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/frame.hpp"

// JSON objects: keys in any order or as listed, some required, each at most once, with counts, and with obligations
// ("at least one member must have such a value").
//
// The state is what matters about the members so far: which literal keys were seen (in order mode the position suffices),
// how many members (only as far as a bound can still notice), which obligations are fulfilled, which other keys were
// typed. A member is offered only if the object can still be completed after it.
//
// Tests: core/tests/object_frame_test.cpp, tests/core/test_exactness.py.

namespace grammask {

struct ObjectMember {
  std::string literal;  // the key with its quotes, for literal members
  ExprId key = 0;       // its expression; for families the expression of the whole family
  bool family = false;
  bool required = false;
  struct Value {
    ExprId value;
    uint64_t fulfils;  // obligation bits
  };
  std::vector<Value> values;
};

struct ObjectSpec {
  std::vector<ObjectMember> members;
  ExprId open = 0, colon = 0, comma = 0, close = 0;
  uint32_t min_members = 0;
  uint32_t max_members = ExprPool::kUnbounded;
  bool ordered = true;
  // What follows a key is read in a frame of its own, whose states all members of its kind share, unless the object is to be
  // part of a larger expression that must be free of calls.
  bool flat = false;
  uint32_t obligations = 0;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> dependencies;
};

class ObjectFrame final : public Frame {
 public:
  static constexpr uint32_t kMaxObligations = 16;
  static constexpr uint32_t kStart = 0;  // the state before the opening brace

  // Throws std::invalid_argument for a malformed specification.
  // open_ended: see Arena::open_ended.
  ObjectFrame(ExprPool& pool, uint32_t index, ObjectSpec spec, std::function<bool(ExprId)> open_ended);

  // Whether any object satisfies the specification, given which values have words.
  bool possible() const { return possible_; }
  bool possible_if(const std::function<bool(ExprId)>& productive) const;
  const ObjectSpec& spec() const { return spec_; }
  uint32_t depth() const { return depth_; }  // of the deepest value

  ExprId expand(uint32_t state) override;
  ExprId key_body(uint32_t state, uint32_t family) override;
  ExprId after_key(uint32_t state, uint32_t family, std::optional<std::string_view> text) override;
  bool vague(uint32_t state) const override { return states_[state].vague; }
  ExprId whole_key(uint32_t family) override { return spec_.members[family].key; }
  ExprId onward(uint32_t state, const Lengths& length) override;
  uint32_t missing(uint32_t state) override;
  void mentioned(std::vector<ExprId>& out) const override;
  size_t memory_bytes() const override;

 private:
  static constexpr uint32_t kNoFamily = 0xffffffffu;
  enum class Phase : uint8_t { kStart, kFirst, kNext };
  struct State {
    Phase phase = Phase::kStart;
    bool vague = false;         // a key of unknown text was added
    uint32_t position = 0;      // ordered: literals before it are decided
    uint32_t count = 0;         // members so far, clipped where no bound can notice
    uint32_t texts = 0;         // TextList
    uint64_t fulfilled = 0;
    std::vector<uint64_t> seen;  // literal members, unless ordered without dependencies
  };

  bool seen(const State& s, uint32_t member) const;
  uint32_t intern(State&& s);
  State after(const State& s, uint32_t member, uint64_t fulfils) const;
  // coming: a family of which one more key, whose text is not known yet, is among the members.
  bool completable(const State& s, uint32_t coming = kNoFamily) const;
  bool needed(const State& s, std::vector<bool>& need) const;
  bool closable(const State& s) const;
  ExprId members(const State& s);
  ExprId next_member(const State& s, const Lengths& length);
  ExprId shortest_member(const State& s, const std::vector<uint32_t>& candidates, const Lengths& length);
  ExprId value_then(const State& s, uint32_t member, const std::optional<std::string_view>* text);

  ExprPool& pool_;
  const uint32_t index_;
  ObjectSpec spec_;
  std::function<bool(ExprId)> open_ended_;
  uint32_t depth_ = 0;
  bool tracks_seen_ = false;
  bool simple_ = false;  // only required keys restrict completion
  bool possible_ = false;
  std::vector<uint32_t>
      next_required_;   // ordered: first required literal at or after a position, members.size() if none
  std::vector<uint64_t> family_size_;     // words of each family, clipped
  TextList texts_;
  std::vector<State> states_;
  std::unordered_map<std::string, uint32_t> state_index_;
};

}  // namespace grammask
