// SPDX-License-Identifier: Apache-2.0
//
// Golden values of payload, key and block digests: what files store may never change. The payload
// values are those that the xxhsum program prints for the same bytes; the key is the digest of the
// byte string that the format page describes.
#include "core/integrity/digest.h"

#include <cstring>

#include <gtest/gtest.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "tests/support/random_source.h"

namespace shardwright::integrity {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string hex(const Digest128& digest) {
  return to_hex(digest);
}

std::string tensor_digest_of(TensorDigestAlgorithm algorithm, std::string_view text, size_t step) {
  TensorDigester digester(algorithm);
  for (size_t begin = 0; begin < text.size(); begin += step) {
    digester.update(bytes_of(text.substr(begin, step)));
  }
  return to_hex(digester.finish());
}

// The byte string of a chunk key as docs/formats/native.md has it.
class KeyText {
 public:
  KeyText& number(int64_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  KeyText& text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    text_ += value;
    return *this;
  }
  Digest128 digest() const { return xxh3_128(bytes_of(text_)); }

 private:
  std::string text_;
};

constexpr std::string_view kGeneration = "0123456789abcdef0123456789abcdef";

TEST(PayloadDigest, HasTheCanonicalFormThatXxhsumPrints) {
  EXPECT_EQ(hex(xxh3_128({})), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex(xxh3_128(bytes_of("abc"))), "06b05ab6733a618578af5f94892f3950");
}

TEST(PayloadDigest, IsTheSameWhenTheBytesAreCopiedOnTheWay) {
  test::RandomSource random(7);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{131072}, size_t{131073},
                            size_t{3 * 131072 + 5}}) {
    const std::vector<std::byte> source = random.bytes(size);
    std::vector<std::byte> target(size);
    EXPECT_EQ(copy_and_digest(source, target), xxh3_128(source)) << size;
    EXPECT_EQ(source, target) << size;
  }
}

TEST(ChunkKey, IsTheDigestOfTheDocumentedBytes) {
  const std::vector<int64_t> shape = {8, 6};
  const Box box{{2, 0}, {3, 6}};
  const ChunkIdentity identity{kGeneration, "layer.weight", "bfloat16", shape, &box, -1};
  const Digest128 expected = KeyText()
                                 .text(kGeneration)
                                 .text("layer.weight")
                                 .text("bfloat16")
                                 .number(-1)
                                 .number(2)
                                 .number(8)
                                 .number(6)
                                 .number(2)
                                 .number(2)
                                 .number(0)
                                 .number(2)
                                 .number(3)
                                 .number(6)
                                 .digest();
  EXPECT_EQ(chunk_key(identity), expected);
}

TEST(ChunkKey, OfAnObjectEndsAfterTheEmptyShape) {
  const ChunkIdentity identity{kGeneration, "step", "application/json", {}, nullptr, 3};
  EXPECT_EQ(chunk_key(identity), KeyText()
                                     .text(kGeneration)
                                     .text("step")
                                     .text("application/json")
                                     .number(3)
                                     .number(0)
                                     .digest());
}

TEST(ChunkKey, DiffersWhenAnyPartDiffers) {
  const std::vector<int64_t> shape = {8};
  const std::vector<int64_t> other_shape = {9};
  const Box box{{2}, {3}};
  const Box other_box{{3}, {3}};
  const std::string other_generation(32, 'f');
  const ChunkIdentity base{kGeneration, "a", "int8", shape, &box, -1};
  std::vector<ChunkIdentity> others(6, base);
  others[0].generation = other_generation;
  others[1].name = "b";
  others[2].content = "uint8";
  others[3].shape = other_shape;
  others[4].box = &other_box;
  others[5].rank = 0;
  for (const ChunkIdentity& other : others) EXPECT_NE(chunk_key(other), chunk_key(base));
}

TEST(ChunkKey, TakesNamesOfAnyLengthAndKeepsFieldsApart) {
  const std::string longest(kMaxNameBytes, 'x');
  EXPECT_EQ(chunk_key({kGeneration, longest, "int8", {}, nullptr, -1}),
            KeyText().text(kGeneration).text(longest).text("int8").number(-1).number(0).digest());
  EXPECT_NE(chunk_key({kGeneration, "ab", "c", {}, nullptr, -1}),
            chunk_key({kGeneration, "a", "bc", {}, nullptr, -1}));
}

TEST(BlockDigest, MixesPayloadKeyNumberAndLength) {
  const Digest128 payload = xxh3_128(bytes_of("payload"));
  const Digest128 key = xxh3_128(bytes_of("key"));
  std::string mixed(reinterpret_cast<const char*>(payload.data()), 16);
  mixed.append(reinterpret_cast<const char*>(key.data()), 16);
  const uint64_t number = 5;
  const uint64_t length = 7;
  mixed.append(reinterpret_cast<const char*>(&number), 8)
      .append(reinterpret_cast<const char*>(&length), 8);
  EXPECT_EQ(block_digest(payload, key, number, length), xxh3_128(bytes_of(mixed)));
  EXPECT_NE(block_digest(payload, key, number, length),
            block_digest(payload, key, number + 1, length));
  EXPECT_NE(block_digest(payload, key, number, length),
            block_digest(payload, key, number, length + 1));
  EXPECT_NE(block_digest(payload, key, number, length), block_digest(key, payload, number, length));
}

TEST(BlockCount, RoundsUpToWholeBlocks) {
  EXPECT_EQ(block_count(0), 0U);
  EXPECT_EQ(block_count(1), 1U);
  EXPECT_EQ(block_count(kDigestBlockBytes), 1U);
  EXPECT_EQ(block_count(kDigestBlockBytes + 1), 2U);
  EXPECT_EQ(block_count(UINT64_MAX), UINT64_MAX / kDigestBlockBytes + 1);
}

TEST(TensorDigest, HasPublishedValuesInBothAlgorithms) {
  EXPECT_EQ(tensor_digest_of(TensorDigestAlgorithm::kSha256, "abc", 3),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(tensor_digest_of(TensorDigestAlgorithm::kSha256, "", 1),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(tensor_digest_of(TensorDigestAlgorithm::kXxh3, "abc", 3),
            "06b05ab6733a618578af5f94892f3950");
}

TEST(TensorDigest, DoesNotDependOnHowTheBytesAreCut) {
  std::string text(300000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 >> 3);
  for (const auto algorithm : {TensorDigestAlgorithm::kXxh3, TensorDigestAlgorithm::kSha256}) {
    const std::string whole = tensor_digest_of(algorithm, text, text.size());
    for (const size_t step : {size_t{1000}, size_t{65537}})
      EXPECT_EQ(tensor_digest_of(algorithm, text, step), whole);
  }
}

TEST(TensorDigest, NamesItsAlgorithms) {
  EXPECT_EQ(algorithm_name(TensorDigestAlgorithm::kXxh3), "xxh3");
  EXPECT_EQ(algorithm_name(TensorDigestAlgorithm::kSha256), "sha256");
}

}  // namespace
}  // namespace shardwright::integrity
