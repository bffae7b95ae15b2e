// SPDX-License-Identifier: Apache-2.0
//
// The journal's bytes: what was written is read, and nothing else is taken for one.
#include "core/format/megatron/publication.h"

#include <gtest/gtest.h>

#include "core/integrity/digest.h"

namespace shardwright::format::megatron {
namespace {

constexpr std::string_view kGeneration = "0123456789abcdef0123456789abcdef";

Publication sample() {
  const std::vector<std::byte> bytes(5, std::byte{3});
  Publication publication;
  publication.generation = kGeneration;
  publication.has_common_file = true;
  publication.file_mode = 0640;
  publication.index = pending_file(bytes);
  publication.common = pending_file(std::span(bytes).first(2));
  return publication;
}

// With the digest at its end made anew.
std::vector<std::byte> resealed(std::vector<std::byte> bytes) {
  const auto body = std::span(bytes).first(bytes.size() - sizeof(Digest128));
  const Digest128 digest = integrity::xxh3_128(body);
  std::ranges::copy(digest, bytes.end() - sizeof(Digest128));
  return bytes;
}

TEST(Publication, ReadsWhatWasWritten) {
  Publication publication = sample();
  auto bytes = encode_publication(publication);
  EXPECT_EQ(bytes.size(), kJournalBytes);
  EXPECT_EQ(*decode_publication(bytes), publication);
  publication.has_common_file = false;
  publication.has_integrity = true;
  publication.durable = false;
  EXPECT_EQ(*decode_publication(encode_publication(publication)), publication);
}

TEST(Publication, RefusesEveryFlippedBitAndEveryLength) {
  const auto bytes = encode_publication(sample());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto damaged = bytes;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_EQ(decode_publication(damaged).status().code(), StatusCode::kDataLoss) << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = std::span(bytes).first(size);
    EXPECT_EQ(decode_publication(cut).status().code(), StatusCode::kDataLoss) << size;
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(decode_publication(longer).status().code(), StatusCode::kDataLoss);
}

TEST(Publication, RefusesWhatNoSaveSaysThoughItIsSealed) {
  const auto bytes = encode_publication(sample());
  for (const size_t place : {0U, 8U, 40U, 50U, 61U}) {  // magic, generation, flags, mode, size
    auto wrong = bytes;
    wrong[place] = std::byte{0xFF};
    EXPECT_EQ(decode_publication(resealed(wrong)).status().code(), StatusCode::kDataLoss) << place;
  }
  EXPECT_TRUE(decode_publication(resealed(bytes)).ok());
}

TEST(Publication, KnowsTheNamesOfGenerations) {
  for (const std::string_view name :
       {".metadata", "common.pt", "integrity.json", "metadata.json"}) {
    EXPECT_EQ(generation_of_file(pending_name(name, kGeneration)), kGeneration) << name;
    EXPECT_EQ(generation_of_file(pending_name(name, kGeneration) + ".put"), kGeneration) << name;
    EXPECT_EQ(generation_of_file(name), "") << name;
  }
  for (const std::string_view name :
       {"common.pt.bak", "common.pt.0123456789abcdef0123456789abcdefx", ".shardwright.publish"})
    EXPECT_EQ(generation_of_file(name), "") << name;
}

}  // namespace
}  // namespace shardwright::format::megatron
