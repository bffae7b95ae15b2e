// SPDX-License-Identifier: Apache-2.0
//
// The vectors of the standard preset (tests/bindings/hyperparallel.json) on the engine itself:
// areas and placements by layouts, redundancy by merged plans, reads by matched boxes, resharding
// by the common parts of two layouts. The bindings run the same file through their own names.
#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "core/layout/layout.h"
#include "core/plan/load/box_match.h"
#include "tests/core/plan/described.h"

namespace shardwright::plan::test {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json all = [] {
    const char* source = std::getenv("SHW_SOURCE_DIR");
    const std::string folder = source == nullptr ? "." : source;
    std::ifstream file(folder + "/tests/bindings/hyperparallel.json");
    return Json::parse(file);
  }();
  return all;
}

Dims dims(const Json& values) {
  return Dims(values.get<std::vector<int64_t>>());
}

// [[begin, end], ...]
Box area(const Json& intervals) {
  std::vector<int64_t> offsets;
  std::vector<int64_t> sizes;
  for (const Json& each : intervals) {
    offsets.push_back(each[0].get<int64_t>());
    sizes.push_back(each[1].get<int64_t>() - each[0].get<int64_t>());
  }
  return {Dims(offsets), Dims(sizes)};
}

Mesh mesh(const Json& extents) {
  Mesh made;
  made.shape = dims(extents);
  return made;
}

TensorMap tensor_map(const Json& entries) {
  TensorMap map;
  for (const Json& entry : entries) {
    map.push_back(entry.is_array() ? entry.get<std::vector<int32_t>>()
                                   : std::vector<int32_t>{entry.get<int32_t>()});
  }
  return map;
}

// What a rank holds, one box.
Result<Box> held(const Layout& layout, const Dims& shape, int32_t rank) {
  SHW_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, layout.pieces(shape, rank));
  if (pieces.size() != 1) return invalid_argument("the rank holds nothing");
  return pieces[0].box;
}

TEST(StandardVectors, Areas) {
  for (const Json& each : vectors()["areas"]) {
    const auto layout = Layout::create_mapped(mesh(each["mesh"]), tensor_map(each["tensor_map"]));
    ASSERT_TRUE(layout.ok()) << each << layout.status().to_string();
    for (const auto& [rank, expected] : each["areas"].items()) {
      const auto found = held(**layout, dims(each["shape"]), std::stoi(rank));
      ASSERT_TRUE(found.ok()) << each << found.status().to_string();
      EXPECT_EQ(box_text(*found), box_text(area(expected))) << each << " rank " << rank;
    }
  }
}

TEST(StandardVectors, AreasThatHaveNoMeaningAreRefused) {
  for (const Json& each : vectors()["bad_areas"]) {
    const auto layout = Layout::create_mapped(mesh(each["mesh"]), tensor_map(each["tensor_map"]));
    const Status status =
        layout.ok() ? held(**layout, dims(each["shape"]), each["rank"].get<int32_t>()).status()
                    : layout.status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << each["why"];
  }
}

TEST(StandardVectors, Intersections) {
  for (const Json& each : vectors()["intersections"]) {
    if (each.contains("error")) continue;  // arguments that no box can be
    const Box found = intersect(area(each["a"]), area(each["b"]));
    if (each["result"].is_null()) {
      EXPECT_TRUE(box_is_empty(found)) << each;
    } else {
      EXPECT_EQ(found, area(each["result"])) << each;
    }
  }
}

Result<Layout::Ptr> placed(const Json& rows) {
  std::vector<Placement> placements;
  for (const Json& row : rows) {
    Placement placement;
    if (row[0] == "shard") placement = {PlacementKind::kShard, row[1].get<int32_t>(), 0};
    if (row[0] == "partial") placement = {PlacementKind::kPartial, 0, 0};
    placements.push_back(placement);
  }
  return Layout::create({Dims(placements.size(), 2), {}, {}}, placements);
}

