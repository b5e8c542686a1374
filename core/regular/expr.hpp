#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "regular/byte_set.hpp"
#include "regular/id_table.hpp"
#include "regular/machine.hpp"
#include "regular/stable_vector.hpp"
#include "regular/work_limit.hpp"

// Expressions: hash-consed trees over an alphabet of 256 bytes plus letters.
//
// The regular part is textbook (Brzozowski 1964; Owens, Reppy & Turon 2009): an expression denotes a language, the
// derivative by a byte is again an expression, and because equal expressions have equal ids, expressions are the states
// of a lazily built deterministic automaton.
//
// This omits that outputs are not regular. A *letter* is an alphabet symbol that is not a byte: the call of another
// expression in a frame of its own (kCall), of a rule that may be recursive (kRule), of a key whose text the frame
// remembers (kKey), or a special token (kToken). Derivatives by letters work like those by bytes, and boolean
// operations may range over words of letters.
//
// Two kinds are not trees: a kFrame expands on demand into an ordinary expression (a nonterminal of a right-linear
// grammar too large to write down, such as "the object after these keys"), a kMachine is the state of native code.
//
// Tests: core/tests/expr_test.cpp, tests/core/test_exactness.py.

namespace grammask {

using ExprId = uint32_t;

class TooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Kind : uint8_t {
  kEmpty,         // no word
  kEpsilon,       // the empty word
  kSet,           // one byte;                    a: byte set
  kConcat,        // a then b
  kUnion,         // a: list, b: its length
  kIntersection,  // a: list, b: its length
  kComplement,    // not a
  kRepeat,        // between b and c times a;     c: kUnbounded for no limit
  kCall,          // letter: expression a in its own frame
  kRule,          // letter: rule a
  kToken,         // letter: special token a
  kKey,           // letter: a captured key;      a: frame, b: frame state, c: family
  kFrame,         // a: frame, b: frame state
  kMachine,       // a: machine, b: machine state
};

struct State;

struct Expr {
  Kind kind = Kind::kEmpty;
  uint8_t flags = 0;
  uint8_t alive = 0;    // memo of ExprPool::alive: 0 unknown, 1 yes, 2 no
  uint16_t depth = 0;   // nesting on the left, bounds the recursion of derive
  uint32_t a = 0, b = 0, c = 0;
  uint32_t first = 0;   // memo of byte_first, index into byte sets, 0 unknown
  uint32_t reach = 0;   // memo of the grammar layer's start_bytes, likewise
  uint32_t expansion = 0;  // memo of expand, for frames
  State* state = nullptr;  // grammar/arena.hpp; written once, published with release
};

// What the frames of the grammar layer provide to the regular layer.
class FrameExpander {
 public:
  virtual ~FrameExpander() = default;
  virtual ExprId expand(uint32_t frame, uint32_t state) = 0;
  virtual ExprId key_body(uint32_t frame, uint32_t state, uint32_t family) = 0;
};

class ExprPool {
 public:
  static constexpr uint32_t kUnbounded = 0xffffffffu;
  static constexpr uint16_t kMaxDepth = 4000;
  enum Flag : uint8_t {
    kNullable = 1,  // accepts the empty word over bytes and letters (a nullable call is still a letter)
    kBoolean = 2,   // holds an intersection or complement: emptiness needs a search
    kLetters = 4,   // holds a letter
    kRules = 8,     // mentions a rule, also inside calls: memos wait until rules are defined
    kLiteral = 16,  // a chain of single byte sets
    kCounted = 32,  // holds a counted repetition with a large bound
  };

  ExprPool();
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  // -- leaves and combinators; each returns the id of a normalised, interned node
  static constexpr ExprId kEmptyId = 0;
  static constexpr ExprId kEpsilonId = 1;
  ExprId set(const ByteSet& bytes);
  ExprId byte(uint8_t b) { return set(ByteSet::single(b)); }
  ExprId literal(std::string_view bytes);
  ExprId concat(ExprId a, ExprId b);
  ExprId concat(std::span<const ExprId> parts);
  ExprId unite(std::span<const ExprId> parts);
  ExprId unite(ExprId a, ExprId b);
  ExprId intersect(std::span<const ExprId> parts);
  ExprId intersect(ExprId a, ExprId b);
  ExprId complement(ExprId a);
  ExprId repeat(ExprId a, uint32_t low, uint32_t high);
  ExprId optional(ExprId a) { return unite(a, kEpsilonId); }
  ExprId anything();  // all byte strings
  ExprId call(ExprId body);
  ExprId rule(uint32_t index);
  ExprId token(uint32_t token_id);
  ExprId key(uint32_t frame, uint32_t state, uint32_t family);
  // depth: of the deepest expression that the frame holds.
  ExprId frame(uint32_t frame, uint32_t state, uint32_t depth);
  ExprId machine(uint32_t machine, uint32_t state);
  ExprId add_machine(const std::string& key, std::function<std::unique_ptr<Machine>()> make);
  // One word out of many; the order of the words and repetitions do not matter.
  ExprId words(std::vector<std::string_view> words);

