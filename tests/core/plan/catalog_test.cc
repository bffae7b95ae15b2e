// SPDX-License-Identifier: Apache-2.0
//
// Columns, boxes, and what check_catalog refuses.
#include "core/plan/catalog.h"

#include <functional>

#include "core/base/limits.h"
#include "tests/core/plan/world.h"

namespace shardwright::plan::test {
namespace {

CatalogBuilder::Tensor tensor(std::string_view name, DType dtype, std::span<const int64_t> shape) {
  CatalogBuilder::Tensor added;
  added.name = name;
  added.dtype = dtype;
  added.kind = EntryKind::kSharded;
  added.shape = shape;
  return added;
}

// Two tensors (rows; a 3-d grid with further pairs) and two objects.
Catalog small_catalog() {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  const Dims rows{4, 3};
  const Dims grid{2, 2, 2};
  EXPECT_TRUE(builder
                  .add_tensor(tensor("rows", DType::kFloat32, rows),
                              std::vector<CatalogBuilder::Chunk>{{box({0, 0}, {1, 3}), 0},
                                                                 {box({1, 0}, {3, 3}), 1}})
                  .ok());
  EXPECT_TRUE(builder
                  .add_tensor(tensor("grid", DType::kInt8, grid),
                              std::vector<CatalogBuilder::Chunk>{{box({0, 0, 0}, {2, 2, 1}), 0},
                                                                 {box({0, 0, 1}, {1, 2, 1}), 0},
                                                                 {box({1, 0, 1}, {1, 1, 1}), 1},
                                                                 {box({1, 1, 1}, {1, 1, 1}), 1}})
                  .ok());
  ObjectRecord object;
  object.kind = EntryKind::kReplicated;
  object.size_bytes = 5;
  EXPECT_TRUE(builder.add_object(object, "step", "", "application/json").ok());
  object.kind = EntryKind::kRankLocal;
  object.rank = 1;
  EXPECT_TRUE(builder.add_object(object, "rng", "[\"rng\"]", "application/json").ok());
  return catalog;
}

TEST(Catalog, GivesBackWhatWasAdded) {
  const Catalog catalog = small_catalog();
  ASSERT_TRUE(check_catalog(catalog).ok()) << check_catalog(catalog).to_string();
  EXPECT_EQ(catalog.tensor_name(1), "grid");
  EXPECT_EQ(catalog.tensors[0].split_mask, 0b01U);
  EXPECT_EQ(catalog.tensors[1].split_mask, 0b111U);
  EXPECT_EQ(catalog.more.size(), 4U);
  EXPECT_EQ(catalog.chunk_box(1), box({1, 0}, {3, 3}));
  EXPECT_EQ(catalog.chunk_box(3), box({0, 0, 1}, {1, 2, 1}));
  EXPECT_EQ(catalog.chunk_bytes(1), 36U);
  EXPECT_EQ(box_element_count(catalog.chunk_box(2)), 4);
  EXPECT_EQ(catalog.tensor_bytes(0), 48U);
  EXPECT_EQ(catalog.object_name(1), "rng");
  EXPECT_EQ(catalog.texts.at(catalog.objects[1].path), "[\"rng\"]");
  EXPECT_EQ(catalog.objects[0].content_type, catalog.objects[1].content_type);
}

TEST(Catalog, TextsKeepNulAndEmptyIsZero) {
  TextTable texts;
  EXPECT_EQ(texts.append(""), 0U);
  const TextId id = texts.append(std::string_view("a\0b", 3));
  EXPECT_EQ(texts.at(id), std::string_view("a\0b", 3));
  EXPECT_EQ(texts.append("a"), id + 1);
  EXPECT_EQ(texts.at(0), "");
}

TEST(Catalog, SubByteChunksRoundUp) {
  Catalog catalog;
  const Dims shape{3};
  ASSERT_TRUE(CatalogBuilder(&catalog)
                  .add_tensor(tensor("w", DType::kInt4, shape),
                              std::vector<CatalogBuilder::Chunk>{{box({0}, {3}), 0}})
                  .ok());
  EXPECT_EQ(catalog.chunk_bytes(0), 2U);
}

TEST(CatalogBuilder, LeavesTheCatalogAloneOnFailure) {
  const std::string long_name(kMaxNameBytes + 1, 'n');
  const Dims shape{4};
  const Dims overflow{int64_t{1} << 62, 4};
  const Dims many(65, 1);
  const std::vector<CatalogBuilder::Chunk> outside{{box({2}, {3}), 0}};
  auto owned = tensor("x", DType::kInt8, shape);
  owned.rank = 3;
  auto unsettled = tensor("x", DType::kInt8, shape);
  unsettled.kind = EntryKind::kAuto;
  struct Case {
    CatalogBuilder::Tensor tensor;
    std::vector<CatalogBuilder::Chunk> chunks;
    StatusCode code;
  };
  const std::vector<Case> cases = {
      {tensor("x", DType::kInt8, shape), outside, StatusCode::kOutOfRange},
      {tensor("x", DType::kInvalid, shape), {}, StatusCode::kInvalidArgument},
      {tensor("x", DType::kInt8, overflow), {}, StatusCode::kInvalidArgument},
      {tensor("x", DType::kInt8, many), {}, StatusCode::kInvalidArgument},
      {tensor("\xFF", DType::kInt8, shape), {}, StatusCode::kInvalidArgument},
      {tensor(long_name, DType::kInt8, shape), {}, StatusCode::kInvalidArgument},
      {owned, {}, StatusCode::kInvalidArgument},
      {unsettled, {}, StatusCode::kInvalidArgument},
  };
  for (const Case& each : cases) {
    Catalog catalog;
    EXPECT_EQ(CatalogBuilder(&catalog).add_tensor(each.tensor, each.chunks).code(), each.code);
    EXPECT_TRUE(catalog.tensors.empty());
    EXPECT_TRUE(catalog.shapes.empty());
    EXPECT_EQ(catalog.texts.size(), 1U);
  }
}

TEST(CatalogBuilder, RefusesObjectsThatCannotBe) {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  ObjectRecord record;
  record.kind = EntryKind::kSharded;
  EXPECT_FAILURE(builder.add_object(record, "o", "", "t"), StatusCode::kInvalidArgument, "'o'",
                 "sharded");
  record.kind = EntryKind::kReplicated;
  EXPECT_FAILURE(builder.add_object(record, "o", "", "\xC0"), StatusCode::kInvalidArgument,
                 "content type");
  record.size_bytes = kMaxObjectBytes + 1;
  EXPECT_FAILURE(builder.add_object(record, "o", "", "t"), StatusCode::kResourceExhausted, "'o'");
  EXPECT_TRUE(catalog.objects.empty());
}

TEST(CheckCatalog, NamesWhatIsDamaged) {
  struct Case {
    std::string_view text;
    std::function<void(Catalog&)> damage;
  };
  const std::vector<Case> cases = {
      {"text 0 is not empty", [](Catalog& c) { c.texts = TextTable::from_parts({'a'}, {1}); }},
      {"text 0 is not empty", [](Catalog& c) { c.texts = TextTable::from_parts({}, {}); }},
      {"before it begins",
       [](Catalog& c) { c.texts = TextTable::from_parts({'a', 'b'}, {0, 2, 1}); }},
      {"the texts end", [](Catalog& c) { c.texts = TextTable::from_parts({'a', 'b'}, {0, 1}); }},
      {"tensor 0 uses text 99", [](Catalog& c) { c.tensors[0].name = 99; }},
      {"object 1 uses text 99", [](Catalog& c) { c.objects[1].content_type = 99; }},
      {"dtype number 77", [](Catalog& c) { c.tensors[1].dtype = static_cast<DType>(77); }},
      {"kind 0", [](Catalog& c) { c.tensors[0].kind = EntryKind::kAuto; }},
      {"kind 9", [](Catalog& c) { c.objects[0].kind = static_cast<EntryKind>(9); }},
      {"owner rank 2", [](Catalog& c) { c.tensors[0].rank = 2; }},
      {"owner rank -1", [](Catalog& c) { c.objects[1].rank = -1; }},
      {"65 dimensions", [](Catalog& c) { c.tensors[0].dimension_count = 65; }},
      {"does not begin where", [](Catalog& c) { c.tensors[1].shape_begin = 1; }},
      {"does not begin where", [](Catalog& c) { c.tensors[1].chunk_begin = 1; }},
      {"does not begin where", [](Catalog& c) { c.tensors[1].more_begin = 1; }},
      {"the shape of tensor 1", [](Catalog& c) { c.shapes.pop_back(); }},
      {"5 of 6 extents", [](Catalog& c) { c.shapes.push_back(1); }},
      {"split mask 0x4", [](Catalog& c) { c.tensors[0].split_mask = 4; }},
      {"the boxes of tensor 1", [](Catalog& c) { c.tensors[1].chunk_count = uint64_t{1} << 63; }},
      {"cannot be counted", [](Catalog& c) { c.tensors[1].chunk_count = ~uint64_t{0}; }},
      {"6 of 7 boxes", [](Catalog& c) { c.boxes.push_back({}); }},
      {"the further pairs of tensor 1", [](Catalog& c) { c.more.pop_back(); }},
      {"4 of 5 further pairs", [](Catalog& c) { c.more.push_back({}); }},
      {"belongs to tensor 0 but names tensor 1", [](Catalog& c) { c.boxes[1].tensor = 1; }},
      {"not split", [](Catalog& c) { c.boxes[0].size1 = 3; }},
      {"4 elements from 1 of 4", [](Catalog& c) { c.boxes[1].size0 = 4; }},
      {"-1 elements", [](Catalog& c) { c.boxes[1].size0 = -1; }},
      {"from -1 of 4", [](Catalog& c) { c.boxes[1].offset0 = -1; }},
      {"in dimension 2", [](Catalog& c) { c.more[0].offset = 9; }},
      {"tensor 0: ", [](Catalog& c) { c.shapes[0] = -4; }},
      {"tensor 0: ", [](Catalog& c) { c.shapes[0] = int64_t{1} << 62; }},
      {"object 1 has", [](Catalog& c) { c.objects[1].size_bytes = kMaxObjectBytes + 1; }},
      {"object 0 is sharded", [](Catalog& c) { c.objects[0].kind = EntryKind::kSharded; }},
      {"both named 'rows'", [](Catalog& c) { c.tensors[1].name = c.tensors[0].name; }},
      {"both named 'step'", [](Catalog& c) { c.objects[1] = c.objects[0]; }},
      {"a tensor and an object", [](Catalog& c) { c.objects[0].name = c.tensors[0].name; }},
  };
  for (const Case& each : cases) {
    Catalog catalog = small_catalog();
    each.damage(catalog);
    EXPECT_FAILURE(check_catalog(catalog), StatusCode::kDataLoss, each.text);
  }
}

// Two grids of one split each: rows of 4, 4 and 2 on ranks 0 to 2, and of 5 and 5 on ranks 7 and 3.
Catalog grid_catalog() {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  const Dims shape{10, 2};
  const auto add = [&](std::string_view name, const std::vector<CatalogBuilder::Chunk>& chunks) {
    const Status added =
        builder.add_tensor({name, "", DType::kInt8, EntryKind::kSharded, -1, shape}, chunks);
    EXPECT_TRUE(added.ok()) << added.to_string();
  };
  add("a", {{Box{{0, 0}, {4, 2}}, 0}, {Box{{4, 0}, {4, 2}}, 1}, {Box{{8, 0}, {2, 2}}, 2}});
  add("b", {{Box{{0, 0}, {5, 2}}, 7}, {Box{{5, 0}, {5, 2}}, 3}});
  find_grids(&catalog);
  return catalog;
}

TEST(CheckCatalog, FindsGridsThatLie) {
  ASSERT_TRUE(check_catalog(grid_catalog()).ok());
  struct Case {
    std::string text;
    std::function<void(Catalog&)> damage;
  };
  const std::vector<Case> cases = {
      {"uses rank map 2 of 2", [](Catalog& c) { c.tensors[0].rank_map = 2; }},
      {"uses split 9 of 2", [](Catalog& c) { c.grids[1] = 9; }},
      {"has 3 chunks, its splits make 2 and its rank map 3", [](Catalog& c) { c.grids[0] = 1; }},
      {"has 3 chunks, its splits make 3 and its rank map 2",
       [](Catalog& c) { c.tensors[0].rank_map = 1; }},
      {"has 4 chunks",
       [](Catalog& c) {
         c.tensors[0].chunk_count = 4;
         c.tensors[1].chunk_begin = 4;
       }},
      {"cuts 10 elements of 11 into 3 parts", [](Catalog& c) { c.shapes[0] = 11; }},
      {"cuts 10 elements of 2 into 3 parts", [](Catalog& c) { c.tensors[0].split_mask = 2; }},
      {"the splits of tensor 1", [](Catalog& c) { c.grids.pop_back(); }},
      {"2 of 3 splits", [](Catalog& c) { c.grids.push_back(0); }},
      {"does not begin where", [](Catalog& c) { c.tensors[1].grid_begin = 0; }},
      {"does not begin where", [](Catalog& c) { c.tensors[1].chunk_begin = 2; }},
      {"into 1 parts", [](Catalog& c) { c.splits[0] = DimSplit::of_chunks(10, 1); }},
  };
  for (const Case& each : cases) {
    Catalog catalog = grid_catalog();
    each.damage(catalog);
    EXPECT_FAILURE(check_catalog(catalog), StatusCode::kDataLoss, each.text);
  }
}

TEST(CheckCatalog, RefusesNamesThatAreNotUtf8) {
  Catalog catalog = small_catalog();
  std::vector<char> blob(catalog.texts.blob().begin(), catalog.texts.blob().end());
  blob[0] = static_cast<char>(0xC0);
  catalog.texts = TextTable::from_parts(std::move(blob),
                                        {catalog.texts.ends().begin(), catalog.texts.ends().end()});
  EXPECT_FAILURE(check_catalog(catalog), StatusCode::kDataLoss, "tensor 0", "UTF-8");
}

// Tensors with one path of 1000 bytes.
Catalog with_shared_path(size_t tensors) {
  Catalog catalog;
  const Dims shape{1};
  const std::string path(1000, 'p');
  for (size_t t = 0; t < tensors; ++t) {
    const std::string name = std::to_string(t);
    CatalogBuilder::Tensor added = tensor(name, DType::kInt8, shape);
    if (t == 0) added.path = path;
    EXPECT_TRUE(CatalogBuilder(&catalog).add_tensor(added, {}).ok());
    catalog.tensors[t].path = catalog.tensors[0].path;
  }
  return catalog;
}

// Objects of which every second has another long content type than the one before.
Catalog with_types(size_t objects, bool alternating) {
  Catalog catalog;
  const std::string types[] = {std::string(1000, 'a'), std::string(1000, 'b')};
  ObjectRecord record;
  record.kind = EntryKind::kReplicated;
  for (size_t i = 0; i < objects; ++i) {
    const std::string& type = types[alternating ? i % 2 : 0];
    EXPECT_TRUE(CatalogBuilder(&catalog).add_object(record, std::to_string(i), "", type).ok());
  }
  return catalog;
}

// A plan of 1 MiB must not need 150 to be read.
TEST(CheckCatalog, BoundsTheBytesOfTextsThatRecordsShare) {
  for (const size_t tensors : {1, 4}) EXPECT_TRUE(check_catalog(with_shared_path(tensors)).ok());
  for (const size_t tensors : {5, 150}) {
    EXPECT_FAILURE(check_catalog(with_shared_path(tensors)), StatusCode::kDataLoss, "up to tensor",
                   "more than 4 times");
  }
  EXPECT_TRUE(check_catalog(with_types(150, /*alternating=*/false)).ok());
  EXPECT_TRUE(check_catalog(with_types(150, /*alternating=*/true)).ok());
  Catalog shared = with_types(150, /*alternating=*/false);
  const TextId other = shared.texts.append(std::string(1000, 'b'));
  for (size_t i = 1; i < shared.objects.size(); i += 2) shared.objects[i].content_type = other;
  EXPECT_FAILURE(check_catalog(shared), StatusCode::kDataLoss, "object ", "more than 4 times");
}

TEST(CheckCatalog, TakesOneNameForEachOwner) {
  Catalog catalog;
  CatalogBuilder builder(&catalog);
  ObjectRecord object;
  object.kind = EntryKind::kRankLocal;
  for (object.rank = 0; object.rank < 3; ++object.rank) {
    ASSERT_TRUE(builder.add_object(object, "rng", "", "application/json").ok());
  }
  EXPECT_TRUE(check_catalog(catalog).ok());
  catalog.objects[2].rank = 1;
  EXPECT_FAILURE(check_catalog(catalog), StatusCode::kDataLoss,
                 "objects 1 and 2 are both named 'rng'");
}

TEST(CheckCatalog, ListsAllFindingsUpToTheLimit) {
  Catalog catalog = small_catalog();
  for (ChunkRecord& chunk : catalog.boxes) chunk.size0 = 100;
  EXPECT_EQ(catalog_findings(catalog, 100).size(), 6U);
  EXPECT_EQ(catalog_findings(catalog, 4).size(), 4U);
  EXPECT_TRUE(catalog_findings(small_catalog(), 100).empty());
}

}  // namespace
}  // namespace shardwright::plan::test
