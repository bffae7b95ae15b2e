// SPDX-License-Identifier: Apache-2.0
//
// Random small worlds: tensors cut by meshes (uneven, empty, 0-d, several axes, replicated) or into
// irregular boxes, and the states of all ranks. The same tensors can be cut again for another
// number of ranks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/layout/layout.h"
#include "tests/core/plan/world.h"
#include "tests/support/random_source.h"

namespace shardwright::plan::test {

struct WorldTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  EntryKind kind = EntryKind::kSharded;
};

inline std::vector<WorldTensor> random_tensors(shardwright::test::RandomSource& random) {
  const std::vector<DType> dtypes = {DType::kFloat32, DType::kBfloat16, DType::kInt64,
                                     DType::kBool};
  std::vector<WorldTensor> tensors;
  const int64_t count = random.between(1, 6);
  for (int64_t t = 0; t < count; ++t) {
    WorldTensor tensor;
    tensor.name = "tensor." + std::to_string(t);
    tensor.dtype = random.pick(dtypes);
    const int64_t dimensions = random.between(0, 4);
    std::vector<int64_t> extents;
    for (int64_t d = 0; d < dimensions; ++d)
      extents.push_back(random.chance(8) ? 0 : random.between(1, 7));
    tensor.shape = Dims(extents);
    tensor.kind = random.chance(15)   ? EntryKind::kRankLocal
                  : random.chance(25) ? EntryKind::kReplicated
                                      : EntryKind::kSharded;
    tensors.push_back(tensor);
  }
  return tensors;
}

// Cuts the box in two at random places until about `pieces` are there.
inline std::vector<Box> random_pieces(shardwright::test::RandomSource& random, const Box& from,
                                      int64_t pieces) {
  if (pieces <= 1 || from.sizes.empty() || box_is_empty(from)) return {from};
  const auto d =
      static_cast<size_t>(random.between(0, static_cast<int64_t>(from.sizes.size()) - 1));
  if (from.sizes[d] < 2) return {from};
  const int64_t cut = random.between(1, from.sizes[d] - 1);
  Box low = from;
  Box high = from;
  low.sizes[d] = cut;
  high.offsets[d] += cut;
  high.sizes[d] -= cut;
  std::vector<Box> all = random_pieces(random, low, pieces / 2);
  for (Box& each : random_pieces(random, high, pieces - pieces / 2)) all.push_back(each);
  return all;
}

// Boxes of each rank of a mesh of one or two axes with random placements.
inline std::vector<std::vector<Box>> mesh_boxes(shardwright::test::RandomSource& random,
                                                const Dims& shape, int32_t ranks) {
  Mesh mesh;
  mesh.shape = ranks % 2 == 0 && random.chance(50) ? Dims{2, ranks / 2} : Dims{ranks};
  std::vector<Placement> placements;
  for (size_t axis = 0; axis < mesh.shape.size(); ++axis) {
    Placement placement;
    if (!shape.empty() && random.chance(75)) {
      placement.kind = PlacementKind::kShard;
      placement.dim =
          static_cast<int32_t>(random.between(0, static_cast<int64_t>(shape.size()) - 1));
    }
    placements.push_back(placement);
  }
  const auto layout = Layout::create(std::move(mesh), std::move(placements));
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  std::vector<std::vector<Box>> boxes(static_cast<size_t>(ranks));
  for (int32_t r = 0; r < ranks; ++r) {
    const auto pieces = (*layout)->pieces(shape, r);
    EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
    for (const Piece& piece : *pieces) boxes[static_cast<size_t>(r)].push_back(piece.box);
  }
  return boxes;
}

// Irregular boxes, each given to one rank and sometimes to a second.
inline std::vector<std::vector<Box>> irregular_boxes(shardwright::test::RandomSource& random,
                                                     const Dims& shape, int32_t ranks) {
  std::vector<std::vector<Box>> boxes(static_cast<size_t>(ranks));
  for (const Box& piece : random_pieces(random, whole_box(shape), random.between(1, 12))) {
    const int64_t first = random.between(0, ranks - 1);
    boxes[static_cast<size_t>(first)].push_back(piece);
    const int64_t second = random.between(0, ranks - 1);
    if (second != first && random.chance(30)) boxes[static_cast<size_t>(second)].push_back(piece);
  }
  return boxes;
}

// States of all ranks; some ranks list their entries in another order.
inline std::vector<State> random_states(shardwright::test::RandomSource& random,
                                        const std::vector<WorldTensor>& tensors, int32_t ranks) {
  std::vector<std::vector<Holding>> holdings(static_cast<size_t>(ranks));
  for (const WorldTensor& tensor : tensors) {
    std::vector<std::vector<Box>> boxes(static_cast<size_t>(ranks), {whole_box(tensor.shape)});
    if (tensor.kind == EntryKind::kSharded) {
      boxes = random.chance(60) ? mesh_boxes(random, tensor.shape, ranks)
                                : irregular_boxes(random, tensor.shape, ranks);
    }
    for (size_t r = 0; r < boxes.size(); ++r) {
      holdings[r].push_back({tensor.name, tensor.dtype, tensor.shape, boxes[r], tensor.kind});
    }
  }
  std::vector<State> states;
  for (std::vector<Holding>& each : holdings) {
    if (random.chance(30)) std::reverse(each.begin(), each.end());
    states.push_back(state_of(each));
  }
  return states;
}

}  // namespace shardwright::plan::test
