// SPDX-License-Identifier: Apache-2.0
//
// What must not change when a world is said in another way: ranks renamed, meshes transposed, a
// checkpoint carried through any third mesh.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/layout/layout.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "tests/core/plan/read_list.h"
#include "tests/core/plan/world.h"
#include "tests/property/planning_oracle.h"
#include "tests/property/planning_world.h"
#include "tests/support/random_source.h"

namespace shardwright::plan::test {
namespace {

using shardwright::test::Choices;
using shardwright::test::RandomSource;

constexpr int kWorlds = 1000;

// Chunks by tensor, owner rank of the entry and box, and the rank that writes each.
using Writers = std::map<std::string, int32_t>;
Writers writers_of(const GlobalSavePlan& plan) {
  Writers writers;
  for (size_t c = 0; c < plan.catalog.chunk_count(); ++c) {
    const size_t tensor = plan.catalog.tensor_of(c);
    const std::string key =
        fmt::format("{} of {} {}", plan.catalog.tensor_name(tensor),
                    plan.catalog.tensors[tensor].rank, box_text(plan.catalog.chunk_box(c)));
    writers[key] = static_cast<int32_t>(plan.catalog.place_of(c));
  }
  return writers;
}

template <typename T>
std::vector<T> renamed(const std::vector<T>& by_rank, const std::vector<int32_t>& new_name) {
  std::vector<T> moved(by_rank.size());
  for (size_t r = 0; r < by_rank.size(); ++r) moved[static_cast<size_t>(new_name[r])] = by_rank[r];
  return moved;
}

World without_rank_local(World world) {
  const auto own = [](const auto& entry) { return entry.kind == EntryKind::kRankLocal; };
  std::erase_if(world.tensors, own);
  std::erase_if(world.objects, own);
  return world;
}

std::vector<int32_t> shuffled_ranks(Choices& choices, int32_t ranks) {
  std::vector<int32_t> names(static_cast<size_t>(ranks));
  std::iota(names.begin(), names.end(), 0);
  for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[choices.index(i)]);
  return names;
}

TEST(PlanningMetamorphic, RenamedRanksStoreTheSameChunks) {
  RandomSource random;
  for (int i = 0; i < kWorlds && !testing::Test::HasFailure(); ++i) {
    Choices choices(random.next());
    const World world = without_rank_local(draw_world(choices));
    const std::vector<int32_t> name = shuffled_ranks(choices, world.ranks);
    World other = world;
    for (TensorWorld& tensor : other.tensors) {
      tensor.boxes = renamed(tensor.boxes, name);
      tensor.listed = renamed(tensor.listed, name);
    }
    for (ObjectWorld& object : other.objects) object.listed = renamed(object.listed, name);
    other.reversed = renamed(other.reversed, name);
    const Writers first = writers_of(planned(states_of(world)));
    const Writers second = writers_of(planned(states_of(other)));
    ASSERT_EQ(first.size(), second.size()) << text_of(world);
    for (const auto& [chunk, writer] : first)
      EXPECT_TRUE(second.contains(chunk)) << chunk << "\n" << text_of(world);
    // Who alone holds a box writes it under the new name.
    for (const TensorWorld& tensor : world.tensors) {
      std::map<std::string, std::vector<size_t>> holders;
      for (size_t r = 0; r < tensor.boxes.size(); ++r) {
        for (const Box& each : tensor.boxes[r]) holders[box_text(each)].push_back(r);
      }
      for (const auto& [box, ranks] : holders) {
        const std::string key = fmt::format("{} of -1 {}", tensor.name, box);
        if (ranks.size() != 1 || !second.contains(key)) continue;
        EXPECT_EQ(second.at(key), name[ranks[0]]) << text_of(world);
      }
    }
  }
}

// A mesh of two axes that shard different dimensions, and the same ranks seen the other way round.
TEST(PlanningMetamorphic, TransposedMeshesGiveTheSamePlan) {
  RandomSource random;
  for (int i = 0; i < kWorlds && !testing::Test::HasFailure(); ++i) {
    const int64_t rows = random.between(1, 4);
    const int64_t columns = random.between(1, 4);
    const Dims shape{random.between(0, 9), random.between(0, 9), random.between(1, 3)};
    Mesh mesh{{rows, columns}, {}, {}};
    Mesh transposed{{columns, rows}, {}, {}};
    mesh.ranks.resize(static_cast<size_t>(rows * columns));
    std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
    for (int64_t k = 0; k < columns; ++k) {
      for (int64_t r = 0; r < rows; ++r)
        transposed.ranks.push_back(static_cast<int32_t>(r * columns + k));
    }
    const Placement first{PlacementKind::kShard, static_cast<int32_t>(random.between(0, 1)), 0};
    const Placement second =
        random.chance(30) ? Placement{} : Placement{PlacementKind::kShard, 1 - first.dim, 0};
    const auto one = Layout::create(mesh, {first, second});
    const auto other = Layout::create(transposed, {second, first});
    ASSERT_TRUE(one.ok() && other.ok());
    const auto plan_of = [&](const Layout& layout) {
      std::vector<State> states;
      for (int32_t r = 0; r < rows * columns; ++r) {
        Holding holding{"w", DType::kFloat32, shape, {}};
        const auto pieces = layout.pieces(shape, r);
        for (const Piece& piece : *pieces) holding.boxes.push_back(piece.box);
        states.push_back(state_of({holding}));
      }
      return planned(states);
    };
    EXPECT_EQ(plan_of(**one).plan_digest, plan_of(**other).plan_digest)
        << rows << " x " << columns << " of " << box_text(whole_box(shape));
  }
}

// Elements of each piece of each rank: what a training job would hold.
using Memory = std::map<std::string, std::vector<int64_t>>;

std::string piece_key(size_t rank, std::string_view name, size_t piece) {
  return fmt::format("{} {} {}", rank, name, piece);
}

template <typename Visit>
void for_each_pair(const Box& inner, const Box& outer, const Visit& visit) {
  const int64_t count = box_element_count(inner);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    int64_t at = 0;
    int64_t stride = 1;
    for (size_t d = inner.sizes.size(); d-- > 0; stride *= outer.sizes[d]) {
      at += (inner.offsets[d] + rest % inner.sizes[d] - outer.offsets[d]) * stride;
      rest /= inner.sizes[d];
    }
    visit(static_cast<size_t>(i), static_cast<size_t>(at));
  }
}

