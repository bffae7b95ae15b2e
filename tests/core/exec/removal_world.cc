// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/removal_world.h"

namespace shardwright::exec::test {

World removal_world(uint64_t number) {
  World world;
  world.ranks.resize(3);
  shardwright::test::RandomSource random(number);
  const auto add = [&](std::string name, size_t rank, int64_t rows) {
    world.tensors.push_back(random_dense(random, std::move(name), DType::kFloat32, Dims{rows, 5}));
    add_whole(&world.ranks[rank], world.tensors.back(), true, EntryKind::kSharded);
  };
  add("layer.weight", 0, 40);
  add("optimizer.exp_avg", 0, 40);
  add("layer.bias", 1, 7);
  add("optimizer.exp_avg_sq", 2, 40);
  return world;
}

World left_of(const World& world) {
  World left;
  for (const Dense& tensor : world.tensors) {
    if (!tensor.name.starts_with(kRemovedPrefix)) left.tensors.push_back(tensor);
  }
  return left;
}

Result<Report> remove_optimizer(Runtime& runtime, const format::Location& location) {
  RemoveOptions options;
  options.prefix = kRemovedPrefix;
  options.apply = true;
  return remove_entries(runtime, location, options);
}

bool lists_optimizer(Runtime& runtime, const format::Location& location) {
  const auto opened = Checkpoint::open(runtime, location);
  EXPECT_TRUE(opened.ok()) << opened.status().to_string();
  if (!opened.ok()) return false;
  const plan::Catalog& catalog = (*opened)->catalog();
  for (size_t t = 0; t < catalog.tensors.size(); ++t)
    if (catalog.tensor_name(t).starts_with(kRemovedPrefix)) return true;
  return false;
}

}  // namespace shardwright::exec::test
