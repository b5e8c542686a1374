#include "mask/text_walk.hpp"

#include <unordered_map>

namespace grammask {

namespace {

class TextWalk {
 public:
  TextWalk(Arena& arena, const Trie& trie, TextTokens& out) : arena_(arena), trie_(trie), out_(out) {}

  void run(ExprId e) {
    // What the loop reads and writes, out of reach of anything that it might be thought to change.
    const uint8_t* const byte = trie_.byte.data();
    const uint16_t* const child_count = trie_.child_count.data();
    const uint32_t* const token_begin = trie_.token_begin.data();
    const uint32_t* const token_end = trie_.token_end.data();
    const uint32_t* const tokens = trie_.tokens.data();
    uint32_t* const words = out_.words.data();
    size_t count = 0;
    const auto add = [&](uint32_t begin, uint32_t end) {
      for (uint32_t i = begin; i < end; ++i) words[tokens[i] / 32] |= 1u << (tokens[i] % 32);
      count += end - begin;
    };
    std::vector<Entry> queue{{0, place_of(e)}};
    for (size_t at = 0; at < queue.size(); ++at) {
      const Entry entry = queue[at];
      const Place place = places_[entry.place];
      if (place.skips && stays(entry)) {
        add(token_end[entry.node], trie_.below_end[entry.node]);
        continue;
      }
      const uint32_t begin = trie_.first_child[entry.node], end = begin + child_count[entry.node];
      const uint8_t* const class_of = place.state->class_of;
      const uint32_t* next = &next_[place.next];
      for (uint32_t x = begin; x < end; ++x) {
        const uint8_t c = class_of[byte[x]];
        uint32_t to = next[c];
        if (to == kUnknown && child_count[x] == 0) {
          // Where nothing follows, the state need not be made.
          if (place.state->next[c] != ExprPool::kEmptyId) add(token_begin[x], token_end[x]);
          continue;
        }
        if (to == kUnknown) {
          to = find(entry.place, c);
          next = &next_[place.next];  // new places may have moved the others
        }
        if (to == kDead) continue;
        add(token_begin[x], token_end[x]);
        if (child_count[x] == 0) continue;
        queue.push_back({x, to & ~kNullable});
        if (to & kNullable) out_.returns.push_back(x);
      }
    }
    out_.count = count;
  }

 private:
  static constexpr uint32_t kUnknown = 0xffffffffu, kDead = 0xfffffffeu, kNullable = 1u << 31;
  struct Entry {
    uint32_t node;
    uint32_t place;
  };
  struct Place {
    const State* state;
    uint32_t next;  // in next_: where it leads, by class, marked where a word is complete there
    bool skips;  // all that is below a node may lead back here
  };

  uint32_t place_of(ExprId e) {
    const auto [it, fresh] = index_.try_emplace(e, static_cast<uint32_t>(places_.size()));
    if (fresh) {
      const State& s = arena_.state(e);
      // Skipped nodes are not told to return.
      places_.push_back({&s, static_cast<uint32_t>(next_.size()), !s.nullable && !s.loops.empty()});
      next_.resize(next_.size() + s.next.size(), kUnknown);
    }
    return it->second;
  }

  uint32_t find(uint32_t from, uint8_t c) {
    const uint32_t slot = places_[from].next + c;
    const ExprId e = places_[from].state->next[c];
    uint32_t to = kDead;
    if (e != ExprPool::kEmptyId) {
      to = place_of(e);
      if (places_[to].state->nullable) to |= kNullable;
    }
    next_[slot] = to;
    return to;
  }

  // Whether all that is below a node leads back to its state, byte by byte or character by character.
  bool stays(const Entry& entry) {
    const State& s = *places_[entry.place].state;
    const ByteSet& below = trie_.bytes_below(entry.node);
    const ByteSet others = below & ~s.loops;
    if (others.empty()) return true;
    const ByteSet ascii{{~uint64_t{0}, ~uint64_t{0}, 0, 0}};
    if (!trie_.whole_below(entry.node) || !(others & ascii).empty()) return false;
    // Bytes in the middle of characters are known to be in order.
    static const ByteSet kMiddle = ByteSet::range(0x80, 0xbf);
    return (others & ~arena_.character_loops(s) & ~kMiddle).empty();
  }

  Arena& arena_;
  const Trie& trie_;
  TextTokens& out_;
  std::vector<Place> places_;
  std::vector<uint32_t> next_;
  std::unordered_map<ExprId, uint32_t> index_;
};

}  // namespace

TextTokens walk_text(Arena& arena, const Vocabulary& vocabulary, const Trie& trie, ExprId e) {
  TextTokens out;
  out.words.resize(vocabulary.words());
  if (!trie.empty()) TextWalk(arena, trie, out).run(e);
  return out;
}

}  // namespace grammask
