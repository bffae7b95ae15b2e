// SPDX-License-Identifier: Apache-2.0
//
// Builds the sample as a writer does: lay out, digest, index, trailer, manifest. Pure but for
// store_sample.
#include "tests/core/format/native/sample_checkpoint.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/format/native/file_layout.h"
#include "core/format/native/native_format.h"
#include "core/integrity/digest.h"

namespace shardwright::format::native::test {
namespace {

constexpr int64_t kCreatedNs = 1'700'000'000'123'456'789;

struct Text {
  std::string_view name;
  std::string_view path;
  std::string_view content_type;
  std::string_view json;
};
constexpr Text kStep{"step", "", "application/json", "100"};
constexpr Text kSeed{"seed", "[\"seed\"]", "application/octet-stream", "abc"};

void add_chunks(const SampleOptions& options, plan::Catalog* catalog) {
  plan::CatalogBuilder builder(catalog);
  const std::vector<int64_t> matrix = {6, 4};
  const std::vector<plan::CatalogBuilder::Chunk> halves = {{{{0, 0}, {4, 4}}, 0},
                                                           {{{4, 0}, {2, 4}}, 1}};
  ASSERT_TRUE(
      builder
          .add_tensor({"layer.weight", "", DType::kFloat32, EntryKind::kSharded, -1, matrix},
                      halves)
          .ok());
  const std::vector<plan::CatalogBuilder::Chunk> scalar = {{{{}, {}}, 0}};
  ASSERT_TRUE(
      builder.add_tensor({"scale", "", DType::kBfloat16, EntryKind::kReplicated, -1, {}}, scalar)
          .ok());
  const std::vector<int64_t> four = {4};
  const std::vector<plan::CatalogBuilder::Chunk> local = {{{{0}, {4}}, 1}};
  ASSERT_TRUE(
      builder.add_tensor({"rng", "", DType::kUint8, EntryKind::kRankLocal, 1, four}, local).ok());
  if (options.large) {
    const std::vector<int64_t> shape = {5 << 19};
    const std::vector<plan::CatalogBuilder::Chunk> whole = {{{{0}, {5 << 19}}, 0}};
    ASSERT_TRUE(
        builder.add_tensor({"large", "", DType::kInt8, EntryKind::kReplicated, -1, shape}, whole)
            .ok());
  }
  plan::ObjectRecord step;
  step.place = 0;
  step.size_bytes = kStep.json.size();
  ASSERT_TRUE(builder.add_object(step, kStep.name, kStep.path, kStep.content_type).ok());
  plan::ObjectRecord seed;
  seed.place = 1;
  seed.size_bytes = kSeed.json.size();
  ASSERT_TRUE(builder.add_object(seed, kSeed.name, kSeed.path, kSeed.content_type).ok());
}

// The bytes of one thing in the file and the digests of its blocks.
void digest_blocks(std::span<const std::byte> bytes, const integrity::ChunkIdentity& identity,
                   RankIndex* index) {
  const integrity::Digest128 key = integrity::chunk_key(identity);
  for (uint64_t block = 0; block < integrity::block_count(bytes.size()); ++block) {
    const auto part = bytes.subspan(static_cast<size_t>(block * kDigestBlockBytes));
    const auto cut = part.first(std::min<size_t>(part.size(), kDigestBlockBytes));
    index->block_digests.push_back(
        integrity::block_digest(integrity::xxh3_128(cut), key, block, cut.size()));
  }
}

void fill_file(const SampleOptions& options, RankIndex* index, std::vector<std::byte>* file) {
  const plan::Catalog& catalog = index->catalog;
  const auto room = [&](uint64_t position, uint64_t size) {
    if (file->size() < position + size) file->resize(static_cast<size_t>(position + size));
    return std::span(*file).subspan(static_cast<size_t>(position), static_cast<size_t>(size));
  };
  for (size_t chunk = 0; chunk < catalog.chunk_count(); ++chunk) {
    const auto bytes = room(index->positions[chunk], catalog.chunk_bytes(chunk));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = sample_byte(i + chunk);
    const size_t tensor = catalog.tensor_of(chunk);
    const Box box = catalog.chunk_box(chunk);
    if (!options.digests) continue;
    digest_blocks(
        bytes,
        {options.generation, catalog.tensor_name(tensor), dtype_name(catalog.tensors[tensor].dtype),
         catalog.shape(tensor), &box, catalog.tensors[tensor].rank},
        index);
  }
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const plan::ObjectRecord& record = catalog.objects[i];
    const Text& text = catalog.texts.at(record.name) == kStep.name ? kStep : kSeed;
    const auto bytes = room(index->positions[catalog.chunk_count() + i], record.size_bytes);
    std::memcpy(bytes.data(), text.json.data(), text.json.size());
    if (!options.digests) continue;
    digest_blocks(
        bytes, {options.generation, text.name, text.content_type, {}, nullptr, record.rank}, index);
  }
}

std::vector<uint64_t> positions_of(const plan::Catalog& catalog) {
  std::vector<plan::WriteItem> items;
  for (size_t chunk = 0; chunk < catalog.chunk_count(); ++chunk)
    items.push_back(
        {static_cast<uint32_t>(catalog.tensor_of(chunk)), 0, catalog.chunk_bytes(chunk)});
  for (uint32_t i = 0; i < catalog.objects.size(); ++i)
    items.push_back({i, plan::kObjectPiece, catalog.objects[i].size_bytes});
  std::vector<uint64_t> positions(items.size());
  const FileLayout layout = *lay_out(items);
  for (const PlacedItem& placed : layout.items) positions[placed.item] = placed.position;
  return positions;
}

std::vector<std::byte> make_file(const SampleOptions& options, const plan::Catalog& merged,
                                 ManifestFile* info) {
  std::vector<std::byte> file = encode_file_header(options.generation, info->rank, 2);
  RankIndex index;
  index.generation = options.generation;
  index.rank = info->rank;
  index.world_size = 2;
  index.digests = options.digests;
  Result<plan::Catalog> catalog = file_catalog(merged, static_cast<uint32_t>(info->rank));
  EXPECT_TRUE(catalog.ok()) << catalog.status().to_string();
  index.catalog = std::move(*catalog);
  index.positions = positions_of(index.catalog);
  fill_file(options, &index, &file);
  uint64_t index_position = 0;
  EXPECT_TRUE(checked_round_up(file.size(), kExtentAlignmentBytes, &index_position));
  file.resize(static_cast<size_t>(index_position));
  const Result<std::vector<std::byte>> index_bytes = encode_index(index);
  EXPECT_TRUE(index_bytes.ok()) << index_bytes.status().to_string();
  file.insert(file.end(), index_bytes->begin(), index_bytes->end());
  info->index_position = index_position;
  info->index_bytes = index_bytes->size();
  info->index_digest = integrity::xxh3_128(*index_bytes);
  info->size_bytes = file.size() + kTrailerBytes;
  const std::vector<std::byte> trailer =
      encode_trailer({options.generation, info->rank, 2, index_position, info->index_bytes,
                      info->index_digest, info->size_bytes});
  file.insert(file.end(), trailer.begin(), trailer.end());
  return file;
}

}  // namespace

