#include "grammar/shortest.hpp"

#include <algorithm>
#include <queue>

namespace grammask {

namespace {

using Length = ShortestWords::Length;
constexpr Length kNever = ShortestWords::kNever;

Length add(Length a, Length b) { return a == kNever || b == kNever || a + b < a ? kNever : a + b; }

Length times(Length n, Length a) {
  if (n == 0 || a == 0) return 0;
  return a == kNever || a > (kNever - 1) / n ? kNever : n * a;
}

// Nesting of unions, calls and rules that is followed; words nested deeper count as not found.
constexpr int kMostDepth = 1500;
constexpr size_t kMostSearched = 50'000;
constexpr Length kLongest = ShortestWords::kSymbol << 20;

}  // namespace

// Of several bytes the one that reads best.
uint8_t ShortestWords::plainest(const ByteSet& bytes) const {
  const ByteSet spellable = bytes & spellable_;
  const ByteSet& from = spellable.empty() ? bytes : spellable;
  for (const char c : {'a', '0', ' '}) {
    if (from.has(static_cast<uint8_t>(c))) return static_cast<uint8_t>(c);
  }
  return from.lowest();
}

Length ShortestWords::length(ExprId e) {
  if (provisional_.empty()) {
    const Length n = measure(e);
    if (provisional_.empty()) return n;
  }
  // Rules were met for the first time: pass over them until none gets shorter.
  while (true) {
    bool changed = false;
    const size_t known = provisional_.size();
    lengths_.clear();
    for (size_t i = 0; i < provisional_.size(); ++i) {
      const uint32_t rule = provisional_[i];
      const Length n = measure(arena_.rule_body(rule));
      if (n < rules_[rule]) {
        rules_[rule] = n;
        changed = true;
      }
    }
    if (changed || provisional_.size() != known) continue;
    lengths_.clear();
    const Length n = measure(e);
    if (provisional_.size() != known) continue;
    provisional_.clear();
    return n;
  }
}

// Follows a chain to its end without recursion: objects and arrays are long chains of frames.
Length ShortestWords::measure(ExprId e) {
  if (depth_ > kMostDepth) return kNever;
  struct Deeper {
    int& depth;
    explicit Deeper(int& d) : depth(++d) {}
    ~Deeper() { --depth; }
  } deeper(depth_);
  std::vector<std::pair<ExprId, Length>> trail;  // expressions and the length before them
  Length before = 0;
  while (before != kNever) {
    const auto known = lengths_.find(e);
    if (known != lengths_.end()) {
      before = add(before, known->second);
      break;
    }
    trail.emplace_back(e, before);
    const Expr n = pool_.node(e);
    if (n.kind == Kind::kConcat) {
      before = add(before, measure(n.a));
      e = n.b;
    } else if (n.kind == Kind::kFrame) {
      e = onward(e);
    } else if (n.kind == Kind::kKey) {
      Length key = 0;
      e = after_shortest_key(e, key);
      before = add(before, key);
    } else if (n.kind == Kind::kUnion) {
      e = best_of(e);
    } else {
      before = add(before, measure_one(e));
      break;
    }
  }
  for (const auto& [x, start] : trail) lengths_[x] = before == kNever ? kNever : before - start;
  return before;
}

Length ShortestWords::measure_one(ExprId e) {
  const Expr n = pool_.node(e);
  switch (n.kind) {
    case Kind::kEmpty: return kNever;
    case Kind::kEpsilon: return 0;
    case Kind::kSet: return weight(plainest(pool_.bytes(n.a)));
    case Kind::kToken: return kSymbol;
    case Kind::kRepeat: return n.b == 0 ? 0 : times(n.b, measure(n.a));
    case Kind::kCall: return measure(n.a);
    case Kind::kRule: {
      const auto [it, fresh] = rules_.try_emplace(n.a, kNever);
      if (fresh) provisional_.push_back(n.a);
      return add(1, it->second);
    }
    case Kind::kMachine: {
      std::string word;
      if (!pool_.machine_of(e).shortest(n.b, word)) return search(e, nullptr);
      return weight(word);
    }
    default: return search(e, nullptr);
  }
}

Length ShortestWords::weight(std::string_view text) const {
  Length sum = 0;
  for (const char c : text) sum += weight(static_cast<uint8_t>(c));
  return sum;
}

// How good a member of a union looks, for members that end in a frame: what the frame still needs weighs most. Keys from a
// family come last, for a search is needed to know one.
Length ShortestWords::ranking(ExprId e) {
  constexpr Length kNeed = kSymbol << 20, kFreeKey = kSymbol << 40;
  Length before = 0;
  for (; pool_.node(e).kind == Kind::kConcat; e = pool_.node(e).b) before = add(before, measure(pool_.node(e).a));
  const Expr& n = pool_.node(e);
  if (n.kind == Kind::kKey) return add(before, kFreeKey);
  if (n.kind != Kind::kFrame) return add(before, measure(e));
  return add(before, times(kNeed, arena_.frame(n.a).missing(n.b)));
}

ExprId ShortestWords::best_of(ExprId united) {
  const std::vector<ExprId> members(pool_.children(united).begin(), pool_.children(united).end());
  size_t frames = 0;
  for (ExprId m : members) {
    while (pool_.node(m).kind == Kind::kConcat) m = pool_.node(m).b;
    frames += pool_.node(m).kind == Kind::kFrame || pool_.node(m).kind == Kind::kKey;
  }
  ExprId best = ExprPool::kEmptyId;
  Length least = kNever;
  for (const ExprId m : members) {
    const Length n = frames > 1 ? ranking(m) : measure(m);
    if (n < least) {
      least = n;
      best = m;
    }
  }
  return best;
}

ExprId ShortestWords::onward(ExprId frame) {
  const Expr n = pool_.node(frame);
  return arena_.frame(n.a).onward(n.b, [this](ExprId e) { return measure(e); });
}

// What follows the key if it is a shortest one, and the length of that key.
ExprId ShortestWords::after_shortest_key(ExprId key, Length& key_length) {
  const Expr n = pool_.node(key);
  key_length = kNever;
  if (n.c == Frame::kUnknown) return ExprPool::kEmptyId;
  std::vector<Symbol> word;
  const ExprId body = pool_.letter_body(key);
  // Items of arrays may call rules whose length is provisional: then there is no word yet.
  if (measure(body) == kNever || !append(body, word)) return ExprPool::kEmptyId;
  std::string text;
  for (const Symbol s : word) {
    if (s >= kToken) return ExprPool::kEmptyId;
    text.push_back(static_cast<char>(s));
  }
  if (arena_.unless_repeated(key, text, ExprPool::kEpsilonId) == ExprPool::kEmptyId) return ExprPool::kEmptyId;
  key_length = weight(text);
  return arena_.after_key(key, std::string_view(text));
}

// Dijkstra's search over derivatives by bytes and letters.
Length ShortestWords::search(ExprId root, std::vector<Step>* path) {
  std::unordered_map<ExprId, Step> came;
  std::priority_queue<std::pair<Length, ExprId>, std::vector<std::pair<Length, ExprId>>, std::greater<>> queue;
  came.emplace(root, Step{root, ExprPool::kEmptyId, 0, 0});
  queue.emplace(0, root);
  std::vector<ExprId> letters;
  while (!queue.empty() && came.size() < kMostSearched) {
    const auto [length, e] = queue.top();
    queue.pop();
    if (length != came.at(e).length) continue;
    if (came.size() % 64 == 0) pool_.check_deadline();
    if (pool_.nullable(e)) {
      if (path) {
        for (ExprId x = e; x != root; x = came.at(x).from) path->push_back(came.at(x));
        std::reverse(path->begin(), path->end());
      }
      return length;
    }
    const auto reach = [&](ExprId to, ExprId letter, uint8_t byte, Length cost) {
      const Length total = add(length, cost);
      if (total == kNever || !pool_.alive(to)) return;
      const auto [it, fresh] = came.try_emplace(to, Step{e, letter, byte, total});
      if (!fresh) {
        if (it->second.length <= total) return;
        it->second = {e, letter, byte, total};
      }
      queue.emplace(total, to);
    };
    ExprPool::Classes classes;
    pool_.byte_classes(e, classes);
    const std::vector<ByteSet>& bytes = classes.bytes;
    for (const ByteSet& same : bytes) {
      const uint8_t b = plainest(same);
      reach(pool_.derive(e, b), ExprPool::kEmptyId, b, weight(b));
    }
    letters.clear();
    pool_.letters(e, letters);
    for (const ExprId letter : letters) {
      if (pool_.node(letter).kind != Kind::kKey) reach(pool_.derive_letter(e, letter), letter, 0, measure(letter));
    }
  }
  return kNever;
}

bool ShortestWords::append(ExprId root, std::vector<Symbol>& out) {
  if (measure(root) > kLongest) return false;
  std::vector<ExprId> work{root};  // still to be written, the next one last
  while (!work.empty()) {
    const ExprId e = work.back();
    work.pop_back();
    const Expr n = pool_.node(e);
    switch (n.kind) {
      case Kind::kEmpty: return false;
      case Kind::kEpsilon: break;
      case Kind::kSet: out.push_back(plainest(pool_.bytes(n.a))); break;
      case Kind::kToken: out.push_back(kToken + n.a); break;
      case Kind::kConcat: work.insert(work.end(), {n.b, n.a}); break;
      case Kind::kUnion: work.push_back(best_of(e)); break;
      case Kind::kRepeat: {
        if (n.b > 0 && measure(n.a) >= kSymbol) work.insert(work.end(), n.b, n.a);
        break;
      }
      case Kind::kCall: work.push_back(n.a); break;
      case Kind::kRule: work.push_back(arena_.rule_body(n.a)); break;
      case Kind::kFrame: work.push_back(onward(e)); break;
      case Kind::kKey: {
        Length length = 0;
        work.push_back(after_shortest_key(e, length));
        if (length == kNever) return false;
        work.push_back(pool_.letter_body(e));
        break;
      }
      default: {
        std::string word;
        if (n.kind == Kind::kMachine && pool_.machine_of(e).shortest(n.b, word)) {
          for (const char c : word) out.push_back(static_cast<uint8_t>(c));
          break;
        }
        std::vector<Step> path;
        if (search(e, &path) == kNever) return false;
        std::vector<ExprId> steps;
        for (const Step& s : path) steps.push_back(s.letter == ExprPool::kEmptyId ? pool_.byte(s.byte) : s.letter);
        work.insert(work.end(), steps.rbegin(), steps.rend());
      }
    }
  }
  return true;
}

}  // namespace grammask
