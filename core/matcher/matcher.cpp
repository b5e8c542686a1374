#include "matcher/matcher.hpp"

#include <algorithm>
#include <stdexcept>

#include "grammar/shortest.hpp"
#include "regular/long_work.hpp"

namespace grammask {

Matcher::Matcher(std::shared_ptr<const Compiled> compiled)
    : compiled_(std::move(compiled)),
      stepper_(*compiled_->arena),
      walker_(stepper_),
      threads_{{compiled_->root, Stack::kBottom}} {}

Matcher::Matcher(const Matcher& other)
    : compiled_(other.compiled_),
      stepper_(other.stepper_),
      walker_(stepper_),
      threads_(other.threads_),
      history_(other.history_),
      terminated_(other.terminated_) {}

bool Matcher::step(uint8_t byte, std::vector<Thread>& threads) {
  if (threads.size() == 1) {
    switch (stepper_.step_one(threads[0], byte)) {
      case Stepper::Result::kOne: stepper_.text().push_back(static_cast<char>(byte)); return true;
      case Stepper::Result::kDead: threads.clear(); return false;
      case Stepper::Result::kSet: break;
    }
  }
  scratch_.clear();
  stepper_.step_set(threads, byte, scratch_);
  threads.swap(scratch_);
  stepper_.text().push_back(static_cast<char>(byte));
  return !threads.empty();
}

void Matcher::restore(Moment&& m) {
  threads_ = std::move(m.threads);
  stepper_.stack().truncate(m.mark);
  stepper_.text().resize(m.text);
  terminated_ = m.terminated;
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (terminated_) return false;
  const WorkLimit limit(compiled_->work_seconds);
  Back back(*this);
  for (const char c : bytes) {
    if (!step(static_cast<uint8_t>(c), threads_)) return false;
  }
  back.keep = true;
  history_.push_back(std::move(back.before));
  return true;
}

bool Matcher::accept(uint32_t id) {
  if (terminated_) return false;
  const WorkLimit limit(compiled_->work_seconds);
  const auto bytes = compiled_->vocabulary->token(id);
  std::vector<Thread> by_name;
  if (!bytes || compiled_->names_tokens) {
    const Stack::Mark mark = stepper_.stack().mark();
    stepper_.step_token(threads_, id, by_name);
    if (by_name.empty()) stepper_.stack().truncate(mark);
  }
  if (bytes && by_name.empty()) return accept_bytes(*bytes);
  Back back(*this);
  if (!by_name.empty()) {
    // A token that a grammar names may also be read as its text.
    bool read = bytes.has_value();
    for (size_t i = 0; read && i < bytes->size(); ++i) read = step(static_cast<uint8_t>((*bytes)[i]), threads_);
    if (read) {
      by_name.insert(by_name.end(), threads_.begin(), threads_.end());
    } else {
      stepper_.text().resize(back.before.text);
    }
    threads_ = std::move(by_name);
  } else if (compiled_->vocabulary->is_eos(id) && is_complete()) {
    terminated_ = true;
  } else {
    return false;
  }
  back.keep = true;
  history_.push_back(std::move(back.before));
  return true;
}

size_t Matcher::matched_prefix(std::string_view bytes) {
  if (terminated_) return 0;
  const WorkLimit limit(compiled_->work_seconds);
  const Back back(*this);
  size_t n = 0;
  while (n < bytes.size() && step(static_cast<uint8_t>(bytes[n]), threads_)) ++n;
  return n;
}

std::string Matcher::next_bytes() {
  std::string out;
  if (terminated_) return out;
  const WorkLimit limit(compiled_->work_seconds);
  stepper_.start(threads_).for_each([&](uint8_t b) {
    const Back back(*this);
    if (step(b, threads_)) out.push_back(static_cast<char>(b));
  });
  return out;
}

void Matcher::rollback(size_t n) {
  if (n > history_.size()) throw std::out_of_range("rollback of more tokens than were accepted");
  if (n == 0) return;
  restore(std::move(history_[history_.size() - n]));
  history_.resize(history_.size() - n);
}

bool Matcher::is_complete() {
  return std::any_of(threads_.begin(), threads_.end(), [&](const Thread& t) { return stepper_.may_finish(t); });
}

std::string Matcher::forced_bytes(size_t limit) {
  std::string out;
  if (terminated_) return out;
  const WorkLimit work(compiled_->work_seconds);
  const Back back(*this);
  std::vector<uint32_t> named;
  while (out.size() < limit && !is_complete()) {
    if (compiled_->names_tokens) stepper_.special_tokens(threads_, named);
    if (!named.empty()) break;
    // The start set is a superset: a byte counts only if it can really be read.
    int viable = 0;
    uint8_t byte = 0;
    std::vector<Thread> after;
    const ByteSet candidates = stepper_.start(threads_);
    if (candidates.count() > 8) break;
    candidates.for_each([&](uint8_t b) {
      if (viable > 1) return;
      const Back here(*this);
      if (step(b, threads_)) {
        ++viable;
        byte = b;
      }
    });
    if (viable != 1 || !step(byte, threads_)) break;
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

std::vector<uint32_t> Matcher::forced_tokens() {
  if (terminated_) return {};
  return compiled_->vocabulary->tokenize_greedy(forced_bytes(65536), true);
}

// How long the frames below a node still are, at least; keys, whose continuation depends on their text, count as short. Each
// return weighs 1, so that a frame that is its own caller (left recursion) never seems the nearer one.
uint64_t Matcher::length_below(uint32_t node, int depth) {
  ShortestWords& words = stepper_.arena().shortest_words(*compiled_->vocabulary);
  uint64_t total = 0;
  while (node != Stack::kBottom) {
    uint32_t edge = stepper_.stack().node(node).edge;
    if (stepper_.stack().edge(edge).next == Stack::kNone) {
      const Stack::Edge& e = stepper_.stack().edge(edge);
      total += words.length(e.rest) + 1;
      node = e.parent;
      continue;
    }
    // Left recursion makes a frame its own caller: what is nested deeper than this is no short way.
    if (depth == 0) return uint64_t{1} << 50;
    uint64_t least = uint64_t{1} << 50;
    for (; edge != Stack::kNone; edge = stepper_.stack().edge(edge).next) {
      const Stack::Edge e = stepper_.stack().edge(edge);
      least = std::min(least, words.length(e.rest) + 1 + length_below(e.parent, depth - 1));
    }
    return total + least;
  }
  return total;
}

// Moves on to the end of the frame that is completed soonest, and out of it. False if no way was found.
bool Matcher::complete_frame(std::vector<uint32_t>& symbols) {
  ShortestWords& words = stepper_.arena().shortest_words(*compiled_->vocabulary);
  constexpr int kMostCallers = 6;
  const Thread* best = threads_.data();
  uint64_t least = ShortestWords::kNever;
  for (const Thread& t : threads_) {
    const uint64_t own = words.length(t.expr);
    if (own == ShortestWords::kNever) continue;
    const uint64_t total = threads_.size() == 1 ? own : own + length_below(t.node, kMostCallers);
    if (total >= least) continue;
    least = total;
    best = &t;
  }
  if (least == ShortestWords::kNever) return false;
  const Thread thread = *best;
  const size_t from = symbols.size();
  if (!words.append(thread.expr, symbols)) return false;
  threads_.assign(1, thread);
  for (size_t i = from; i < symbols.size(); ++i) {
    if (symbols[i] < ShortestWords::kToken) {
      if (!step(static_cast<uint8_t>(symbols[i]), threads_)) return false;
    } else {
      scratch_.clear();
      stepper_.step_token(threads_, symbols[i] - ShortestWords::kToken, scratch_);
      threads_.swap(scratch_);
    }
  }
  if (is_complete()) return true;
  // Frames called by this one at the very end of the word return first.
  std::vector<Thread> below, work(threads_);
  SeenSet seen;
  for (const Thread& t : work) seen.insert(t);
  std::vector<Thread> back;
  for (size_t i = 0; i < work.size(); ++i) {
    const Thread t = work[i];
    if (!stepper_.arena().state(t.expr).nullable) continue;
    if (t.node == thread.node) {
      stepper_.returned(t, below);
      continue;
    }
    back.clear();
    stepper_.returned(t, back);
    for (const Thread& b : back) {
      if (seen.insert(b)) work.push_back(b);
    }
  }
  std::erase_if(below, [](const Thread& t) { return t.expr == ExprPool::kEmptyId; });
  threads_ = std::move(below);
  return !threads_.empty();
}

std::optional<std::vector<uint32_t>> Matcher::shortest_completion() {
  std::vector<uint32_t> tokens;
  if (terminated_ || is_complete()) return tokens;
  const std::lock_guard lock(stepper_.arena().mutex());
  // A search that goes on for longer than this is given up.
  constexpr uint64_t kMostExpressions = 50'000;
  constexpr std::chrono::milliseconds kMostTime{250};
  ExprPool& pool = stepper_.arena().pool();
  struct Limits {
    ExprPool& pool;
    uint64_t expressions;
    std::chrono::steady_clock::time_point deadline;
    ~Limits() {
      pool.set_limit(expressions);
      pool.set_deadline(deadline);
    }
  } limits{pool, pool.limit(), pool.deadline()};
  pool.set_limit(std::min(limits.expressions, pool.size() + kMostExpressions));
  pool.set_deadline(std::min(limits.deadline, std::chrono::steady_clock::now() + kMostTime));
  Moment before = now();
  std::vector<uint32_t> symbols;
  constexpr size_t kMostSymbols = size_t{1} << 20;
  bool found = true;
  try {
    for (size_t frames = 0; found && !is_complete(); ++frames)
      found = symbols.size() < kMostSymbols && frames < kMostSymbols && complete_frame(symbols);
  } catch (const TooLarge&) {
    found = false;
  }
  restore(std::move(before));
  std::string run;
  for (size_t i = 0; found && i <= symbols.size(); ++i) {
    if (i < symbols.size() && symbols[i] < ShortestWords::kToken) {
      run.push_back(static_cast<char>(symbols[i]));
      continue;
    }
    found = compiled_->vocabulary->tokenize_shortest(run, tokens);
    run.clear();
    if (i < symbols.size()) tokens.push_back(symbols[i] - ShortestWords::kToken);
  }
  if (!found) return std::nullopt;
  return tokens;
}

namespace {

void add_tokens(std::span<const uint32_t> tokens, uint32_t* out) {
  for (const uint32_t id : tokens) out[id / 32] |= 1u << (id % 32);
}

}  // namespace

void Matcher::clear_if_fresh(uint32_t* out) {
  if (fresh_) std::fill_n(out, compiled_->vocabulary->words(), 0u);
  fresh_ = false;
}

// Where calling a letter is all a state can do, the thread inside the call: masks there are shared by everyone who calls it.
Thread Matcher::inside(Thread t) {
  for (const State* s = &stepper_.arena().state(t.expr); s->only_letter >= 0; s = &stepper_.arena().state(t.expr)) {
    const Letter& l = s->letters[static_cast<size_t>(s->only_letter)];
    if (l.vague || l.checked) break;
    if (l.rest != ExprPool::kEpsilonId || l.key) t.node = stepper_.call(l, t.node);
    t.expr = l.body;
  }
  return t;
}

// Adds the tokens of a thread; threads that take over because its frame may return at once are added to work_.
void Matcher::add_mask(Thread t, uint32_t* out) {
  t = inside(t);
  const Vocabulary& v = *compiled_->vocabulary;
  // Whether a checked key may be closed depends on its whole text: nothing to share.
  if (stepper_.may_repeat(t.node)) return add_by_walk(v.trie(), {&t, 1}, t, out);
  const LocalMask* local = &local_mask(stepper_.arena(), v, t.expr);
  while (local->walk_directly && stepper_.stack().node(t.node).edge != Stack::kNone) {
    if (!stepper_.merge_frames(t)) return add_by_walk(v.trie(), {&t, 1}, t, out);
    local = &local_mask(stepper_.arena(), v, t.expr);
  }
  const bool has_below = stepper_.stack().node(t.node).edge != Stack::kNone;
  local->add_inside_to(out, v.words(), fresh_);
  fresh_ = false;
  if (!has_below) return;
  if (local->returns_at_once) {
    below_.clear();
    stepper_.returned(t, below_);
    for (const Thread& b : below_) {
      if (masked_.insert(b)) work_.push_back(b);
    }
  }
  if (local->leaving) add_remainders(t, *local->leaving, out);
}

// Tokens of a trie that are read from some threads, those of t itself or those that read the remainders of its tokens.
void Matcher::add_by_walk(const Trie& trie, std::span<const Thread> from, const Thread& t, uint32_t* out) {
  LongWork::begins();
  clear_if_fresh(out);
  vague_.clear();
  walker_.walk(trie, from, [&](std::span<const uint32_t> tokens) { add_tokens(tokens, out); }, {nullptr, &vague_, {}});
  add_readable(t, trie, out);
}

// Tokens below the nodes of vague_, each read with its text.
void Matcher::add_readable(const Thread& t, const Trie& trie, uint32_t* out) {
  for (const uint32_t x : vague_) {
    for_each_token_below(trie, x, [&](uint32_t id) {
      if (stepper_.can_read({&t, 1}, *compiled_->vocabulary->token(id))) out[id / 32] |= 1u << (id % 32);
    });
  }
}

const RemainderMask& Matcher::remainder_mask_of(const Leaving& leaving, ExprId rest) {
  const uint64_t key = uint64_t{leaving.number()} << 32 | rest;
  Looked& last = looked_[(key * 0x9e3779b97f4a7c15u) >> 60];
  if (last.key != key) last = {key, &remainder_mask(stepper_.arena(), *compiled_->vocabulary, leaving, rest)};
  return *last.mask;
}

// Tokens that leave the frame of t: what remains of them is read by the frames below, and what leaves one of those by the
// next. Where these want to know what exactly was read before the remainder, the tokens are taken one by one.
void Matcher::add_remainders(const Thread& t, const Leaving& leaving, uint32_t* out) {
  left_.assign(1, {&leaving, t.node});
  const auto leave = [&](const Leaving* l, uint32_t node) {
    const Left left{l, node};
    if (std::find(left_.begin(), left_.end(), left) == left_.end()) left_.push_back(left);
  };
  for (size_t i = 0; i < left_.size(); ++i) {
    const Left left = left_[i];
    below_.clear();
    stepper_.vague_keys = true;
    stepper_.returned({ExprPool::kEpsilonId, left.node}, below_);
    stepper_.vague_keys = false;
    for (size_t k = 0; k < below_.size(); ++k) {
      const Thread b = inside(below_[k]);
      if (stepper_.stack().node(b.node).checked) {
        add_by_walk(left.leaving->remainders(compiled_->vocabulary->trie()).trie, {&b, 1}, t, out);
        continue;
      }
      if (stepper_.arena().state(b.expr).nullable) leave(left.leaving, b.node);
      if (b.expr == ExprPool::kEpsilonId) continue;
      const RemainderMask& remainders = remainder_mask_of(*left.leaving, b.expr);
      add_tokens(remainders.ids, out);
      if (!remainders.vague.empty()) LongWork::begins();
      for (const uint32_t id : remainders.vague) {
        if (stepper_.can_read({&t, 1}, *compiled_->vocabulary->token(id))) out[id / 32] |= 1u << (id % 32);
      }
      if (remainders.leaving) leave(remainders.leaving.get(), b.node);
    }
  }
}

void Matcher::fill_mask(uint32_t* out) {
  const Vocabulary& v = *compiled_->vocabulary;
  fresh_ = true;
  if (!terminated_) {
    const WorkLimit limit(compiled_->work_seconds);
    if (threads_.size() > 1 || compiled_->names_tokens) LongWork::begins();
    struct Done {  // also when something throws
      Stepper& stepper;
      Stack::Mark mark;
      ~Done() {
        stepper.stack().truncate(mark);
        stepper.vague_keys = stepper.met_vague_key = false;
      }
    } const done{stepper_, stepper_.stack().mark()};
    work_ = threads_;
    masked_.clear();
    for (const Thread& t : threads_) masked_.insert(t);
    for (size_t i = 0; i < work_.size(); ++i) add_mask(work_[i], out);
    if (compiled_->names_tokens) {
      clear_if_fresh(out);
      std::vector<uint32_t> named;
      stepper_.special_tokens(threads_, named);
      for (const uint32_t id : named) out[id / 32] |= 1u << (id % 32);
    }
  }
  clear_if_fresh(out);
  if (terminated_ || is_complete()) {
    for (const uint32_t id : v.eos_token_ids()) out[id / 32] |= 1u << (id % 32);
  }
}

std::vector<std::string> Matcher::stack() {
  std::vector<std::string> out;
  const std::lock_guard lock(stepper_.arena().mutex());
  ExprPool& pool = stepper_.arena().pool();
  if (threads_.empty()) return out;
  out.push_back(pool.show(threads_[0].expr));
  for (uint32_t n = threads_[0].node; n != Stack::kBottom;) {
    const Stack::Edge& e = stepper_.stack().edge(stepper_.stack().node(n).edge);
    out.push_back(pool.show(e.rest));
    n = e.parent;
    if (out.size() > 1000) break;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

size_t Matcher::memory_bytes() const {
  size_t n = sizeof(*this) + stepper_.stack().memory_bytes() + stepper_.text().capacity() +
             threads_.capacity() * sizeof(Thread);
  for (const Moment& m : history_) n += sizeof(m) + m.threads.capacity() * sizeof(Thread);
  return n;
}

}  // namespace grammask
