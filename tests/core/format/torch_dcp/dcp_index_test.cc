// SPDX-License-Identifier: Apache-2.0
//
// Indexes one by one: what is read, and every way in which one can be wrong.
#include "core/format/torch_dcp/dcp_index.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/torch_dcp/index_classes.h"
#include "core/format/torch_dcp/index_without.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

// A tensor w of rows that lie in chunks, as torch writes it.
struct Sample {
  std::string dtype = "float32";
  std::vector<int64_t> shape = {4, 2};
  std::vector<std::vector<int64_t>> chunks = {{0, 0, 2, 2}, {2, 0, 2, 2}};  // offsets, sizes
  std::vector<int64_t> hints = {0, 1};
  std::vector<size_t> stored = {0, 1};  // chunks that have a place, in that order
  std::string path = "__0_0.distcp";
  std::string path_field = "relative_path";
  int64_t begin = 0;
  bool has_object = false;
  std::vector<std::string> transforms = {};
  size_t transform_kinds = 0;  // places of the first chunk, each of another transform
  std::vector<std::string> planner_path = {"w"};
  bool dict_is_called = false;  // as subclasses of dict write themselves
  bool has_extras = false;      // what Megatron sets on the index
};

void write_size(PickleWriter* writer, std::span<const int64_t> extents) {
  writer->global("torch", "Size").mark();
  for (const int64_t extent : extents) writer->integer(extent);
  writer->tuple_to_mark().tuple(1).reduce();
}

PickleWriter& write_instance(PickleWriter* writer, std::string_view name) {
  return writer->global(kModule, name).empty_tuple().new_object();
}

void write_tensor(PickleWriter* writer, const Sample& sample) {
  write_instance(writer, "TensorStorageMetadata").empty_dict().mark();
  writer->text("properties");
  write_instance(writer, "TensorProperties").mark();
  writer->global("torch", sample.dtype).none().boolean(false).none().boolean(false);
  writer->tuple_to_mark().build().text("size");
  write_size(writer, sample.shape);
  writer->text("chunks").empty_list().mark();
  for (const auto& chunk : sample.chunks) {
    const std::span<const int64_t> extents(chunk);
    write_instance(writer, "ChunkStorageMetadata").empty_dict().mark().text("offsets");
    write_size(writer, extents.first(extents.size() / 2));
    writer->text("sizes");
    write_size(writer, extents.subspan(extents.size() / 2));
    writer->set_items_to_mark().build();
  }
  writer->appends_to_mark().set_items_to_mark().build();
}

void write_place(PickleWriter* writer, const Sample& sample, size_t chunk) {
  const std::span<const int64_t> extents(sample.chunks[chunk]);
  write_instance(writer, "MetadataIndex").empty_dict().mark();
  writer->text("fqn").text("w").text("index").integer(sample.hints[chunk]).text("offset");
  write_size(writer, extents.first(extents.size() / 2));
  writer->set_items_to_mark().build();
  writer->global("torch.distributed.checkpoint.filesystem", "_StorageInfo").empty_tuple();
  writer->new_object().empty_dict().mark().text(sample.path_field).text(sample.path);
  writer->text("offset").integer(sample.begin + static_cast<int64_t>(chunk) * 1000);
  writer->text("length").integer(1000);
  if (!sample.transforms.empty()) {
    writer->text("transform_descriptors").empty_list().mark();
    for (const std::string& transform : sample.transforms) writer->text(transform);
    writer->appends_to_mark();
  }
  writer->set_items_to_mark().build();
}

std::string pickle_of(const Sample& sample) {
  PickleWriter writer(PickleProtocol::k4);
  write_instance(&writer, "Metadata").empty_dict().mark();
  writer.text("state_dict_metadata");
  if (sample.dict_is_called)
    writer.global("builtins", "dict").empty_tuple().reduce();
  else
    writer.empty_dict();
  writer.text("w");
  write_tensor(&writer, sample);
  writer.set_item();
  if (sample.has_object) {
    writer.text("step");
    write_instance(&writer, "BytesStorageMetadata").set_item();
  }
  writer.text("planner_data").empty_dict().text("w").mark();
  for (const std::string& part : sample.planner_path) writer.text(part);
  writer.tuple_to_mark().set_item();
  writer.text("storage_data").empty_dict().mark();
  for (size_t i = 0; i < sample.transform_kinds; ++i) {
    Sample other = sample;
    other.transforms = {std::to_string(i)};
    write_place(&writer, other, 0);
  }
  for (const size_t chunk : sample.stored) write_place(&writer, sample, chunk);
  writer.set_items_to_mark();
  if (sample.has_extras) {
    writer.text("mcore_data").empty_dict().text("w").empty_dict().text("shape");
    write_size(&writer, sample.shape);
    writer.set_item().set_item().text("all_local_plans").empty_list();
    writer.global("torch.distributed.checkpoint.planner", "SavePlan").empty_tuple().new_object();
    writer.empty_dict().text("index").empty_list();
    write_instance(&writer, "MetadataIndex").empty_dict().text("fqn").text("w").set_item().build();
    writer.append().set_item().build().append();
  }
  writer.set_items_to_mark().build();
  return std::move(writer).finish();
}

