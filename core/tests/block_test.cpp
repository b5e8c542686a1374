#include "vocabulary/block.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "matcher/matcher.hpp"

using grammask::Compiled;
using grammask::ExprPool;
using grammask::Matcher;
using grammask::Vocabulary;

namespace {

// Random texts over few letters, so that the trie is deep, wide, and holds texts twice; id 0 ends the text.
std::vector<std::optional<std::string>> random_tokens(std::mt19937& random, size_t count) {
  std::vector<std::optional<std::string>> out{std::nullopt, "", "a", "b", "\"", "\xc3\xa9"};
  while (out.size() < count) {
    std::string text;
    for (size_t length = random() % 7; text.size() < length;) text.push_back("ab\"\\ \xc3\xa9{"[random() % 8]);
    out.emplace_back(text);
  }
  return out;
}

// A block at an address of its own length, so that reading beyond it is seen by AddressSanitizer.
std::shared_ptr<Vocabulary> load(std::string_view block) {
  auto memory = std::shared_ptr<uint64_t[]>(new uint64_t[(block.size() + 7) / 8]);
  std::memcpy(memory.get(), block.data(), block.size());
  return grammask::from_block({reinterpret_cast<const char*>(memory.get()), block.size()}, memory).vocabulary;
}

// All masks of some walks through ("(a|b)*)*, and what else reads the trie.
std::vector<uint32_t> masks(const std::shared_ptr<Vocabulary>& vocabulary) {
  const auto arena = vocabulary->arena();
  ExprPool& p = arena->pool();
  const auto letters = p.repeat(p.unite(p.byte('a'), p.byte('b')), 0, ExprPool::kUnbounded);
  const auto text = p.concat(p.byte('"'), p.concat(letters, p.byte('"')));
  const auto root = arena->settle(p.repeat(p.call(text), 0, ExprPool::kUnbounded));
  Matcher matcher(std::make_shared<Compiled>(Compiled{vocabulary, arena, root, false}));
  std::vector<uint32_t> out;
  for (const char c : std::string_view("\"ab\"\"b")) {
    const size_t at = out.size();
    out.resize(at + vocabulary->words());
    matcher.fill_mask(out.data() + at);
    if (!matcher.accept_bytes({&c, 1})) break;
  }
  std::vector<uint32_t> tokens = vocabulary->tokenize_greedy("ab\"a\\", false);
  (void)vocabulary->tokenize_shortest("\"abab\"", tokens);
  out.insert(out.end(), tokens.begin(), tokens.end());
  return out;
}

std::string refusal(std::string_view block) {
  try {
    load(block);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("block: a vocabulary comes back as it was") {
  std::mt19937 random(1);
  for (const size_t count : {6u, 40u, 3000u}) {
    const auto texts = random_tokens(random, count);
    const auto made = std::make_shared<Vocabulary>(texts, std::vector<uint32_t>{0}, static_cast<uint32_t>(count) + 3);
    const Vocabulary& built = *made;
    const std::string block = to_block(built, "notes");
    const auto loaded = load(block);
    CHECK(loaded->size() == built.size());
    CHECK(loaded->eos_token_ids() == built.eos_token_ids());
    CHECK(loaded->longest() == built.longest());
    for (uint32_t id = 0; id < built.size(); ++id) CHECK(loaded->token(id) == built.token(id));
    CHECK(to_block(*loaded, "notes") == block);
    CHECK(masks(loaded) == masks(made));
    CHECK(loaded->memory_bytes() == 0);
  }
}

TEST_CASE("block: what was cut off, changed or is something else is refused") {
  std::mt19937 random(2);
  const Vocabulary built(random_tokens(random, 200), {0}, 203);
  const std::string block = to_block(built, "{}");
  CHECK(refusal(block).empty());
  CHECK(refusal("").find("too short") != std::string::npos);
  CHECK(refusal(std::string(4096, 'x')).find("not the file") != std::string::npos);
  const auto with = [&](size_t at, char value) {
    std::string out = block;
    out[at] = value;
    return out;
  };
  CHECK(refusal(with(16, 9)).find("version") != std::string::npos);
  CHECK(refusal(with(20, 1)).find("byte order") != std::string::npos);
  for (int i = 0; i < 500; ++i) {
    CHECK_FALSE(refusal(block.substr(0, random() % block.size())).empty());
    const size_t at = random() % block.size();
    CHECK_FALSE(refusal(with(at, static_cast<char>(block[at] ^ (1 << random() % 8)))).empty());
  }
  CHECK_FALSE(refusal(block + '\0').empty());
}

TEST_CASE("block: one that was made to do harm is refused or harmless") {
  std::mt19937 random(3);
  const auto built = std::make_shared<Vocabulary>(random_tokens(random, 60), std::vector<uint32_t>{0}, 63);
  const std::string block = to_block(*built, "{}");
  int used = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string changed = block;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      // Numbers of four bytes, near what was there or anything, beyond the magic, version, order and length.
      const size_t at = 32 + random() % (block.size() - 36) / 4 * 4;
      uint32_t value = 0;
      std::memcpy(&value, changed.data() + at, 4);
      value = random() % 2 ? value + static_cast<uint32_t>(random() % 9) - 4 : static_cast<uint32_t>(random());
      std::memcpy(changed.data() + at, &value, 4);
    }
    grammask::seal(changed);
    if (!refusal(changed).empty()) continue;
    ++used;
    CHECK_FALSE(masks(load(changed)).empty());
  }
  CHECK(used > 100);
}
