// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/megatron_world.h"

#include "core/storage/backends.h"
#include "tests/support/random_source.h"

namespace shardwright::exec::test {
namespace {

constexpr std::string_view kMarker = "metadata.json";

// The files of Megatron: those of data, and three by their names.
bool is_megatrons(std::string_view name) {
  return name.ends_with(".distcp") || name == ".metadata" || name == "common.pt" || name == kMarker;
}

// Only those, in another storage.
format::Location as_megatron_sees(const format::Location& location) {
  const format::Location seen{storage::make_memory_storage(), location.prefix};
  for (const auto& [key, bytes] : contents(location)) {
    if (!is_megatrons(std::string_view(key).substr(location.prefix.size() + 1))) continue;
    storage::OpenOptions create;
    create.mode = storage::OpenMode::kCreateVisible;
    const auto object = seen.storage->open(key, create);
    EXPECT_TRUE(object.ok() && (*object)->write_at(0, bytes).ok() && (*object)->close().ok());
  }
  return seen;
}

bool has_marker(const format::Location& location) {
  return location.storage->stat(location.prefix + "/" + std::string(kMarker)).ok();
}

}  // namespace

World make_megatron_world(int32_t world_size, uint64_t number) {
  World world = make_small_world(world_size, number);
  shardwright::test::RandomSource random(number);
  world.tensors.push_back(random_dense(random, "common.state.tensor", DType::kUint8, Dims{40}));
  for (Holding& rank : world.ranks)
    add_whole(&rank, world.tensors.back(), true, EntryKind::kReplicated);
  return world;
}

testing::AssertionResult megatron_finds_none_or(Runtime& runtime, const format::Location& location,
                                                std::span<const World* const> worlds) {
  if (!has_marker(location)) return testing::AssertionSuccess();
  const format::Location seen = as_megatron_sees(location);
  testing::AssertionResult failure = testing::AssertionFailure() << "for Megatron: ";
  for (const World* const world : worlds) {
    const testing::AssertionResult found = stores(runtime, seen, *world);
    if (found) return found;
    failure << found.message() << "; ";
  }
  return failure;
}

testing::AssertionResult megatron_finds(Runtime& runtime, const format::Location& location,
                                        const World& world) {
  if (!has_marker(location)) return testing::AssertionFailure() << "there is no " << kMarker;
  const World* const only[] = {&world};
  return megatron_finds_none_or(runtime, location, only);
}

}  // namespace shardwright::exec::test
