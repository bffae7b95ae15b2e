// SPDX-License-Identifier: Apache-2.0
//
// Indexes that are written decode to what they were made of.
#include "core/format/torch_dcp/index_writer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/format/torch_dcp/index_check.h"
#include "core/format/torch_dcp/index_classes.h"
#include "core/format/torch_dcp/rank_local_names.h"

namespace shardwright::format::torch_dcp {
namespace {

struct Sample {
  plan::Catalog catalog;
  std::vector<ItemPlace> chunks;
  std::vector<ItemPlace> objects;
  std::vector<std::string> files = {"__0_0.distcp", "__1_0.distcp"};
  std::map<std::string, std::string> metadata;

  void add_tensor(plan::CatalogBuilder::Tensor tensor, std::vector<Box> boxes) {
    std::vector<plan::CatalogBuilder::Chunk> of_tensor;
    for (Box& box : boxes) {
      of_tensor.push_back({std::move(box), 0});
      chunks.push_back({static_cast<uint32_t>(chunks.size() % 2), 0, chunks.size() * 5000, 1577});
    }
    ASSERT_TRUE(plan::CatalogBuilder(&catalog).add_tensor(tensor, of_tensor).ok());
  }
  void add_object(std::string_view name, std::string_view path, int32_t rank = -1) {
    plan::ObjectRecord record;
    record.rank = rank;
    if (rank >= 0) record.kind = EntryKind::kRankLocal;
    ASSERT_TRUE(
        plan::CatalogBuilder(&catalog).add_object(record, name, path, "application/json").ok());
    objects.push_back({1, 0, (uint64_t{1} << 40) + objects.size() * 2000, 1261});
  }
  Result<EncodedIndex> encode() const {
    return encode_index({catalog, chunks, objects, files, "/run/ckpt", "id", metadata});
  }
  DcpIndex decode() const {
    const auto encoded = encode();
    EXPECT_TRUE(encoded.ok()) << encoded.status().to_string();
    auto index = decode_index(std::as_bytes(std::span(encoded->bytes)), ".metadata");
    EXPECT_TRUE(index.ok()) << index.status().to_string();
    return std::move(*index);
  }
};

const std::vector<int64_t> kRows = {8, 4};
std::vector<Box> rows() {
  return {{{0, 0}, {2, 4}}, {{2, 0}, {3, 4}}, {{5, 0}, {3, 4}}};
}

TEST(IndexWriter, WritesWhatIsReadAgain) {
  Sample sample;
  sample.add_tensor(
      {"model.w", R"(["model","w"])", DType::kBfloat16, EntryKind::kSharded, -1, kRows}, rows());
  const std::vector<int64_t> none;
  sample.add_tensor({"s", "", DType::kFloat64, EntryKind::kReplicated, -1, none}, {{{}, {}}});
  sample.add_object("opt.0.lr", R"(["opt",[0],"lr"])");
  sample.metadata["note"] = "seven";
  const DcpIndex index = sample.decode();
  ASSERT_EQ(index.tensors.size(), 2U);
  EXPECT_EQ(index.tensors[0].path, R"(["model","w"])");
  EXPECT_EQ(index.tensors[1].path, R"(["s"])");
  EXPECT_EQ(index.tensors[0].chunk_count, 3U);
  EXPECT_EQ(index.offsets(index.tensors[0], 2)[0], 5);
  EXPECT_EQ(index.sizes(index.tensors[0], 1)[0], 3);
  EXPECT_EQ(index.places[2].offset, 10'000U);
  EXPECT_EQ(index.files[index.places[3].file], "__1_0.distcp");
  ASSERT_EQ(index.objects.size(), 1U);
  EXPECT_EQ(index.objects[0].path, R"(["opt",[0],"lr"])");
  EXPECT_EQ(index.objects[0].place.offset, uint64_t{1} << 40);
  EXPECT_EQ(index.facts.at("checkpoint_id"), "/run/ckpt");
  EXPECT_EQ(index.facts.at("note"), "seven");
  EXPECT_EQ(index.facts.at("version"), "1.0.0");
}

TEST(IndexWriter, ManyChunksComeInBatches) {
  Sample sample;
  const std::vector<int64_t> shape = {2500, 3};
  std::vector<Box> boxes;
  for (int64_t i = 0; i < 2500; ++i) boxes.push_back({{i, 0}, {1, 3}});
  sample.add_tensor({"w", "", DType::kInt8, EntryKind::kSharded, -1, shape}, boxes);
  const DcpIndex index = sample.decode();
  ASSERT_EQ(index.tensors[0].chunk_count, 2500U);
  for (uint64_t i = 0; i < 2500; ++i) {
    ASSERT_EQ(index.offsets(index.tensors[0], i)[0], static_cast<int64_t>(i));
    ASSERT_EQ(index.places[i].offset, i * 5000);
  }
}

TEST(IndexWriter, CountsPairsAsTorchDoes) {
  Sample sample;
  const std::vector<int64_t> shape = {2, 8};
  sample.add_tensor({"q", "", DType::kFloat4E2m1fn, EntryKind::kReplicated, -1, shape},
                    {{{0, 0}, {2, 8}}});
  const DcpIndex index = sample.decode();
  EXPECT_EQ(index.tensors[0].shape, Dims({2, 8}));
  EXPECT_EQ(index.tensors[0].dtype, DType::kFloat4E2m1fn);
}

TEST(IndexWriter, EntriesOfRanksHaveKeysOfTheirOwn) {
  Sample sample;
  const std::vector<int64_t> shape = {4};
  for (const int32_t rank : {0, 1}) {
    sample.add_tensor(
        {"rng.state", R"(["rng","state"])", DType::kUint8, EntryKind::kRankLocal, rank, shape},
        {{{0}, {4}}});
  }
  sample.add_tensor({"a.rank-1", "", DType::kUint8, EntryKind::kReplicated, -1, shape},
                    {{{0}, {4}}});
  sample.add_object("loader", "", 1);
  DcpIndex index = sample.decode();
  EXPECT_EQ(index.tensors[1].name, "rng.state.rank-1");
  EXPECT_EQ(index.tensors[1].path, R"(["rng","state.rank-1"])");
  name_rank_local(&index);
  EXPECT_EQ(index.tensors[1].name, "rng.state");
  EXPECT_EQ(index.tensors[1].rank, 1);
  EXPECT_EQ(index.tensors[1].path, R"(["rng","state"])");
  EXPECT_EQ(index.tensors[2].name, "a.rank-1");
  EXPECT_EQ(index.tensors[2].rank, -1);
  EXPECT_EQ(index.objects[0].name, "loader");
  EXPECT_EQ(index.objects[0].rank, 1);
}

TEST(IndexWriter, ReportsPathsThatTorchSaysInAnotherWayOnce) {
  Sample sample;
  for (const char* name : {"opt.0", "opt.1"})
    sample.add_object(name, std::string(R"(["opt",)") + name[4] + "]");
  const auto encoded = sample.encode();
  ASSERT_EQ(encoded->notes.size(), 1U);
  EXPECT_NE(encoded->notes[0].find("2 paths"), std::string::npos) << encoded->notes[0];
  EXPECT_EQ(sample.decode().objects[0].path, R"(["opt","0"])");
}

TEST(IndexWriter, RefusesKeysThatWouldMeanTwoThings) {
  const std::vector<int64_t> shape = {4};
  Sample sample;
  sample.add_tensor({"rng", "", DType::kUint8, EntryKind::kRankLocal, 3, shape}, {{{0}, {4}}});
  EXPECT_TRUE(check_indexable(sample.catalog).ok());
  sample.add_object("rng.rank-3", "");
  EXPECT_EQ(check_indexable(sample.catalog).code(), StatusCode::kInvalidArgument);
  Sample own;
  own.add_object(kRankLocalKey, "");
  EXPECT_EQ(check_indexable(own.catalog).code(), StatusCode::kInvalidArgument);
}

TEST(RankLocalNames, AreSplitAsTheyAreMade) {
  const std::string made = rank_local_key("a.rank-1", 12);
  const auto split = split_rank_local_key(made);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->name, "a.rank-1");
  EXPECT_EQ(split->rank, 12);
  for (const char* key : {"a", "a.rank-", "a.rank--1", "a.rank-01", "a.rank-1x", "a.rank-99999999"})
    EXPECT_FALSE(split_rank_local_key(key).has_value()) << key;
}

Sample large_sample() {
  Sample sample;
  const std::vector<int64_t> shape = {2500, 3};
  std::vector<Box> boxes;
  for (int64_t row = 0; row < shape[0]; ++row) boxes.push_back({{row, 0}, {1, 3}});
  sample.add_tensor({"w", "", DType::kFloat32, EntryKind::kSharded, -1, shape}, boxes);
  const std::vector<int64_t> none;
  sample.add_tensor({"s", "", DType::kFloat64, EntryKind::kReplicated, -1, none}, {{{}, {}}});
  sample.add_object("step", "");
  return sample;
}

TEST(IndexCheck, NoItemOfALargeIndexIsMissing) {
  const Sample sample = large_sample();
  const IndexContents contents{sample.catalog, sample.chunks, sample.objects, sample.files,
                               "/run/ckpt",    "id",          sample.metadata};
  const auto encoded = encode_index(contents);
  ASSERT_TRUE(encoded.ok());
  const IndexCheckRules by_opcodes{.most_decoded_bytes = 0};
  for (const IndexCheckRules& rules : {IndexCheckRules{}, by_opcodes})
    EXPECT_TRUE(check_encoded(encoded->bytes, contents, rules).ok());
  // One item less, a byte less, a byte more.
  Sample less = large_sample();
  less.chunks.back().file = ItemPlace::kNowhere;
  const auto other = encode_index(
      {less.catalog, less.chunks, less.objects, less.files, "/run/ckpt", "id", less.metadata});
  ASSERT_TRUE(other.ok());
  const std::string whole = encoded->bytes;
  for (const std::string& bytes : {other->bytes, whole.substr(0, whole.size() - 1), whole + "."}) {
    for (const IndexCheckRules& rules : {IndexCheckRules{}, by_opcodes})
      EXPECT_EQ(check_encoded(bytes, contents, rules).code(), StatusCode::kInternal);
  }
}

TEST(IndexCheck, RefusesWhatNoReaderTakesAndNamesBothNumbers) {
  const Sample sample = large_sample();
  const IndexContents contents{sample.catalog, sample.chunks, sample.objects, sample.files,
                               "/run/ckpt",    "id",          sample.metadata};
  const auto encoded = encode_index(contents);
  ASSERT_TRUE(encoded.ok());
  const uint64_t size = encoded->bytes.size();
  EXPECT_TRUE(check_encoded(encoded->bytes, contents, {.most_bytes = size}).ok());
  const Status status = check_encoded(encoded->bytes, contents, {.most_bytes = size - 1});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find(fmt::format("has {} bytes, and readers take {}", size, size - 1)),
            std::string_view::npos)
      << status.to_string();
  const Status values =
      check_encoded(encoded->bytes, contents, {.most_values = 2500, .most_decoded_bytes = 0});
  EXPECT_EQ(values.code(), StatusCode::kResourceExhausted) << values.to_string();
}

// What is counted here is at least what a reader counts.
TEST(IndexCheck, CountsAsManyValuesAsReadersMake) {
  const Sample sample = large_sample();
  const auto encoded = sample.encode();
  ASSERT_TRUE(encoded.ok());
  const IndexContents contents{sample.catalog, sample.chunks, sample.objects, sample.files,
                               "/run/ckpt",    "id",          sample.metadata};
  archive::PickleOptions options;
  options.vocabulary = index_vocabulary();
  const auto input = std::as_bytes(std::span(encoded->bytes));
  options.limits.nodes = 1;
  while (!archive::read_pickle(input, options).ok()) options.limits.nodes *= 2;
  const IndexCheckRules rules{.most_values = options.limits.nodes / 2, .most_decoded_bytes = 0};
  EXPECT_EQ(check_encoded(encoded->bytes, contents, rules).code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
