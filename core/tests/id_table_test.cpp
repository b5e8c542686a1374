#include "regular/id_table.hpp"

#include <doctest/doctest.h>

#include <vector>

using grammask::IdTable;

TEST_CASE("id table: everything is found while and after the table grows") {
  // Bad hashes: every value is shared by some, and they lie close together.
  const auto hash_of = [](uint32_t id) { return uint64_t{id / 3} * 2; };
  IdTable table;
  constexpr uint32_t kMany = 30'000;
  for (uint32_t id = 0; id < kMany; ++id) {
    const auto same = [&](uint32_t found) { return found == id; };
    REQUIRE(table.find(hash_of(id), same) == IdTable::kNone);
    table.insert(hash_of(id), hash_of);
    REQUIRE(table.find(hash_of(id), same) == id);
    const uint32_t earlier = id * 7919 % (id + 1);
    REQUIRE(table.find(hash_of(earlier), [&](uint32_t found) { return found == earlier; }) == earlier);
  }
  for (uint32_t id = 0; id < kMany; ++id)
    REQUIRE(table.find(hash_of(id), [&](uint32_t found) { return found == id; }) == id);
  CHECK(table.memory_bytes() >= kMany * sizeof(uint32_t));
}
