// SPDX-License-Identifier: Apache-2.0
//
// Manifest, index, header and trailer: what is encoded decodes to the same, equal input gives equal
// bytes, and whatever does not hold together is refused by name.
#include <cstring>

#include <gtest/gtest.h>

#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/format/native/native_format.h"
#include "core/integrity/digest.h"
#include "tests/core/format/native/sample_checkpoint.h"
#include "tests/core/plan/catalog_boxes.h"

namespace shardwright::format::native {
namespace {

using test::kSampleGeneration;
using test::make_sample;
using test::Sample;

Result<Manifest> decode_changed(void (*change)(Manifest*)) {
  Sample sample = make_sample();
  change(&sample.manifest);
  const Result<std::vector<std::byte>> bytes = encode_manifest(sample.manifest);
  if (!bytes.ok()) return bytes.status();
  return decode_manifest(*bytes);
}

TEST(NativeNames, AreThoseOfTheFormatPage) {
  EXPECT_EQ(rank_file_name(0), "rank-00000.shw");
  EXPECT_EQ(rank_file_name(123456), "rank-123456.shw");
  EXPECT_EQ(rank_file_key(kSampleGeneration, 7),
            std::string(kSampleGeneration) + "/rank-00007.shw");
  EXPECT_EQ(temporary_manifest_name(kSampleGeneration),
            "manifest.shw." + std::string(kSampleGeneration));
  EXPECT_TRUE(is_generation_id(kSampleGeneration));
  EXPECT_FALSE(is_generation_id("018F3C2A9B5D7E10A1B2C3D4E5F60718"));
  EXPECT_FALSE(is_generation_id("018f"));
  EXPECT_FALSE(is_generation_id(""));
}

TEST(Manifest, ComesBackAsItWasWritten) {
  const Sample sample = make_sample({.kept_generations = {std::string(32, 'a')}});
  const Result<Manifest> decoded = decode_manifest(test::manifest_bytes(sample.manifest));
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_EQ(decoded->generation, sample.manifest.generation);
  EXPECT_EQ(decoded->kept_generations, sample.manifest.kept_generations);
  EXPECT_EQ(decoded->world_size, 2);
  EXPECT_EQ(decoded->created_unix_ns, sample.manifest.created_unix_ns);
  EXPECT_EQ(decoded->writer, "shardwright 0.1.0");
  EXPECT_TRUE(decoded->digests);
  EXPECT_EQ(decoded->metadata, sample.manifest.metadata);
  ASSERT_EQ(decoded->files.size(), 2U);
  EXPECT_EQ(decoded->files[1].rank, 1);
  EXPECT_EQ(decoded->files[1].index_digest, sample.manifest.files[1].index_digest);
  EXPECT_EQ(decoded->catalog.tensors.size(), 3U);
  EXPECT_EQ(decoded->catalog.chunk_box(1), (Box{{4, 0}, {2, 4}}));
  EXPECT_EQ(test::manifest_bytes(*decoded), test::manifest_bytes(sample.manifest));
}

TEST(Manifest, OfAnEmptyStateIsSound) {
  Manifest manifest;
  manifest.generation = kSampleGeneration;
  const Result<Manifest> decoded = decode_manifest(test::manifest_bytes(manifest));
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  EXPECT_TRUE(decoded->catalog.tensors.empty());
}

TEST(Manifest, IsReadAtAnyAddress) {
  const std::vector<std::byte> bytes = test::manifest_bytes(make_sample().manifest);
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  EXPECT_TRUE(decode_manifest(std::span(shifted).subspan(1)).ok());
}

TEST(Manifest, IsNotWrittenWhenItDoesNotHoldTogether) {
  const auto code = [](void (*change)(Manifest*)) {
    return decode_changed(change).status().code();
  };
  EXPECT_EQ(code([](Manifest* m) { m->generation = "short"; }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->world_size = 0; }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->world_size = 1; }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->kept_generations = {m->generation}; }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { std::swap(m->files[0], m->files[1]); }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->files.pop_back(); }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->metadata["bad\xff"] = "x"; }), StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) {
              m->catalog = plan::with_boxes(m->catalog);
              m->catalog.boxes[0].place = 7;
            }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) {
              m->catalog = plan::with_boxes(m->catalog);
              m->catalog.boxes[0].offset0 = 1;
            }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) {
              const std::vector<uint32_t> ranks = {0, 7};
              m->catalog.rank_maps[0] = plan::RankMap::of(ranks);
            }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) { m->files[0].index_position = UINT64_MAX - 5; }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest* m) {
              m->catalog.tensors[0].kind = EntryKind::kRankLocal;
              m->catalog.tensors[0].rank = m->world_size;
            }),
            StatusCode::kInternal);
  EXPECT_EQ(code([](Manifest*) {}), StatusCode::kOk);
}