std::byte sample_byte(size_t position) {
  return static_cast<std::byte>((position * 7 + (position >> 8) * 13 + (position >> 20) * 29 + 3) &
                                0xFF);
}

std::vector<std::byte> manifest_bytes(const Manifest& manifest) {
  Result<std::vector<std::byte>> bytes = encode_manifest(manifest);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? std::move(*bytes) : std::vector<std::byte>();
}

Sample make_sample(const SampleOptions& options) {
  Sample sample;
  sample.manifest.generation = options.generation;
  sample.manifest.kept_generations = options.kept_generations;
  sample.manifest.world_size = 2;
  sample.manifest.created_unix_ns = kCreatedNs;
  sample.manifest.writer = "shardwright 0.1.0";
  sample.manifest.digests = options.digests;
  sample.manifest.metadata = {{"epoch", "3"}, {"step", "100"}};
  add_chunks(options, &sample.manifest.catalog);
  plan::find_grids(&sample.manifest.catalog);
  for (int32_t rank = 0; rank < 2; ++rank) {
    ManifestFile info;
    info.rank = rank;
    sample.files[rank_file_key(options.generation, rank)] =
        make_file(options, sample.manifest.catalog, &info);
    sample.manifest.files.push_back(info);
  }
  sample.files[std::string(kManifestName)] = manifest_bytes(sample.manifest);
  return sample;
}

void store_sample(const Sample& sample, storage::Storage* storage, const std::string& prefix) {
  for (const auto& [key, bytes] : sample.files) {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreate;
    auto object = storage->open(storage::join_key(prefix, key), options);
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    ASSERT_TRUE((*object)->write_at(0, bytes).ok());
    ASSERT_TRUE((*object)->commit(storage::CommitCondition::kNone, {}).ok());
  }
}

}  // namespace shardwright::format::native::test