// Placements and the map that they become give every rank the same box.
TEST(StandardVectors, PlacementsAndMaps) {
  for (const Json& each : vectors()["placements"]) {
    const auto layout = placed(each["placements"]);
    const auto dimensions = each["ndim"].get<int64_t>();
    if (each.contains("partial")) {
      EXPECT_EQ(layout.status().code(), StatusCode::kFailedPrecondition) << each;
      continue;
    }
    ASSERT_TRUE(layout.ok()) << each << layout.status().to_string();
    if (dimensions < 0) continue;  // no shape has as many
    const Dims shape(static_cast<size_t>(dimensions), 12);
    if (each.contains("error")) {
      EXPECT_EQ((*layout)->pieces(shape, 0).status().code(), StatusCode::kInvalidArgument) << each;
      continue;
    }
    const auto mapped = Layout::create_mapped({Dims(each["placements"].size(), 2), {}, {}},
                                              tensor_map(each["tensor_map"]));
    ASSERT_TRUE(mapped.ok()) << each << mapped.status().to_string();
    for (int32_t rank = 0; rank < (*layout)->rank_count(); ++rank)
      EXPECT_TRUE(*(*layout)->pieces(shape, rank) == *(*mapped)->pieces(shape, rank)) << each;
  }
}

Listed listed(const Json& row) {
  const auto name = row["name"].get<std::string>();
  if (!row.contains("dtype")) return object(name);
  Listed made = shard(name, dims(row["shape"]), dims(row["offsets"]), dims(row["sizes"]));
  made.dtype = *dtype_from_name(row["dtype"].get<std::string>());
  return made;
}

// "a@4,0", the number behind it for tensors.
std::vector<std::pair<std::string, uint64_t>> kept_labels(std::span<const std::byte> local,
                                                          std::span<const uint32_t> numbers) {
  std::vector<std::pair<std::string, uint64_t>> labels;
  for_each_kept(local, numbers, [&](const RankView& rank, uint32_t item, uint32_t number) {
    const Catalog& catalog = rank.description.catalog;
    const auto boxes = rank.part.boxes;
    if (item >= boxes.size()) {
      labels.emplace_back(catalog.object_name(item - boxes.size()), 0);
      return;
    }
    labels.emplace_back(fmt::format("{}@{}", catalog.tensor_name(boxes[item].tensor),
                                    fmt::join(rank.box_of(item).offsets, ",")),
                        number);
  });
  return labels;
}

void expect_kept(const Json& each, const std::vector<PlanBytes>& plans, const PlanParts& parts) {
  for (size_t r = 0; r < each["plans"].size(); ++r) {
    std::vector<std::string> names;
    for (const auto& [label, number] : kept_labels(plans[r], parts.numbers(1 + r))) {
      names.push_back(label);
      const size_t at = label.find('@');
      if (at == std::string::npos || !each.contains("numbers")) continue;
      EXPECT_EQ(each["numbers"][label.substr(0, at)][label.substr(at + 1)], number) << label;
    }
    if (each.contains("kept")) {
      EXPECT_EQ(Json(names), each["kept"][r]) << each["name"] << " " << r;
    }
  }
}

TEST(StandardVectors, Redundancy) {
  for (const Json& each : vectors()["redundancy"]) {
    Ranks ranks;
    for (const Json& rows : each["plans"]) {
      ranks.emplace_back();
      for (const Json& row : rows) ranks.back().push_back(listed(row));
    }
    const OwnerRule owner = each["owner"] == "exact"         ? OwnerRule::kExact
                            : each["owner"] == "lowest_rank" ? OwnerRule::kLowestRank
                                                             : OwnerRule::kAll;
    const std::vector<PlanBytes> plans = described(ranks);
    const Result<PlanParts> parts = merged(plans, rules_of(Preset::kHyperparallel, owner));
    if (each.contains("error")) {
      EXPECT_FAILURE(parts.status(), StatusCode::kInvalidArgument, "'w'", "0", "1");
      continue;
    }
    ASSERT_TRUE(parts.ok()) << each["name"] << parts.status().to_string();
    expect_kept(each, plans, *parts);
    if (!each.contains("chunks")) continue;
    const GlobalSavePlan plan = merged_plan(*parts);
    Json chunks = Json::object();
    for (size_t c = 0; c < plan.catalog.chunk_count(); ++c) {
      const std::string name(plan.catalog.tensor_name(plan.catalog.tensor_of(c)));
      chunks[name].push_back(fmt::format("{}", fmt::join(plan.catalog.chunk_box(c).offsets, ",")));
    }
    EXPECT_EQ(chunks, each["chunks"]) << each["name"];
  }
}

