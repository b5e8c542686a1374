#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "grammar/arena_mutex.hpp"
#include "grammar/frame.hpp"
#include "grammar/object_frame.hpp"
#include "grammar/unique_array_frame.hpp"
#include "regular/characters.hpp"
#include "regular/expr.hpp"

// Everything that constraints over one vocabulary share: expressions, rules, frames, and the *states* built from them.
//
// A state is an expression made ready for stepping: for each class of bytes, what happens. Most bytes are decided by a
// look-up: dead, or the next expression. A byte may also call a letter (push a frame), and a nullable state may return
// to the frame below. Only where several of these apply at once does the matcher work with sets (matcher/stepper.cpp).
//
// One mutex guards all growth. States are published with release and never change, so stepping takes no lock.

namespace grammask {

struct LocalMask;
class CountedPattern;
class CountedText;
class Leaving;
class OpenText;
struct RemainderMask;
class ShortestWords;
class Vocabulary;

struct Letter {
  ExprId letter;
  ExprId body;       // what the new frame starts with
  ExprId rest;       // what follows in this frame
  ByteSet start;     // bytes a word of the letter may start with (a superset)
  bool key = false;  // a captured key
  bool vague = false;  // a captured key of a frame state that misses a text: its exact body is unknown
  bool open_ended = false;  // a vague key that may begin all the same: see Arena::open_ended
  bool checked = false;  // a captured key that must not repeat an earlier one and whose body cannot say so
};

struct SpecialToken {
  uint32_t token_id;
  ExprId rest;
};

// What a byte does in a state: the low two bits are the kind, the others an expression or the index of a letter.
enum class Act : uint32_t { kDead = 0, kNext = 1, kCall = 2, kMany = 3 };

struct State {
  ExprId self = 0;
  bool nullable = false;  // may return here
  const uint8_t* class_of = nullptr;
  std::vector<uint32_t> action;  // per class
  std::vector<ExprId> next;      // per class: derivative by its bytes, 0 if dead
  std::vector<Letter> letters;
  std::vector<SpecialToken> tokens;
  ByteSet start;                 // bytes that do anything other than return
  ByteSet loops;                 // bytes that lead back to this state and do nothing else
  // The same for whole characters, by their first bytes; filled when first asked for (Arena::character_loops).
  ByteSet character_loops;
  std::atomic<bool> knows_character_loops{false};
  int32_t only_letter = -1;      // the letter, when calling it is the only thing this state can do
  std::atomic<const LocalMask*> mask{nullptr};

  Act act(uint8_t b) const { return static_cast<Act>(action[class_of[b]] & 3); }
  uint32_t argument(uint8_t b) const { return action[class_of[b]] >> 2; }
};

struct Rule {
  std::string name;
  ExprId body = ExprPool::kEmptyId;
  bool defined = false;
  bool ready = false;     // the facts below are final
  bool nullable = false;  // derives the empty text
  bool productive = false;
  ByteSet start;
};

class Arena final : public FrameExpander {
 public:
  Arena();
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Held by every caller of the non-const members below, except state() on a state that exists.
  ArenaMutex& mutex() { return mutex_; }
  ExprPool& pool() { return pool_; }

  ExprId new_rule(std::string name);
  void define(ExprId rule, ExprId body);
  const Rule& rule(ExprId rule) const { return rules_[pool_.node(rule).a]; }
  ExprId rule_body(uint32_t index) const { return rules_[index].body; }
  ExprId object(ObjectSpec spec);
  ExprId unique_array(UniqueArraySpec spec);
  // e with its calls replaced by what they call, as far as possible; rules, which may recurse, only so many levels deep.
  // `final` turns false if that depends on rules that are not defined yet.
  ExprId inlined(ExprId e, bool& final, int rules = 4);
  // Whether calls, rules, tokens or keys can occur in words of e (frames of plain members are free of them).
  bool has_real_letters(ExprId e);
  // Whether no finite set of words can make a prefix of e dead: what may follow a prefix is endless, or holds a call,
  // unless the prefix is a word itself. A key of such a language may begin although earlier keys are unknown.
  // most_states: where e has more, the answer is no.
  bool open_ended(ExprId e, size_t most_states = 5000);
  // How far, in bytes, any state of a letter-free expression is from a word at most; kFar if it has too many.
  uint32_t remoteness(ExprId e);
  static constexpr uint32_t kFar = 0xffffffffu;
  // What the owners of this arena keep across constraints, by name.
  ExprId* memo(const std::string& key) {
    const auto it = memo_.find(key);
    return it == memo_.end() ? nullptr : &it->second;
  }
  void set_memo(std::string key, ExprId e) { memo_[std::move(key)] = e; }
  // A character class, built once for each (ranges, spelling).
  ExprId characters(const CodePointRanges& ranges, Spelling spelling);
  Frame& frame(uint32_t index) { return *frames_[index]; }

  // Settles the rules reachable from root and returns an equivalent root without unproductive ones: kEmptyId if the
  // language is empty. Throws std::invalid_argument for an undefined rule.
  ExprId settle(ExprId root);
  std::vector<std::string> unproductive(ExprId root);