  // -- derivatives
  ExprId derive(ExprId e, uint8_t byte);
  ExprId derive_letter(ExprId e, ExprId letter);
  // Letters that may come first (a superset), appended without duplicates.
  void letters(ExprId e, std::vector<ExprId>& out);
  // Partition of the bytes such that bytes of one class have equal derivatives: of[b], and by class a
  // representative and all its bytes.
  struct Classes {
    std::array<uint8_t, 256> of;
    std::vector<uint8_t> representative;
    std::vector<ByteSet> bytes;
  };
  void byte_classes(ExprId e, Classes& out);
  static void refine(Classes& classes, const std::vector<ByteSet>& sets);
  // The derivatives by all classes of a partition, which must be as fine as that of e.
  void derive_by_class(ExprId e, const Classes& classes, std::vector<ExprId>& out);
  // A superset of the bytes by which the derivative is not empty.
  const ByteSet& byte_first(ExprId e);

  // -- questions
  bool nullable(ExprId e) const { return nodes_[e].flags & kNullable; }
  bool has(ExprId e, Flag f) const { return nodes_[e].flags & f; }
  // Whether e has a word over bytes and letters (letters count as having words).
  bool alive(ExprId e);
  bool matches(ExprId e, std::string_view bytes);
  uint64_t count_words(ExprId e, uint64_t limit);
  // How many symbols every word has at least (a lower bound of that).
  uint32_t least_length(ExprId e);
  // A shortest word over bytes, false if there is none; e must be free of letters.
  bool shortest(ExprId e, std::string& out);
  std::string show(ExprId e, int depth = 12);

  const Expr& node(ExprId e) const { return nodes_[e]; }
  Expr& node(ExprId e) { return nodes_[e]; }
  std::span<const ExprId> children(ExprId e) const {
    const Expr& n = nodes_[e];
    return {lists_[n.a], n.b};
  }
  const ByteSet& bytes(uint32_t index) const { return byte_sets_[index]; }
  uint32_t intern_bytes(const ByteSet& bytes);
  ExprId letter_body(ExprId letter);  // kCall and kKey
  ExprId expand(ExprId frame_expr);
  Machine& machine_of(ExprId e) { return *machines_[nodes_[e].a]; }
  void set_expander(FrameExpander* expander) { expander_ = expander; }

  // A place to keep an expression under a key of the caller's choice, kEmptyId at first.
  ExprId& memo(uint64_t key) { return memo_[key]; }
  uint32_t size() const { return nodes_.size(); }
  size_t memory_bytes() const;

  // -- budgets: operations throw TooLarge beyond them
  void set_limit(uint64_t max_expressions) {
    max_expressions_ = std::min<uint64_t>(max_expressions, StableVector<Expr>::kMost);
  }
  uint64_t limit() const { return max_expressions_; }
  void set_deadline(std::chrono::steady_clock::time_point t) { deadline_ = t; }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }
  void check_deadline() const {
    if (WorkLimit::is_over()) throw TooLarge("one mask or one token took longer than Limits.mask_seconds");
    if (std::chrono::steady_clock::now() > deadline_) throw TooLarge("the time limit was reached");
  }

 private:
  struct Symbol {
    bool is_letter;
    uint32_t value;  // byte or letter id
  };
  ExprId intern(Kind kind, uint32_t a, uint32_t b, uint32_t c, uint8_t flags, uint32_t depth);
  ExprId intern_list(Kind kind, const std::vector<ExprId>& children, uint8_t flags, uint32_t depth);
  ExprId derive(ExprId e, Symbol s);
  ExprId derive_node(ExprId e, Symbol s);
  const std::vector<ByteSet>& partition(std::vector<uint32_t> sets);
  void collect_classes(ExprId e, ByteSet& singles, std::vector<uint32_t>& sets, std::vector<ExprId>& machines);
  bool search_alive(ExprId e);
  bool merge_counts(std::vector<ExprId>& list);
  uint64_t hash_of(ExprId e) const;

  StableVector<Expr> nodes_;
  std::map<std::vector<uint32_t>, std::vector<ByteSet>> partitions_;  // memo of partition
  std::vector<uint16_t> least_;  // memo of least_length + 1, 0 unknown
  // Child lists live in chunks that never move: derive recurses over a list while new lists are made.
  std::vector<const ExprId*> lists_;
  std::vector<std::unique_ptr<ExprId[]>> list_chunks_;
  size_t list_chunk_used_ = 0, list_chunk_size_ = 0, list_bytes_ = 0;
  IdTable table_;
  std::vector<ByteSet> byte_sets_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> byte_set_index_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::unordered_map<std::string, ExprId> machine_index_;
  std::unordered_multimap<uint64_t, ExprId> word_index_;  // by hash_words
  std::unordered_map<uint64_t, ExprId> memo_;
  // Of the derivative and of the partition that are being worked out: how deep inside the expression, and what was met there.
  int derive_depth_ = 0, collect_depth_ = 0;
  std::unordered_map<uint64_t, ExprId> derived_;
  std::unordered_set<ExprId> collected_;
  FrameExpander* expander_ = nullptr;
  uint64_t max_expressions_ = 20'000'000;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace grammask