TEST(Manifest, SaysWhatIsNoManifest) {
  EXPECT_EQ(decode_manifest({}).status().code(), StatusCode::kDataLoss);
  std::vector<std::byte> bytes = test::manifest_bytes(make_sample().manifest);
  bytes[8] = std::byte{'X'};
  EXPECT_EQ(decode_manifest(bytes).status().code(), StatusCode::kInvalidArgument);
}

// Replaces the first occurrence of the version triple and closes the manifest with a digest that
// holds.
std::vector<std::byte> with_digest(std::vector<std::byte> bytes) {
  bytes.resize(bytes.size() - 16);
  const integrity::Digest128 digest = integrity::xxh3_128(bytes);
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

TEST(Manifest, WithADigestThatHoldsIsStillVerified) {
  const std::vector<std::byte> good = test::manifest_bytes(make_sample().manifest);
  int refused = 0;
  for (size_t position = 4; position < good.size() - 16; ++position) {
    std::vector<std::byte> bytes = good;
    bytes[position] ^= std::byte{0x80};
    const Result<Manifest> decoded = decode_manifest(with_digest(std::move(bytes)));
    const StatusCode code = decoded.status().code();
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kDataLoss ||
                code == StatusCode::kInvalidArgument || code == StatusCode::kUnimplemented)
        << position << " " << decoded.status().to_string();
    refused += decoded.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 200);
}

TEST(RankFileHeader, NamesWhoseFileItIs) {
  std::vector<std::byte> header = encode_file_header(kSampleGeneration, 3, 8);
  ASSERT_EQ(header.size(), kFileHeaderBytes);
  EXPECT_TRUE(check_file_header(header, kSampleGeneration, 3).ok());
  EXPECT_EQ(check_file_header(header, kSampleGeneration, 2).code(), StatusCode::kDataLoss);
  EXPECT_EQ(check_file_header(header, std::string(32, '0'), 3).code(), StatusCode::kDataLoss);
  EXPECT_EQ(check_file_header(std::span(header).first(100), kSampleGeneration, 3).code(),
            StatusCode::kDataLoss);
  for (const size_t position : {0U, 9U, 20U, 33U, 100U, 4000U, 4095U}) {
    std::vector<std::byte> damaged = header;
    damaged[position] ^= std::byte{1};
    EXPECT_EQ(check_file_header(damaged, kSampleGeneration, 3).code(), StatusCode::kDataLoss)
        << position;
  }
}

TEST(RankFileTrailer, ComesBackAndFailsOnEveryFlippedBit) {
  const Trailer trailer{std::string(kSampleGeneration), 1,   2, 5000, 600,
                        integrity::xxh3_128({}),        6000};
  const std::vector<std::byte> bytes = encode_trailer(trailer);
  ASSERT_EQ(bytes.size(), kTrailerBytes);
  const Result<Trailer> decoded = decode_trailer(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->generation, kSampleGeneration);
  EXPECT_EQ(decoded->rank, 1);
  EXPECT_EQ(decoded->world_size, 2);
  EXPECT_EQ(decoded->index_position, 5000U);
  EXPECT_EQ(decoded->index_bytes, 600U);
  EXPECT_EQ(decoded->index_digest, trailer.index_digest);
  EXPECT_EQ(decoded->file_bytes, 6000U);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<std::byte> damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_EQ(decode_trailer(damaged).status().code(), StatusCode::kDataLoss) << bit;
  }
}