  const State& state(ExprId e) {
    State* s = std::atomic_ref<State*>(pool_.node(e).state).load(std::memory_order_acquire);
    return s ? *s : build_state(e);
  }
  // The first bytes of those characters that lead back to a state and do nothing else, all characters with such a byte.
  const ByteSet& character_loops(const State& s) {
    return s.knows_character_loops.load(std::memory_order_acquire) ? s.character_loops : find_character_loops(s);
  }
  // The first bytes of those characters that lead from a state to another one, all characters with such a byte.
  ByteSet characters_to(const State& s, ExprId to);
  State& mutable_state(ExprId e) { return const_cast<State&>(state(e)); }
  // The continuation after a captured key.
  ExprId after_key(ExprId key, std::optional<std::string_view> text);
  // A checked key that is complete with this text: the expression without the empty word if it repeats an earlier key.
  ExprId unless_repeated(ExprId key, std::string_view text, ExprId e);

  ShortestWords& shortest_words(const Vocabulary& vocabulary);

  size_t memory_bytes() const;
  uint32_t state_count() const { return static_cast<uint32_t>(states_.size()); }
  // The table of unit{...} rest, null if it is not of that kind; kept for all counts and constraints.
  CountedText* counted_text(const Vocabulary& vocabulary, ExprId unit, ExprId rest);
  // Whether such tables count this unit.
  bool counts_characters(ExprId unit, ExprId rest);
  // The table of (unit{...} & pattern) rest, null if the pattern has too many states.
  const CountedPattern* counted_pattern(const Vocabulary& vocabulary, ExprId unit, ExprId pattern, ExprId rest);
  // Null until a unit has been asked for a few times: a table costs as much as several masks by walking.
  const OpenText* open_text(const Vocabulary& vocabulary, ExprId unit);
  LocalMask* keep(std::unique_ptr<LocalMask> mask);
  // The one object for these nodes. Takes the lock itself.
  std::shared_ptr<const Leaving> leaving(std::vector<uint32_t> nodes);
  const RemainderMask* remainder_mask(const Leaving& leaving, ExprId rest) const;
  // Keeps the first of those that several threads may have made.
  const RemainderMask* keep(const Leaving& leaving, ExprId rest, std::unique_ptr<RemainderMask> mask);
  size_t mask_bytes() const { return mask_bytes_; }

  // FrameExpander
  ExprId expand(uint32_t frame, uint32_t state) override { return frames_[frame]->expand(state); }
  ExprId key_body(uint32_t frame, uint32_t state, uint32_t family) override {
    return frames_[frame]->key_body(state, family);
  }

 private:
  const State& build_state(ExprId e);
  bool build_step(ExprId e, State& s);
  void build_general(ExprId e, State& s);
  const ByteSet& find_character_loops(const State& s);
  bool all_return(const State& s, uint8_t place, ExprId to);
  const uint8_t* intern_classes(const std::array<uint8_t, 256>& classes);
  bool open_ended_but_for_words(ExprId e, size_t most_states);
  ExprId without_nullable_letters(ExprId e);
  bool derives_nothing(ExprId letter);
  bool has_real_families(const ObjectFrame& frame) const;
  ByteSet start_bytes(ExprId e);
  void collect_rules(ExprId e, std::vector<uint32_t>& rules);
  bool productive(ExprId e, std::unordered_map<ExprId, bool>& memo);
  ExprId rewrite(ExprId e, std::unordered_map<ExprId, ExprId>& memo,
                 std::vector<std::pair<uint32_t, uint32_t>>& pending);

  ArenaMutex mutex_;
  ExprPool pool_;
  std::vector<Rule> rules_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<State>> states_;
  std::vector<std::unique_ptr<std::array<uint8_t, 256>>> classes_;
  IdTable class_table_;
  std::unordered_map<std::string, ExprId> character_classes_;
  std::unordered_map<std::string, ExprId> memo_;
  std::map<std::pair<ExprId, size_t>, bool> open_ended_;  // by expression and most states
  std::unordered_map<ExprId, uint32_t> remoteness_;
  std::unordered_map<uint64_t, std::unique_ptr<CountedText>> counted_texts_;
  std::unordered_map<uint64_t, bool> counted_units_;
  std::map<std::array<ExprId, 3>, std::unique_ptr<CountedPattern>> counted_patterns_;
  struct OpenTextSlot {
    uint32_t asked = 0;
    std::unique_ptr<OpenText> made;
  };
  std::unordered_map<ExprId, OpenTextSlot> open_texts_;
  std::vector<std::unique_ptr<LocalMask>> masks_;
  std::unordered_multimap<uint64_t, std::shared_ptr<const Leaving>> leavings_;  // by a hash of their nodes
  std::unordered_map<uint64_t, std::unique_ptr<RemainderMask>> remainder_masks_;  // by number of the leaving, rest
  std::vector<const uint8_t*> set_classes_;  // by byte set: 1 inside, 0 outside
  std::unique_ptr<ShortestWords> shortest_words_;
  size_t state_bytes_ = 0;
  size_t mask_bytes_ = 0;
};

}  // namespace grammask
