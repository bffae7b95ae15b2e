// SPDX-License-Identifier: Apache-2.0
#include "tests/property/planning_world.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/layout/layout.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

using shardwright::test::Choices;

Dims draw_shape(Choices& choices) {
  std::vector<int64_t> extents;
  const int64_t dimensions = choices.between(0, 4);
  for (int64_t d = 0; d < dimensions; ++d)
    extents.push_back(choices.chance(6) ? 0 : choices.between(1, 7));
  return Dims(extents);
}

// Some or all ranks in some order.
std::vector<int32_t> draw_ranks(Choices& choices, int32_t ranks) {
  std::vector<int32_t> list(static_cast<size_t>(ranks));
  std::iota(list.begin(), list.end(), 0);
  if (choices.chance(30)) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[choices.index(i)]);
  }
  if (choices.chance(20)) list.resize(choices.index(list.size()) + 1);
  return list;
}

// Cuts a count into at most three factors.
Dims draw_mesh_shape(Choices& choices, int64_t count) {
  std::vector<int64_t> axes{count};
  for (int i = 0; i < 2; ++i) {
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= axes.back(); ++d) {
      if (axes.back() % d == 0) divisors.push_back(d);
    }
    const int64_t parts = choices.pick(divisors);
    if (parts == 1) break;
    const int64_t whole = axes.back();
    axes.back() = parts;
    axes.push_back(whole / parts);
  }
  return Dims(axes);
}

// Strided and flat axes do not go together, so a layout has one of them.
Placement draw_placement(Choices& choices, const Dims& shape, PlacementKind special) {
  const std::vector<PlacementKind> kinds = {PlacementKind::kShard, PlacementKind::kShard,
                                            PlacementKind::kShard, PlacementKind::kReplicate,
                                            special};
  Placement placement;
  if (shape.empty()) return placement;
  placement.kind = choices.pick(kinds);
  placement.dim = static_cast<int32_t>(choices.index(shape.size()));
  if (placement.kind == PlacementKind::kStridedShard)
    placement.factor = static_cast<int32_t>(choices.between(1, 3));
  return placement;
}

// Each axis of the mesh splits one dimension or none.
TensorMap draw_map(Choices& choices, size_t axes, const Dims& shape) {
  TensorMap map(shape.size());
  for (size_t axis = 0; axis < axes; ++axis) {
    if (shape.empty() || choices.chance(25)) continue;
    std::vector<int32_t>& splitting = map[choices.index(shape.size())];
    const size_t at = choices.index(splitting.size() + 1);
    splitting.insert(splitting.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<int32_t>(axis));
  }
  for (std::vector<int32_t>& splitting : map) {
    if (splitting.empty()) splitting.push_back(-1);
  }
  return map;
}

std::vector<std::vector<Box>> draw_layout(Choices& choices, const Dims& shape, int32_t ranks) {
  Mesh mesh;
  mesh.ranks = draw_ranks(choices, ranks);
  mesh.shape = draw_mesh_shape(choices, static_cast<int64_t>(mesh.ranks.size()));
  const size_t axes = mesh.shape.size();
  std::vector<Placement> placements;
  const bool mapped = choices.chance(25);
  const PlacementKind special =
      choices.chance(50) ? PlacementKind::kFlat : PlacementKind::kStridedShard;
  for (size_t axis = 0; axis < axes && !mapped; ++axis)
    placements.push_back(draw_placement(choices, shape, special));
  const auto layout = mapped
                          ? Layout::create_mapped(std::move(mesh), draw_map(choices, axes, shape))
                          : Layout::create(std::move(mesh), placements);
  std::vector<std::vector<Box>> boxes(static_cast<size_t>(ranks));
  EXPECT_TRUE(layout.ok()) << layout.status().to_string();
  for (int32_t r = 0; r < ranks; ++r) {
    const auto pieces = (*layout)->pieces(shape, r);
    EXPECT_TRUE(pieces.ok()) << pieces.status().to_string();
    for (const Piece& piece : *pieces) boxes[static_cast<size_t>(r)].push_back(piece.box);
  }
  return boxes;
}