Result<DcpIndex> decode(std::string_view bytes) {
  return decode_index(std::as_bytes(std::span(bytes)), ".metadata");
}

TEST(DcpIndex, FindsThePlaceOfEachChunk) {
  const auto index = decode(pickle_of({}));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  ASSERT_EQ(index->tensors.size(), 1U);
  EXPECT_EQ(index->tensors[0].name, "w");
  EXPECT_EQ(index->tensors[0].path, "[\"w\"]");
  EXPECT_EQ(index->tensors[0].dtype, DType::kFloat32);
  ASSERT_EQ(index->places.size(), 2U);
  EXPECT_EQ(index->places[1].offset, 1000U);
  EXPECT_EQ(index->places[1].size_bytes, 1000U);
  EXPECT_EQ(index->files, std::vector<std::string>{"__0_0.distcp"});
}

TEST(DcpIndex, TakesACallOfDictWithoutArgumentsForADict) {
  Sample sample;
  sample.dict_is_called = true;
  const auto index = decode(pickle_of(sample));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  ASSERT_EQ(index->tensors.size(), 1U);
  EXPECT_EQ(index->tensors[0].name, "w");
  std::string bytes = pickle_of({});
  bytes.insert(2, "cbuiltins\ndict\nN\x85R0");  // dict(None)
  EXPECT_FAILURE(decode(bytes).status(), StatusCode::kPermissionDenied, "builtins.dict");
}

// Plans of ranks describe what is no more.
TEST(DcpIndex, WithoutAnEntryKeepsAllButThePlansOfRanks) {
  Sample sample;
  sample.has_extras = true;
  sample.has_object = true;
  const std::string before = pickle_of(sample);
  const auto without = index_without(std::as_bytes(std::span(before)),
                                     [](std::string_view name) { return name == "step"; });
  ASSERT_TRUE(without.ok()) << without.status().to_string();
  ASSERT_EQ(without->entries.size(), 1U);
  EXPECT_EQ(without->entries[0].name, "step");
  EXPECT_TRUE(without->files.empty());
  const auto index = decode(without->bytes);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_TRUE(index->objects.empty());
  EXPECT_EQ(index->places.size(), 2U);
  std::map<std::string, std::string> facts = decode(before)->facts;
  EXPECT_EQ(facts.erase("all_local_plans"), 1U);
  EXPECT_EQ(index->facts, facts);
}

TEST(DcpIndex, KeepsWhatOthersSetOnIt) {
  Sample sample;
  sample.has_extras = true;
  const std::string bytes = pickle_of(sample);
  const auto index = decode(bytes);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->facts.at("mcore_data"), R"({"w":{"shape":{"$tuple":[4,2]}}})");
  EXPECT_EQ(index->facts.at("all_local_plans"), "a list of 1");
  const auto attribute = [&](std::string_view name) {
    return *index_attribute(std::as_bytes(std::span(bytes)), ".metadata", name);
  };
  EXPECT_FALSE(attribute("nothing").has_value());
  const std::optional<std::string> plans = attribute("all_local_plans");
  ASSERT_TRUE(plans.has_value());
  archive::PickleOptions options;
  options.vocabulary = index_vocabulary();
  options.calls = archive::PickleCalls::kKnownOnly;
  const auto data = archive::read_pickle(std::as_bytes(std::span(*plans)), options);
  ASSERT_TRUE(data.ok()) << data.status().to_string();
  archive::PickleCursor parts = data->parts(data->root());
  archive::PickleRef plan;
  ASSERT_TRUE(parts.next(&plan));
  EXPECT_EQ(index_vocabulary()[static_cast<size_t>(data->known(plan))].name, "SavePlan");
  archive::PickleCursor state = data->pairs(data->state(plan));
  archive::PickleRef key, items, item;
  ASSERT_TRUE(state.next(&key) && state.next(&items));
  archive::PickleCursor indexes = data->parts(items);
  ASSERT_TRUE(indexes.next(&item));
  EXPECT_EQ(data->text(data->fields(item)[0]), "w");
}

TEST(DcpIndex, TrustsNoHint) {
  for (const std::vector<int64_t>& hints :
       {std::vector<int64_t>{1, 0}, {-1, -1}, {7, 7}, {INT64_MAX, INT64_MIN}}) {
    for (const std::vector<size_t>& order : {std::vector<size_t>{0, 1}, {1, 0}}) {
      Sample sample;
      sample.hints = hints;
      sample.stored = order;
      const auto index = decode(pickle_of(sample));
      ASSERT_TRUE(index.ok()) << index.status().to_string();
      EXPECT_EQ(index->places[0].offset, 0U);
      EXPECT_EQ(index->places[1].offset, 1000U);
    }
  }
}

