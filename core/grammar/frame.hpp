#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "regular/expr.hpp"

namespace grammask {

// A collection whose grammar is too large to write down: a right-linear grammar generated on demand.
//
// A frame state stands for "what may follow, given what the collection holds so far". expand(state) is an ordinary
// expression over bytes, value calls, keys and further frame states. A *key* is a letter whose text matters afterwards:
// key_body is what it may be, after_key continues once its text is known.
class Frame {
 public:
  // A key letter that stands for "what comes next depends on a text that is not known".
  static constexpr uint32_t kUnknown = 0xffffffffu;

  virtual ~Frame() = default;
  virtual ExprId expand(uint32_t state) = 0;
  virtual ExprId key_body(uint32_t state, uint32_t family) = 0;
  // text is nullopt while masks are computed for many possible texts at once: the state it leads to is then *vague*.
  virtual ExprId after_key(uint32_t state, uint32_t family, std::optional<std::string_view> text) = 0;
  virtual bool vague(uint32_t state) const = 0;
  // All keys of a family, whatever the collection holds.
  virtual ExprId whole_key(uint32_t family) = 0;
  // Whether a complete key must be asked for repeats() before it may return, because key_body alone cannot tell.
  virtual bool checked(uint32_t state, uint32_t family) {
    (void)state, (void)family;
    return false;
  }
  virtual bool repeats(uint32_t state, std::string_view text) {
    (void)state, (void)text;
    return false;
  }
  // One alternative of expand(state) that leads to the end with few members, given how long the words of an expression are
  // at least (ShortestWords); and about how many members that end still needs.
  using Lengths = std::function<uint64_t(ExprId)>;
  virtual ExprId onward(uint32_t state, const Lengths& length) = 0;
  virtual uint32_t missing(uint32_t state) = 0;
  // Expressions this frame calls, for checks and rewriting over rules.
  virtual void mentioned(std::vector<ExprId>& out) const = 0;
  virtual size_t memory_bytes() const = 0;
};

// The texts a collection has remembered, as a shared list (newest first).
class TextList {
 public:
  struct Node {
    uint32_t previous;
    uint32_t family;
    std::string text;
    ExprId all;  // the union of the texts up to here
  };
  explicit TextList(ExprPool& pool) : pool_(pool) { nodes_.push_back({0, 0, "", ExprPool::kEmptyId}); }
  uint32_t add(uint32_t list, uint32_t family, std::string_view text);
  ExprId all(uint32_t list) const { return nodes_[list].all; }
  uint32_t count(uint32_t list, uint32_t family) const;
  bool has(uint32_t list, std::string_view text) const;
  size_t memory_bytes() const { return nodes_.size() * (sizeof(Node) + 96); }

 private:
  ExprPool& pool_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> index_;
};

}  // namespace grammask