void cut(Choices& choices, const Box& from, int64_t pieces, std::vector<Box>* out) {
  if (pieces <= 1 || from.sizes.empty() || box_is_empty(from)) {
    out->push_back(from);
    return;
  }
  const size_t d = choices.index(from.sizes.size());
  if (from.sizes[d] < 2) {
    out->push_back(from);
    return;
  }
  const int64_t at = choices.between(1, from.sizes[d] - 1);
  Box low = from;
  Box high = from;
  low.sizes[d] = at;
  high.offsets[d] += at;
  high.sizes[d] -= at;
  cut(choices, low, pieces / 2, out);
  cut(choices, high, pieces - pieces / 2, out);
}

std::vector<std::vector<Box>> draw_ragged(Choices& choices, const Dims& shape, int32_t ranks) {
  std::vector<Box> pieces;
  cut(choices, whole_box(shape), choices.between(1, 16), &pieces);
  std::vector<std::vector<Box>> boxes(static_cast<size_t>(ranks));
  for (const Box& piece : pieces) {
    const size_t first = choices.index(boxes.size());
    boxes[first].push_back(piece);
    if (!choices.chance(25)) continue;
    const size_t second = choices.index(boxes.size());
    if (second != first) boxes[second].push_back(piece);
  }
  return boxes;
}

TensorWorld draw_tensor(Choices& choices, std::string name, Dims shape, int32_t ranks) {
  static const std::vector<DType> kDtypes = {DType::kFloat32, DType::kBfloat16, DType::kInt64,
                                             DType::kBool};
  static const std::vector<EntryKind> kKinds = {EntryKind::kSharded, EntryKind::kSharded,
                                                EntryKind::kSharded, EntryKind::kReplicated,
                                                EntryKind::kRankLocal};
  TensorWorld tensor{std::move(name), choices.pick(kDtypes), shape, choices.pick(kKinds), {}, {}};
  const auto count = static_cast<size_t>(ranks);
  tensor.listed.assign(count, true);
  if (tensor.kind == EntryKind::kSharded) {
    tensor.boxes = draw_holdings(choices, shape, ranks);
    for (size_t r = 0; r < count; ++r)
      tensor.listed[r] = !tensor.boxes[r].empty() || choices.chance(30);
    // A flat layout of no elements has no pieces; somebody lists the tensor all the same.
    if (std::ranges::count(tensor.listed, true) == 0) tensor.listed[0] = true;
    return tensor;
  }
  const size_t always = choices.index(count);
  for (size_t r = 0; r < count; ++r) {
    tensor.listed[r] = r == always || !choices.chance(20);
    tensor.boxes.emplace_back();
    if (!tensor.listed[r]) continue;
    if (tensor.kind == EntryKind::kRankLocal) {
      cut(choices, whole_box(shape), choices.between(1, 3), &tensor.boxes[r]);
    } else {
      tensor.boxes[r] = {whole_box(shape)};
    }
  }
  return tensor;
}

void draw_order(Choices& choices, World* world) {
  for (int32_t r = 0; r < world->ranks; ++r) world->reversed.push_back(choices.chance(20));
}

}  // namespace

std::vector<std::vector<Box>> draw_holdings(Choices& choices, const Dims& shape, int32_t ranks) {
  return choices.chance(40) ? draw_ragged(choices, shape, ranks)
                            : draw_layout(choices, shape, ranks);
}

World draw_world(Choices& choices) {
  World world;
  world.ranks = static_cast<int32_t>(choices.between(1, 8));
  const int64_t tensors = choices.between(0, 5);
  for (int64_t t = 0; t < tensors; ++t) {
    world.tensors.push_back(
        draw_tensor(choices, fmt::format("t{}", t), draw_shape(choices), world.ranks));
  }
  const int64_t objects = choices.between(0, 3);
  for (int64_t i = 0; i < objects; ++i) {
    ObjectWorld object{fmt::format("o{}", i), EntryKind::kReplicated, {}, {}};
    if (choices.chance(30)) object.kind = EntryKind::kRankLocal;
    object.bytes.assign(static_cast<size_t>(choices.between(0, 40)), 'x');
    const size_t always = choices.index(static_cast<size_t>(world.ranks));
    for (size_t r = 0; r < static_cast<size_t>(world.ranks); ++r)
      object.listed.push_back(r == always || !choices.chance(30));
    world.objects.push_back(object);
  }
  draw_order(choices, &world);
  return world;
}

