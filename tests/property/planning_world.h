// SPDX-License-Identifier: Apache-2.0
//
// Worlds for planning, drawn from choices: what each rank holds of every tensor and object, as
// plain boxes, so that an oracle needs no layout, catalog or plan to know what is right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan_options.h"
#include "core/state/state.h"
#include "tests/property/choices.h"

namespace shardwright::plan::test {

struct TensorWorld {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  EntryKind kind = EntryKind::kSharded;
  std::vector<bool> listed;             // by rank: its state has the entry
  std::vector<std::vector<Box>> boxes;  // by rank; none where it is not listed
};

struct ObjectWorld {
  std::string name;
  EntryKind kind = EntryKind::kReplicated;
  std::vector<bool> listed;
  std::string bytes;
};

struct World {
  int32_t ranks = 1;
  std::vector<TensorWorld> tensors;
  std::vector<ObjectWorld> objects;
  std::vector<bool> reversed;  // by rank: its state lists the entries from last to first
};

// How each rank holds a tensor of this shape: pieces by rank, none for ranks that hold nothing.
// Layouts of meshes (uneven, empty, nested, strided, flat, replicated, mapped, sub-meshes, ranks in
// any order) and explicit ragged boxes that one or several ranks hold. The one place that knows
// what descriptions there are.
std::vector<std::vector<Box>> draw_holdings(shardwright::test::Choices& choices, const Dims& shape,
                                            int32_t ranks);

World draw_world(shardwright::test::Choices& choices);
// The tensors and objects that are not rank_local, held by other ranks in other ways. Some names
// are left out, some shapes and dtypes are changed when the rules allow it.
World draw_wanted(shardwright::test::Choices& choices, const World& stored, const LoadRules& rules);
// Takes one box away from a rank, or moves one of its borders by one; whether there was one.
bool damage(shardwright::test::Choices& choices, World* world);

// One state per rank; planning never looks at the memory.
std::vector<State> states_of(const World& world);
std::string text_of(const World& world);

}  // namespace shardwright::plan::test
