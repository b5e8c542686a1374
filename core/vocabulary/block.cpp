#include "vocabulary/block.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace grammask {

namespace {

constexpr std::array<char, 16> kMagic{'g', 'r', 'a', 'm', 'm', 'a', 's', 'k', ' ', 'v', 'o', 'c', 'a', 'b', '\r', '\n'};
// To be raised with every change of the layout, or of what the arrays mean.
constexpr uint32_t kVersion = 1;
constexpr uint32_t kByteOrder = 0x01020304;
constexpr size_t kAlignment = 64;
constexpr size_t kSections = 13;

struct Section {
  uint64_t begin;  // in bytes from the start of the block
  uint64_t size;   // in bytes
};

struct Header {
  std::array<char, 16> magic;
  uint32_t version;
  uint32_t byte_order;
  uint64_t size;      // of the block, in bytes
  uint64_t checksum;  // of the block with zeros in this place
  std::array<Section, kSections> sections;
};
static_assert(std::has_unique_object_representations_v<Header> && sizeof(Header) % 8 == 0);

// Each step is a bijection of the word that it reads, so a change of one word always shows; four chains go on at once.
uint64_t mixed(uint64_t sum, uint64_t word) { return std::rotl((sum ^ word) * 0x9e3779b97f4a7c15ull, 29); }

uint64_t checksum(std::span<const char> block) {
  std::array<uint64_t, 4> sums{1, 2, 3, 4};
  size_t at = 0;
  std::array<uint64_t, 4> words;
  for (; at + sizeof(words) <= block.size(); at += sizeof(words)) {
    std::memcpy(words.data(), block.data() + at, sizeof(words));
    for (size_t i = 0; i < 4; ++i) sums[i] = mixed(sums[i], words[i]);
  }
  words = {};
  if (at < block.size()) std::memcpy(words.data(), block.data() + at, block.size() - at);
  uint64_t sum = block.size();
  for (size_t i = 0; i < 4; ++i) sum = mixed(mixed(sum, sums[i]), words[i]);
  return sum ^ (sum >> 32);
}

uint64_t checksum(const Header& header, std::span<const char> sections) {
  Header blank = header;
  blank.checksum = 0;
  const auto of_header = checksum({reinterpret_cast<const char*>(&blank), sizeof(blank)});
  return mixed(of_header, checksum(sections));
}

// Calls f with each section's array, in the order of the file.
template <typename Eos, typename Notes, typename Tokens, typename F>
void for_each_section(Eos& eos, Notes& notes, Tokens& tokens, auto& trie, F&& f) {
  f(eos);
  f(notes);
  f(tokens.bytes);
  f(tokens.offset);
  f(trie.first_child);
  f(trie.child_count);
  f(trie.byte);
  f(trie.token_begin);
  f(trie.token_end);
  f(trie.tokens);
  f(trie.below_end);
  f(trie.below_bytes);
  f(trie.byte_sets);
}

}  // namespace

std::string to_block(const Vocabulary& vocabulary, std::string_view notes) {
  Header header{kMagic, kVersion, kByteOrder, 0, 0, {}};
  std::string block(sizeof(Header), '\0');
  size_t section = 0;
  for_each_section(vocabulary.eos_token_ids(), notes, vocabulary.tokens(), vocabulary.trie(), [&](const auto& values) {
    block.resize((block.size() + kAlignment - 1) / kAlignment * kAlignment);
    const size_t size = values.size() * sizeof(values[0]);
    header.sections[section++] = {block.size(), size};
    if (size) block.append(reinterpret_cast<const char*>(values.data()), size);
  });
  header.size = block.size();
  std::memcpy(block.data(), &header, sizeof(header));
  seal(block);
  return block;
}

void seal(std::span<char> block) {
  Header header;
  std::memcpy(&header, block.data(), sizeof(header));
  header.checksum = checksum(header, block.subspan(sizeof(header)));
  std::memcpy(block.data(), &header, sizeof(header));
}

Loaded from_block(std::span<const char> block, std::shared_ptr<const void> memory) {
  Header header;
  if (block.size() < sizeof(header)) throw std::invalid_argument("it is too short for the file of a vocabulary");
  std::memcpy(&header, block.data(), sizeof(header));
  if (header.magic != kMagic) throw std::invalid_argument("it is not the file of a vocabulary");
  if (header.byte_order != kByteOrder) throw std::invalid_argument("it was written on a machine of another byte order");
  if (header.version != kVersion) {
    throw std::invalid_argument("it was written in version " + std::to_string(header.version) +
                                " of the format, and this is version " + std::to_string(kVersion));
  }
  if (header.size != block.size()) {
    throw std::invalid_argument("it has " + std::to_string(block.size()) + " bytes where " +
                                std::to_string(header.size) + " were written: it was cut off or changed");
  }
  if (header.checksum != checksum(header, block.subspan(sizeof(header)))) {
    throw std::invalid_argument("its checksum is wrong: it was damaged or changed");
  }
  if (reinterpret_cast<uintptr_t>(block.data()) % alignof(uint64_t) != 0) {
    throw std::invalid_argument("it does not begin at an aligned address");
  }

  Column<uint32_t> eos;
  Column<char> notes;
  Vocabulary::Tokens tokens;
  Trie trie;
  size_t section = 0;
  const auto place = [&]<typename T>(Column<T>& column) {
    const auto [begin, size] = header.sections[section++];
    if (begin % kAlignment != 0 || begin > block.size() || size > block.size() - begin || size % sizeof(T) != 0) {
      throw std::invalid_argument("a section lies outside of it");
    }
    column = Column<T>(std::span(reinterpret_cast<const T*>(block.data() + begin), size / sizeof(T)));
  };
  for_each_section(eos, notes, tokens, trie, place);
  tokens.eos.assign(eos.begin(), eos.end());
  return {std::make_shared<Vocabulary>(std::move(tokens), std::move(trie), std::move(memory)),
          std::string_view(notes.data(), notes.size())};
}

}  // namespace grammask