TEST(DcpIndex, LeavesItemsWithoutPlaceOpen) {
  Sample sample;
  sample.stored = {1};
  const auto index = decode(pickle_of(sample));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->places[0].file, ItemPlace::kNowhere);
}

TEST(DcpIndex, CountsElementsOfPackedFloat4) {
  Sample sample;
  sample.dtype = "float4_e2m1fn_x2";
  const auto index = decode(pickle_of(sample));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->tensors[0].shape, (Dims{4, 4}));
  EXPECT_EQ(index->sizes(index->tensors[0], 1)[1], 4);
  EXPECT_EQ(index->places[1].offset, 1000U);
}

TEST(DcpIndex, RefusesWhatCannotBe) {
  Sample sample;
  sample.dtype = "qint8";
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kUnimplemented, "torch.qint8",
                 "'w'", ".metadata");
  for (const char* const dtype : {"uint4", "int4", "float6_e2m3fn", "float4_e2m1fn", "uint1"}) {
    sample.dtype = dtype;
    EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kUnimplemented, dtype, "'w'");
  }
  sample = {};
  sample.chunks[1] = {2, 0, 0, 2, 2, 0};
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "'w'", "no box");
  sample = {};
  sample.begin = -1;
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "no range");
  sample.begin = INT64_MAX - 500;
  sample.stored = {0};
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "no range");
  sample = {};
  sample.path_field = "file";
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "no file");
  EXPECT_FAILURE(decode(pickle_of({}) + "x").status(), StatusCode::kDataLoss, "1 bytes behind");
  EXPECT_FAILURE(decode("}.").status(), StatusCode::kDataLoss, "holds no Metadata");
  EXPECT_FAILURE(decode("").status(), StatusCode::kDataLoss, "without STOP");
}

// Pickles in which a few values are referred to again and again.
std::string repeated_chunk(size_t rank, int64_t times) {
  const std::vector<int64_t> zeros(rank, 0);
  PickleWriter writer(PickleProtocol::k4);
  write_instance(&writer, "Metadata").empty_dict().mark().text("state_dict_metadata");
  writer.empty_dict().text("w");
  write_instance(&writer, "TensorStorageMetadata").empty_dict().mark().text("properties");
  write_instance(&writer, "TensorProperties").mark().global("torch", "float32");
  writer.tuple_to_mark().build().text("size");
  write_size(&writer, zeros);
  writer.text("chunks").empty_list().mark();
  write_instance(&writer, "ChunkStorageMetadata");
  const archive::PickleMemo chunk = writer.memoize();
  writer.empty_dict().mark().text("offsets");
  write_size(&writer, zeros);
  writer.text("sizes");
  write_size(&writer, zeros);
  writer.set_items_to_mark().build();
  for (int64_t i = 1; i < times; ++i) writer.get(chunk);
  writer.appends_to_mark().set_items_to_mark().build().set_item();
  writer.text("storage_data").empty_dict().set_items_to_mark().build();
  return std::move(writer).finish();
}

std::string repeated_tensor(std::string_view name, int64_t chunks, int64_t times) {
  Sample sample;
  sample.chunks.assign(static_cast<size_t>(chunks), {0, 0, 2, 2});
  PickleWriter writer(PickleProtocol::k4);
  write_instance(&writer, "Metadata").empty_dict().mark().text("state_dict_metadata");
  writer.empty_dict().mark().text(name);
  const archive::PickleMemo key = writer.memoize();
  write_tensor(&writer, sample);
  const archive::PickleMemo tensor = writer.memoize();
  for (int64_t i = 1; i < times; ++i) writer.get(key).get(tensor);
  writer.set_items_to_mark().text("storage_data").empty_dict().set_items_to_mark().build();
  return std::move(writer).finish();
}

TEST(DcpIndex, ExpandsToNoMoreThanItsBytesSay) {
  const auto exhausted = StatusCode::kResourceExhausted;
  EXPECT_FAILURE(decode(repeated_chunk(2, 10000)).status(), exhausted, ".metadata", "'w'",
                 "more chunks");
  EXPECT_FAILURE(decode(repeated_chunk(64, 100)).status(), exhausted, ".metadata", "more extents");
  EXPECT_FAILURE(decode(repeated_tensor("w", 100, 1000)).status(), exhausted, "more chunks");
  EXPECT_FAILURE(decode(repeated_tensor(std::string(1000, 'w'), 1, 1000)).status(), exhausted,
                 "bytes of names");
  EXPECT_TRUE(decode(repeated_chunk(2, 10)).ok());
}