std::vector<Box> boxes(const Json& rows) {
  std::vector<Box> made;
  for (const Json& row : rows) made.push_back({dims(row[0]), dims(row[1])});
  return made;
}

TEST(StandardVectors, Reads) {
  for (const Json& each : vectors()["reads"]) {
    const Dims shape = dims(each["shape"]);
    const std::vector<Box> saved = boxes(each["saved"]);
    const Catalog catalog = catalog_of(shape, saved);
    const std::vector<Box> wanted = boxes(each["wanted"]);
    BoxMatches found;
    match_boxes(CatalogIndex(catalog), 0, wanted, {}, &found);
    ASSERT_EQ(found.chunks.size(), each["items"].size()) << each["name"];
    for (size_t i = 0; i < found.chunks.size(); ++i) {
      const Json& item = each["items"][i];
      const auto part = [&](const std::vector<int64_t>& column) {
        return Dims(std::span(column).subspan(i * shape.size(), shape.size()));
      };
      EXPECT_EQ(found.wanted[i], item["wanted"]) << each["name"];
      EXPECT_EQ(found.chunks[i], item["chunk"]) << each["name"];
      EXPECT_EQ(part(found.wanted_offsets), dims(item["begin"])) << each["name"];
      EXPECT_EQ(part(found.stored_offsets), dims(item["chunk_begin"])) << each["name"];
      EXPECT_EQ(part(found.lengths), dims(item["sizes"])) << each["name"];
    }
  }
}

// The layout of one side; without one, rank 0 holds everything.
Result<Layout::Ptr> side(const Json& given, size_t dimensions) {
  if (given.is_null()) return Layout::create_mapped({Dims{1}, {}, {}}, TensorMap(dimensions));
  Mesh own = mesh(given["mesh"]);
  own.ranks = given["ranks"].get<std::vector<int32_t>>();
  return Layout::create_mapped(std::move(own), tensor_map(given["map"]));
}

// Of replicas the one whose coordinates on the axes that cut nothing are 0.
bool is_source(const Layout& layout, int32_t rank) {
  for (size_t axis = 0; axis < layout.mesh().shape.size(); ++axis) {
    if (!layout.cuts_with(axis) && layout.coordinate(layout.position_of(rank), axis) != 0)
      return false;
  }
  return true;
}

TEST(StandardVectors, Resharding) {
  for (const Json& each : vectors()["reshard"]) {
    if (each["from"].is_null() && each["to"].is_null()) continue;  // nothing to compare
    const Dims shape = dims(each["shape"]);
    const auto from = side(each["from"], shape.size());
    const auto to = side(each["to"], shape.size());
    ASSERT_TRUE(from.ok() && to.ok()) << each;
    const int32_t target = each["to"].is_null() ? 0 : each["rank"].get<int32_t>();
    const Result<Box> wanted = held(**to, shape, target);
    EXPECT_EQ(wanted.ok(), !each.contains("error")) << each;
    if (!wanted.ok()) continue;
    Json relative = Json::object();
    for (int64_t position = 0; position < (*from)->rank_count(); ++position) {
      const int32_t rank = (*from)->rank_at(position);
      const Box own = *held(**from, shape, rank);
      const Box common = intersect(own, *wanted);
      if (!is_source(**from, rank) || box_is_empty(common)) continue;
      Json& part = relative[fmt::to_string(rank)] = Json::array();
      for (size_t d = 0; d < shape.size(); ++d) {
        const int64_t begin = common.offsets[d] - own.offsets[d];
        part.push_back({begin, begin + common.sizes[d]});
      }
      if (each.contains("global")) {
        EXPECT_EQ(common, area(each["global"][fmt::to_string(rank)])) << each;
      }
    }
    EXPECT_EQ(relative, each["relative"]) << each;
  }
}

}  // namespace
}  // namespace shardwright::plan::test