TEST(RankFileTrailer, OfANewerVersionIsNotDamage) {
  std::vector<std::byte> bytes =
      encode_trailer({std::string(kSampleGeneration), 0, 1, 1, 1, {}, 1});
  bytes[12] = std::byte{9};
  const integrity::Digest128 digest = integrity::xxh3_128(std::span(bytes).first(112));
  std::copy(digest.begin(), digest.end(), bytes.begin() + 112);
  const Status status = decode_trailer(bytes).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(status.detail("needed_version"), "0.9");
}

RankIndex sample_index() {
  const Sample sample = make_sample();
  RankIndex index;
  index.generation = kSampleGeneration;
  index.world_size = 2;
  index.catalog = std::move(*file_catalog(sample.manifest.catalog, 0));
  index.positions = {4096, 4096 + 64, 4096 + 128};
  index.block_digests.resize(3);
  return index;
}

TEST(RankIndex, HoldsTheFilesPartInTheManifestsOrder) {
  const RankIndex index = sample_index();
  const Result<RankIndex> decoded = decode_index(*encode_index(index));
  ASSERT_TRUE(decoded.ok()) << decoded.status().to_string();
  ASSERT_EQ(decoded->catalog.tensors.size(), 2U);
  EXPECT_EQ(decoded->catalog.tensor_name(0), "layer.weight");
  EXPECT_EQ(decoded->catalog.chunk_box(0), (Box{{0, 0}, {4, 4}}));
  EXPECT_EQ(decoded->catalog.tensor_name(1), "scale");
  EXPECT_EQ(decoded->catalog.objects.size(), 1U);
  EXPECT_EQ(decoded->block_digests.size(), 3U);
}

TEST(RankIndex, OfARankHasTheBytesOfTheOneCutOutOfTheManifest) {
  const std::vector<int64_t> matrix = {6, 4};
  const StoredChunk weight{{"layer.weight", "", DType::kFloat32, EntryKind::kSharded, -1, matrix},
                           {{0, 0}, {4, 4}}};
  const StoredChunk scale{{"scale", "", DType::kBfloat16, EntryKind::kReplicated, -1, {}},
                          {{}, {}}};
  plan::ObjectRecord step;
  step.size_bytes = 3;
  step.place = 77;
  const std::vector<StoredObject> objects = {{step, "step", "", "application/json"}};
  RankIndex expected = sample_index();
  const std::vector<std::byte> bytes = *encode_index(expected);
  expected.catalog = std::move(*index_catalog(std::vector{weight, scale}, objects));
  EXPECT_EQ(*encode_index(expected), bytes);
}

TEST(RankIndex, IsRefusedWhenItsPositionsLie) {
  const auto code = [](const auto& change) {
    RankIndex index = sample_index();
    change(&index.positions);
    return encode_index(index).status().code();
  };
  using Positions = std::vector<uint64_t>;
  EXPECT_EQ(code([](Positions*) {}), StatusCode::kOk);
  EXPECT_EQ(code([](Positions* p) { p->pop_back(); }), StatusCode::kInternal);
  EXPECT_EQ(code([](Positions* p) { (*p)[0] = 0; }), StatusCode::kInternal) << "in the header";
  EXPECT_EQ(code([](Positions* p) { (*p)[1] = (*p)[0] + 8; }), StatusCode::kInternal);
  EXPECT_EQ(code([](Positions* p) { (*p)[1] = UINT64_MAX; }), StatusCode::kInternal);
}

TEST(RankIndex, IsRefusedWithTheWrongNumberOfDigests) {
  RankIndex index = sample_index();
  index.block_digests.resize(2);
  EXPECT_EQ(encode_index(index).status().code(), StatusCode::kInternal);
  index.digests = false;
  EXPECT_EQ(encode_index(index).status().code(), StatusCode::kInternal);
  index.block_digests.clear();
  EXPECT_TRUE(encode_index(index).ok());
}

TEST(RankIndex, NeverCrashesOnFlippedBits) {
  const std::vector<std::byte> good = *encode_index(sample_index());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> damaged = good;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const StatusCode code = decode_index(damaged).status().code();
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kDataLoss ||
                code == StatusCode::kUnimplemented)
        << bit;
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(decode_index(std::span(good).first(size)).status().code(), StatusCode::kDataLoss)
        << size;
  }
}

}  // namespace
}  // namespace shardwright::format::native