// Every element is its number in its tensor.
Memory numbered(const World& world) {
  Memory memory;
  for (const TensorWorld& tensor : world.tensors) {
    for (size_t r = 0; r < tensor.boxes.size(); ++r) {
      for (size_t p = 0; p < tensor.boxes[r].size(); ++p) {
        std::vector<int64_t> values(static_cast<size_t>(box_element_count(tensor.boxes[r][p])));
        for_each_pair(tensor.boxes[r][p], whole_box(tensor.shape),
                      [&](size_t i, size_t at) { values[i] = static_cast<int64_t>(at); });
        memory[piece_key(r, tensor.name, p)] = std::move(values);
      }
    }
  }
  return memory;
}

// What `to` holds after it loaded what `from` saved, taking each chunk from the rank that writes
// it.
Memory carried(const World& from, const Memory& memory, const World& to) {
  const std::vector<State> writers = states_of(from);
  const PlannedSave plan = planned(writers);
  std::map<uint64_t, std::vector<int64_t>> chunks;
  std::vector<size_t> next(plan.lists.size(), 0);  // item of each list, in the order of the catalog
  for (uint64_t c = 0; c < plan.catalog.chunk_count(); ++c) {
    const size_t rank = plan.catalog.place_of(c);
    const WriteItem& item = plan.lists[rank].items[next[rank]++];
    chunks[c] = memory.at(piece_key(rank, writers[rank].tensors()[item.entry].name, item.piece));
  }
  Memory result;
  const std::vector<State> readers = states_of(to);
  const CatalogIndex index(plan.catalog);
  for (size_t r = 0; r < readers.size(); ++r) {
    const TensorColumns& tensors = readers[r].tensors();
    for (size_t t = 0; t < tensors.size(); ++t) {
      for (size_t p = 0; p < tensors[t].pieces.size(); ++p) {
        const auto count = static_cast<size_t>(box_element_count(tensors[t].pieces[p].box));
        result[piece_key(r, tensors[t].name, p)].assign(count, -1);
      }
    }
    const Result<LoadPlan> load = make_load_plan(readers[r], index, {}, static_cast<int32_t>(r));
    EXPECT_TRUE(load.ok()) << load.status().to_string();
    for (const ReadItem& read : plan::test::reads_of(*load)) {
      const TensorRef entry = tensors[read.entry];
      std::vector<int64_t>& target = result[piece_key(r, entry.name, read.piece)];
      const std::vector<int64_t>& source = chunks.at(read.chunk);
      std::vector<int64_t> part(static_cast<size_t>(box_element_count(read.box)));
      for_each_pair(read.box, plan.catalog.chunk_box(read.chunk),
                    [&](size_t i, size_t at) { part[i] = source[at]; });
      for_each_pair(read.box, entry.pieces[read.piece].box,
                    [&](size_t i, size_t at) { target[at] = part[i]; });
    }
  }
  return result;
}

// The same tensors on other ranks.
World another_mesh(Choices& choices, const World& world) {
  World other = world;
  other.ranks = static_cast<int32_t>(choices.between(1, 8));
  other.objects.clear();
  other.reversed.assign(static_cast<size_t>(other.ranks), false);
  for (TensorWorld& tensor : other.tensors) {
    tensor.kind = EntryKind::kSharded;
    tensor.boxes = draw_holdings(choices, tensor.shape, other.ranks);
    tensor.listed.assign(static_cast<size_t>(other.ranks), true);
  }
  return other;
}

TEST(PlanningMetamorphic, AThirdMeshChangesNothing) {
  RandomSource random;
  for (int i = 0; i < kWorlds && !testing::Test::HasFailure(); ++i) {
    Choices choices(random.next());
    World world = without_rank_local(draw_world(choices));
    world.objects.clear();
    const World third = another_mesh(choices, world);
    const World last = another_mesh(choices, world);
    const Memory through = carried(world, numbered(world), third);
    EXPECT_EQ(through, numbered(third)) << text_of(world) << text_of(third);
    EXPECT_EQ(carried(third, through, last), numbered(last)) << text_of(third) << text_of(last);
  }
}

}  // namespace
}  // namespace shardwright::plan::test
