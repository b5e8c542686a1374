#include "matcher/stepper.hpp"

#include <algorithm>

namespace grammask {

ExprId Stepper::after_return(const Stack::Node& node, ExprId rest) {
  if (!node.key) return rest;
  const std::lock_guard lock(arena_.mutex());
  std::optional<std::string_view> text;
  if (!vague_keys) text = std::string_view(text_).substr(node.start);
  const ExprId next = arena_.after_key(node.key, text);
  return arena_.pool().concat(next, rest);
}

uint32_t Stepper::push(const Letter& l, uint32_t parent) {
  if (!l.key) return stack_.push(l.rest, parent);
  return stack_.push(l.rest, parent, l.letter, static_cast<uint32_t>(text_.size()), l.checked, l.vague);
}

bool Stepper::may_repeat(uint32_t node) const {
  const Stack::Node& n = stack_.node(node);
  if (!n.checked || n.vague) return n.checked;
  for (size_t i = n.start; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') continue;
    if (c == '{' || c == '[') return true;
    // A number whose spellings cannot be excluded has an exponent or hundreds of digits.
    const bool number = c == '-' || (c >= '0' && c <= '9');
    constexpr size_t kManyDigits = 300;
    return number && (text_.find_first_of("eE", i) != std::string::npos || text_.size() - i > kManyDigits);
  }
  return true;
}

ExprId Stepper::checked(ExprId next, uint32_t node, uint8_t byte) {
  if (!arena_.state(next).nullable) return next;
  if (!may_repeat(node)) return next;
  const Stack::Node& n = stack_.node(node);
  if (vague_keys || n.vague) {
    met_vague_key = true;
    return ExprPool::kEmptyId;
  }
  std::string text = text_.substr(n.start);
  text.push_back(static_cast<char>(byte));
  const std::lock_guard lock(arena_.mutex());
  return arena_.unless_repeated(n.key, text, next);
}

// Whether `byte` could do anything in the frames below (a superset).
bool Stepper::may_continue(ExprId rest, uint32_t parent, uint8_t byte, int depth) {
  const State& s = arena_.state(rest);
  if (s.start.has(byte)) return true;
  if (!s.nullable) return false;
  const Stack::Node& n = stack_.node(parent);
  if (n.edge == Stack::kNone) return false;
  const Stack::Edge& e = stack_.edge(n.edge);
  if (depth == 0 || n.key || e.next != Stack::kNone) return true;
  return may_continue(e.rest, e.parent, byte, depth - 1);
}

Stepper::Result Stepper::step_one(Thread& thread, uint8_t byte) {
  const Stack::Mark mark = stack_.mark();
  ExprId expr = thread.expr;
  uint32_t node = thread.node;
  bool fresh = false;
  while (true) {
    const State& s = arena_.state(expr);
    const Act act = s.act(byte);
    if (act == Act::kMany) break;
    if (s.nullable && !fresh && stack_.node(node).edge != Stack::kNone) {
      const Stack::Node& n = stack_.node(node);
      const Stack::Edge& e = stack_.edge(n.edge);
      if (act == Act::kDead) {
        if (e.next != Stack::kNone) break;
        expr = after_return(n, e.rest);
        node = e.parent;
        continue;
      }
      if (n.key || e.next != Stack::kNone || may_continue(e.rest, e.parent, byte, 8)) break;
    }
    if (act == Act::kDead) {
      stack_.truncate(mark);
      return Result::kDead;
    }
    if (act == Act::kNext) {
      thread = {s.argument(byte), node};
      if (stack_.node(node).checked) {
        thread.expr = checked(thread.expr, node, byte);
        if (thread.expr == ExprPool::kEmptyId) {
          stack_.truncate(mark);
          return Result::kDead;
        }
      }
      return Result::kOne;
    }
    const Letter& l = s.letters[s.argument(byte)];
    if (l.vague && !l.open_ended) {
      met_vague_key = true;
      stack_.truncate(mark);
      return Result::kDead;
    }
    // A call that nothing follows returns straight to the frame below.
    if (l.rest != ExprPool::kEpsilonId || l.key) {
      node = push(l, node);
    }
    expr = l.body;
    fresh = true;
  }
  stack_.truncate(mark);
  return Result::kSet;
}

// Closes over calls and returns. consume(state, node) takes what the symbol does in a state; enter(letter) says whether
// the symbol may begin inside a letter.
template <typename Consume, typename Enter>
void Stepper::close(std::span<const Thread> threads, Consume consume, Enter enter) {
  work_.clear();
  called_.clear();
  returning_.clear();
  fresh_.clear();
  const auto add = [&](ExprId e, uint32_t n, bool fresh) {
    const Thread t{e, n};
    const uint64_t key = uint64_t{e} << 32 | n;
    if (fresh ? !returning_.has(key) && fresh_.insert(key) : returning_.insert(key)) work_.push_back({t, fresh});
  };
  for (const Thread& t : threads) add(t.expr, t.node, false);
  for (size_t i = 0; i < work_.size(); ++i) {
    const auto [thread, fresh] = work_[i];
    const State& s = arena_.state(thread.expr);
    consume(s, thread.node);
    for (const Letter& l : s.letters) {
      if (!enter(l)) continue;
      if (l.vague && !l.open_ended) {
        met_vague_key = true;
        continue;
      }
      if (l.rest == ExprPool::kEpsilonId && !l.key) {
        add(l.body, thread.node, true);
        continue;
      }
      const auto known =
          std::find_if(called_.begin(), called_.end(), [&](const auto& c) { return c.first == l.letter; });
      if (known != called_.end()) {
        stack_.add_edge(known->second, l.rest, thread.node);
      } else {
        const uint32_t n = push(l, thread.node);
        called_.emplace_back(l.letter, n);
        add(l.body, n, true);
      }
    }
    if (s.nullable && !fresh) {
      const Stack::Node n = stack_.node(thread.node);
      for (uint32_t e = n.edge; e != Stack::kNone; e = stack_.edge(e).next) {
        const Stack::Edge edge = stack_.edge(e);
        add(after_return(n, edge.rest), edge.parent, false);
      }
    }
  }
}

// Steps threads that neither call nor return on this byte; false, with out unchanged, if one of them might.
bool Stepper::step_each(std::span<const Thread> threads, uint8_t byte, std::vector<Thread>& out) {
  const size_t before = out.size();
  stepped_.clear();
  for (const Thread& t : threads) {
    const State& s = arena_.state(t.expr);
    const Stack::Node& n = stack_.node(t.node);
    const Act act = s.act(byte);
    if (act == Act::kCall || act == Act::kMany || n.checked || (s.nullable && n.edge != Stack::kNone)) {
      out.resize(before);
      return false;
    }
    if (act == Act::kDead) continue;
    const Thread next{s.argument(byte), t.node};
    if (stepped_.insert(next)) out.push_back(next);
  }
  return true;
}

void Stepper::step_set(std::span<const Thread> threads, uint8_t byte, std::vector<Thread>& out) {
  if (step_each(threads, byte, out)) return;
  stepped_.clear();
  close(
      threads,
      [&](const State& s, uint32_t node) {
        ExprId next = s.next[s.class_of[byte]];
        if (next != ExprPool::kEmptyId && stack_.node(node).checked) next = checked(next, node, byte);
        if (next == ExprPool::kEmptyId) return;
        const Thread t{next, node};
        if (stepped_.insert(t)) out.push_back(t);
      },
      [&](const Letter& l) { return l.start.has(byte); });
}

bool Stepper::can_read(std::span<const Thread> start, std::string_view bytes) {
  const Stack::Mark mark = stack_.mark();
  const size_t length = text_.size();
  std::vector<Thread> threads(start.begin(), start.end()), next;
  for (const char c : bytes) {
    next.clear();
    step_set(threads, static_cast<uint8_t>(c), next);
    threads.swap(next);
    if (threads.empty()) break;
    text_.push_back(c);
  }
  text_.resize(length);
  stack_.truncate(mark);
  return !threads.empty();
}

void Stepper::step_token(std::span<const Thread> threads, uint32_t token_id, std::vector<Thread>& out) {
  close(
      threads,
      [&](const State& s, uint32_t node) {
        for (const SpecialToken& t : s.tokens) {
          const Thread next{t.rest, node};
          if (t.token_id == token_id && std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
        }
      },
      [](const Letter& l) { return !l.key; });
}

void Stepper::special_tokens(std::span<const Thread> threads, std::vector<uint32_t>& out) {
  const Stack::Mark mark = stack_.mark();
  close(
      threads,
      [&](const State& s, uint32_t) {
        for (const SpecialToken& t : s.tokens) out.push_back(t.token_id);
      },
      [](const Letter& l) { return !l.key; });
  stack_.truncate(mark);
}

bool Stepper::may_finish(Thread thread) {
  while (arena_.state(thread.expr).nullable) {
    if (thread.node == Stack::kBottom) return true;
    const Stack::Node& n = stack_.node(thread.node);
    if (n.key) return false;  // a key is never the end of an output
    const Stack::Edge& e = stack_.edge(n.edge);
    if (e.next != Stack::kNone || e.parent == thread.node) return may_finish_somehow(thread);
    thread = {e.rest, e.parent};
  }
  return false;
}

// The same where frames have several callers.
bool Stepper::may_finish_somehow(const Thread& thread) {
  std::vector<Thread> work{thread};
  SeenSet visited;
  for (size_t i = 0; i < work.size(); ++i) {
    const Thread t = work[i];
    if (!arena_.state(t.expr).nullable) continue;
    if (t.node == Stack::kBottom) return true;
    const Stack::Node& n = stack_.node(t.node);
    if (n.key || !visited.insert(t.node)) continue;
    for (uint32_t e = n.edge; e != Stack::kNone; e = stack_.edge(e).next) {
      work.push_back({stack_.edge(e).rest, stack_.edge(e).parent});
    }
  }
  return false;
}

bool Stepper::merge_frames(Thread& thread) {
  const Stack::Node& n = stack_.node(thread.node);
  if (n.key || n.checked || n.edge == Stack::kNone) return false;
  const Stack::Edge& e = stack_.edge(n.edge);
  if (e.next != Stack::kNone || stack_.node(e.parent).checked) return false;
  const std::lock_guard lock(arena_.mutex());
  thread = {arena_.pool().concat(thread.expr, e.rest), e.parent};
  return true;
}

void Stepper::returned(const Thread& thread, std::vector<Thread>& out) {
  const Stack::Node n = stack_.node(thread.node);
  for (uint32_t e = n.edge; e != Stack::kNone; e = stack_.edge(e).next) {
    const Stack::Edge edge = stack_.edge(e);
    out.push_back({after_return(n, edge.rest), edge.parent});
  }
}

ByteSet Stepper::start(Thread thread) {
  ByteSet out;
  while (true) {
    const State& s = arena_.state(thread.expr);
    out = out | s.start;
    const Stack::Node& n = stack_.node(thread.node);
    if (!s.nullable || n.edge == Stack::kNone) return out;
    const Stack::Edge& e = stack_.edge(n.edge);
    if (n.key || e.next != Stack::kNone || e.parent == thread.node) return out | start(std::span(&thread, 1));
    thread = {e.rest, e.parent};
  }
}

ByteSet Stepper::start(std::span<const Thread> threads) {
  ByteSet out;
  std::vector<Thread> work(threads.begin(), threads.end()), below;
  SeenSet seen;
  for (const Thread& t : threads) seen.insert(t);
  for (size_t i = 0; i < work.size(); ++i) {
    const State& s = arena_.state(work[i].expr);
    out = out | s.start;
    if (!s.nullable) continue;
    below.clear();
    returned(work[i], below);
    for (const Thread& t : below) {
      if (seen.insert(t)) work.push_back(t);
    }
  }
  return out;
}

}  // namespace grammask
