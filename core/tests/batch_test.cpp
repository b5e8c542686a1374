#include "matcher/batch.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "matcher/matcher.hpp"

using grammask::Compiled;
using grammask::ExprId;
using grammask::ExprPool;
using grammask::Matcher;
using grammask::Vocabulary;

namespace {

// Matchers of {n}{n, 2n} letters for n = 1, 2, ..., each some letters on.
std::deque<Matcher> matchers(const std::shared_ptr<Vocabulary>& vocabulary, uint32_t count) {
  std::deque<Matcher> out;
  const auto arena = vocabulary->arena();
  for (uint32_t n = 1; n <= count; ++n) {
    ExprId root = 0;
    {
      const std::lock_guard lock(arena->mutex());
      ExprPool& p = arena->pool();
      root = arena->settle(p.repeat(p.unite(p.byte('a'), p.byte('b')), n, 2 * n));
    }
    out.emplace_back(std::make_shared<Compiled>(Compiled{vocabulary, arena, root, false}));
    for (uint32_t i = 0; i < n % 5; ++i) out.back().accept(0);
  }
  return out;
}

}  // namespace

TEST_CASE("batch: every size and number of threads, several batches at once, cold") {
  std::vector<std::optional<std::string>> tokens{"a", "b", std::nullopt};
  for (int i = 0; i < 96; ++i)
    tokens.emplace_back(std::string(1 + static_cast<size_t>(i) % 7, i % 2 ? 'a' : 'b') + "a");
  const auto make = [&] {
    return std::make_shared<Vocabulary>(tokens, std::vector<uint32_t>{2}, static_cast<uint32_t>(tokens.size()));
  };
  const auto fill = [&](const std::shared_ptr<Vocabulary>& vocabulary, uint32_t count, int threads) {
    std::deque<Matcher> made = matchers(vocabulary, count);
    std::vector<Matcher*> list;
    for (Matcher& m : made) list.push_back(&m);
    std::vector<uint32_t> out(count * vocabulary->words(), ~0u);
    grammask::fill_masks(list, out.data(), vocabulary->words(), threads);
    return out;
  };
  for (const uint32_t count : {0u, 1u, 2u, 3u, 17u, 100u}) {
    const std::vector<uint32_t> expected = fill(make(), count, 1);
    for (const int threads : {0, 2, 3, 8}) {
      const auto shared = make();
      std::vector<std::vector<uint32_t>> found(3);
      std::vector<std::thread> callers;
      for (auto& each : found) callers.emplace_back([&] { each = fill(shared, count, threads); });
      for (std::thread& each : callers) each.join();
      for (const auto& each : found) CHECK(each == expected);
    }
  }
}