World draw_wanted(Choices& choices, const World& stored, const LoadRules& rules) {
  World world;
  world.ranks = static_cast<int32_t>(choices.between(1, 8));
  for (const TensorWorld& from : stored.tensors) {
    if (from.kind == EntryKind::kRankLocal || choices.chance(10)) continue;
    Dims shape = from.shape;
    if (rules.shape == ShapeRule::kCropAndPad && choices.chance(30)) {
      for (int64_t& extent : shape) extent = choices.between(0, extent + 3);
    }
    TensorWorld tensor = draw_tensor(choices, from.name, shape, world.ranks);
    if (rules.cast == CastRule::kError) tensor.dtype = from.dtype;
    if (tensor.kind == EntryKind::kRankLocal) tensor.kind = EntryKind::kSharded;
    world.tensors.push_back(std::move(tensor));
  }
  if (rules.missing == MissingRule::kReport && choices.chance(30))
    world.tensors.push_back(draw_tensor(choices, "absent", draw_shape(choices), world.ranks));
  for (const ObjectWorld& from : stored.objects) {
    if (from.kind == EntryKind::kRankLocal || choices.chance(20)) continue;
    ObjectWorld object = from;
    object.listed.clear();
    for (int32_t r = 0; r < world.ranks; ++r) object.listed.push_back(!choices.chance(20));
    world.objects.push_back(object);
  }
  draw_order(choices, &world);
  return world;
}

bool damage(Choices& choices, World* world) {
  std::vector<std::vector<Box>*> lists;
  for (TensorWorld& tensor : world->tensors) {
    for (std::vector<Box>& boxes : tensor.boxes) {
      if (tensor.kind == EntryKind::kSharded && !boxes.empty()) lists.push_back(&boxes);
    }
  }
  if (lists.empty()) return false;
  std::vector<Box>& boxes = *lists[choices.index(lists.size())];
  const size_t victim = choices.index(boxes.size());
  if (boxes[victim].sizes.empty() || choices.chance(40)) {
    boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(victim));
    return true;
  }
  const size_t d = choices.index(boxes[victim].sizes.size());
  if (boxes[victim].offsets[d] > 0 && choices.chance(50)) {
    --boxes[victim].offsets[d];
    ++boxes[victim].sizes[d];
  } else if (boxes[victim].sizes[d] > 0) {
    --boxes[victim].sizes[d];
  }
  return true;
}

std::vector<State> states_of(const World& world) {
  std::vector<State> states;
  for (size_t r = 0; r < static_cast<size_t>(world.ranks); ++r) {
    std::vector<Holding> holdings;
    for (const TensorWorld& tensor : world.tensors) {
      if (tensor.listed[r])
        holdings.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.boxes[r], tensor.kind});
    }
    std::vector<Bytes> objects;
    for (const ObjectWorld& object : world.objects) {
      if (object.listed[r]) objects.push_back({object.name, object.bytes, object.kind});
    }
    if (world.reversed[r]) {
      std::ranges::reverse(holdings);
      std::ranges::reverse(objects);
    }
    states.push_back(state_of(holdings, objects));
  }
  return states;
}

std::string text_of(const World& world) {
  std::string text = fmt::format("{} ranks\n", world.ranks);
  for (const TensorWorld& tensor : world.tensors) {
    text += fmt::format("  tensor {} {} [{}] {}\n", tensor.name, dtype_name(tensor.dtype),
                        fmt::join(tensor.shape, ", "), entry_kind_name(tensor.kind));
    for (size_t r = 0; r < tensor.boxes.size(); ++r) {
      if (!tensor.listed[r]) continue;
      text += fmt::format("    rank {}:", r);
      for (const Box& each : tensor.boxes[r]) text += " " + box_text(each);
      text += "\n";
    }
  }
  for (const ObjectWorld& object : world.objects) {
    text += fmt::format("  object {} {} of {} bytes on ranks", object.name,
                        entry_kind_name(object.kind), object.bytes.size());
    for (size_t r = 0; r < object.listed.size(); ++r) {
      if (object.listed[r]) text += fmt::format(" {}", r);
    }
    text += "\n";
  }
  for (size_t r = 0; r < world.reversed.size(); ++r) {
    if (world.reversed[r]) text += fmt::format("  rank {} lists its entries backwards\n", r);
  }
  return text;
}

}  // namespace shardwright::plan::test