// Items that all refer to one long name, and to one long list of texts.
TEST(DcpIndex, BoundsTheTextOfStoredItems) {
  for (const bool has_list : {false, true}) {
    PickleWriter writer(PickleProtocol::k4);
    write_instance(&writer, "Metadata").empty_dict().mark().text("state_dict_metadata");
    writer.empty_dict().text("storage_data").empty_dict().mark();
    write_instance(&writer, "MetadataIndex").empty_dict().mark();
    writer.text("fqn").text(has_list ? "w" : std::string(20000, 'w'));
    writer.set_items_to_mark().build();
    const archive::PickleMemo key = writer.memoize();
    writer.global("torch.distributed.checkpoint.filesystem", "_StorageInfo").empty_tuple();
    writer.new_object().empty_dict().mark().text("relative_path").text("f").text("offset");
    writer.integer(0).text("length").integer(1).text("transform_descriptors");
    writer.empty_list().mark();
    for (int i = 0; i < (has_list ? 20000 : 0); ++i) writer.text("");
    writer.appends_to_mark().set_items_to_mark().build();
    const archive::PickleMemo place = writer.memoize();
    for (int i = 0; i < 20000; ++i) writer.get(key).get(place);
    writer.set_items_to_mark().set_items_to_mark().build();
    const auto index = decode(std::move(writer).finish());
    EXPECT_FAILURE(index.status(), StatusCode::kResourceExhausted, "text of stored items");
  }
}

TEST(DcpIndex, BoundsTransformsAndPaths) {
  Sample sample;
  sample.transforms = {"stream.zstd/1", "x"};
  const auto index = decode(pickle_of(sample));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->transforms, std::vector<std::string>{"stream.zstd/1 x"});
  sample.transforms.assign(5, std::string(1000, 'x'));
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "'w'", "4096 bytes");
  sample = {};
  sample.transform_kinds = 64;
  EXPECT_TRUE(decode(pickle_of(sample)).ok());
  sample.transform_kinds = 65;
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kDataLoss, "64 transforms");
  sample = {};
  sample.planner_path.assign(100, std::string(1000, 'x'));
  EXPECT_FAILURE(decode(pickle_of(sample)).status(), StatusCode::kResourceExhausted, "'w'",
                 "bytes of paths");
  sample.planner_path.resize(3);
  EXPECT_EQ(decode(pickle_of(sample))->tensors[0].path, "");
}

TEST(DcpIndex, RefusesPathsThatLeadOut) {
  for (const char* const path : {"../x.distcp", "/etc/passwd", "a/../../x", "a\\b", ".", ""}) {
    Sample sample;
    sample.path = path;
    const auto index = decode(pickle_of(sample));
    EXPECT_FAILURE(index.status(), StatusCode::kPermissionDenied, "no file below the checkpoint");
    EXPECT_EQ(index.status().detail("unsafe"), path);
  }
}

TEST(DcpIndex, RefusesCallsWhereverTheyStand) {
  const std::string call = "cos\nsystem\n\x8C\x02id\x85R0";
  std::string bytes = pickle_of({});
  bytes.insert(2, call);
  EXPECT_FAILURE(decode(bytes).status(), StatusCode::kPermissionDenied, "os.system");
}

TEST(DcpIndex, NamesIndexesOfOtherLibraries) {
  EXPECT_FAILURE(decode("chyper_parallel.core.metadata\nMetadata\n)\x81.").status(),
                 StatusCode::kUnimplemented, "HyperParallel");
}

// Ranks that saved by themselves: each has its own chunks, and copies of what all hold.
TEST(DcpIndex, MergesTheIndexesOfRanks) {
  Sample first, second;
  first.chunks = {{0, 0, 2, 2}};
  second.chunks = {{2, 0, 2, 2}, {0, 0, 2, 2}};
  first.stored = {0};
  second.path = "__1_0.distcp";
  first.has_object = second.has_object = true;
  std::vector<DcpIndex> ranks = {*decode(pickle_of(first)), *decode(pickle_of(second))};
  const auto merged = merge_indexes(std::move(ranks));
  ASSERT_TRUE(merged.ok()) << merged.status().to_string();
  ASSERT_EQ(merged->tensors.size(), 1U);
  EXPECT_EQ(merged->tensors[0].chunk_count, 2U);
  EXPECT_EQ(merged->places[0].file, 0U);
  EXPECT_EQ(merged->places[1].file, 1U);
  EXPECT_EQ(merged->objects.size(), 1U);
  second.dtype = "float16";
  EXPECT_FAILURE(merge_indexes({*decode(pickle_of(first)), *decode(pickle_of(second))}).status(),
                 StatusCode::kDataLoss, "rank 1", "'w'");
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
