// SPDX-License-Identifier: Apache-2.0
//
// Header and trailer of a rank file: fixed tables of little-endian fields, each closed by its own
// XXH3-128.
//
//   header, 4096 bytes               trailer, 128 bytes
//   0     magic "SHWF\r\n\x1a\n"     0    magic "SHWT\r\n\x1a\n"
//   8     u32 major, u32 minor       8    u32 major, u32 minor
//   16    generation, 16 bytes       16   generation, 16 bytes
//   32    i32 rank, i32 world size   32   i32 rank, i32 world size
//   40    zero                       40   u64 index position, u64 index bytes
//   4080  digest of bytes 0..4079    56   index digest, 16 bytes
//                                    72   u64 file bytes
//                                    80   zero
//                                    112  digest of bytes 0..111
//
// Pure functions, any thread.
#include "core/format/native/rank_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/native/buffer_internal.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native {
namespace {

static_assert(std::endian::native == std::endian::little,
              "fields are stored in little-endian order");

constexpr std::string_view kHeaderMagic = "SHWF\r\n\x1a\n";
constexpr std::string_view kTrailerMagic = "SHWT\r\n\x1a\n";
constexpr size_t kDigestBytes = sizeof(integrity::Digest128);
constexpr size_t kGenerationPosition = 16;
constexpr size_t kRankPosition = 32;
constexpr size_t kHeaderEnd = 40;
constexpr size_t kIndexPosition = 40;
constexpr size_t kIndexDigestPosition = 56;
constexpr size_t kFileBytesPosition = 72;
constexpr size_t kTrailerEnd = 80;

template <typename T>
void put(std::vector<std::byte>* bytes, size_t position, T value) {
  std::memcpy(bytes->data() + position, &value, sizeof(value));
}

template <typename T>
T get(std::span<const std::byte> bytes, size_t position) {
  T value;
  std::memcpy(&value, bytes.data() + position, sizeof(value));
  return value;
}

struct Identity {
  std::string_view generation;
  int32_t rank = 0;
  int32_t world_size = 1;
};

// The first 40 bytes that header and trailer share.
std::vector<std::byte> begin_record(std::string_view magic, size_t size_bytes,
                                    const Identity& identity) {
  std::vector<std::byte> bytes(size_bytes);
  std::memcpy(bytes.data(), magic.data(), magic.size());
  put(&bytes, 8, kFormatMajor);
  put(&bytes, 12, kFormatMinor);
  // A generation that is no hex is refused by every reader; writers draw it themselves.
  const std::vector<std::byte> generation =
      from_hex(identity.generation).value_or(std::vector<std::byte>());
  std::copy_n(generation.begin(), std::min<size_t>(generation.size(), 16),
              bytes.begin() + static_cast<ptrdiff_t>(kGenerationPosition));
  put(&bytes, kRankPosition, identity.rank);
  put(&bytes, kRankPosition + 4, identity.world_size);
  return bytes;
}

void seal(std::vector<std::byte>* bytes) {
  const size_t end = bytes->size() - kDigestBytes;
  const integrity::Digest128 digest = integrity::xxh3_128(std::span(*bytes).first(end));
  std::copy(digest.begin(), digest.end(), bytes->begin() + static_cast<ptrdiff_t>(end));
}

// Length, digest, magic and version, in this order, so that a damaged version is damage and not a
// newer library.
Status check_record(std::span<const std::byte> bytes, size_t size_bytes, std::string_view magic,
                    std::string_view what) {
  if (bytes.size() != size_bytes) {
    return data_loss(
        fmt::format("the {} has {} bytes, expected {}", what, bytes.size(), size_bytes));
  }
  const auto stored = bytes.last(kDigestBytes);
  const integrity::Digest128 found = integrity::xxh3_128(bytes.first(size_bytes - kDigestBytes));
  if (!std::equal(stored.begin(), stored.end(), found.begin())) {
    return data_loss(fmt::format("the digest of the {} does not hold", what))
        .with_detail("expected", to_hex(stored))
        .with_detail("found", to_hex(found));
  }
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
    return data_loss(fmt::format("these bytes are no {}: its magic number is missing", what));
  }
  return internal::check_version(
      {get<uint32_t>(bytes, 8), get<uint32_t>(bytes, 12), get<uint32_t>(bytes, 12)}, what);
}

Status check_zero(std::span<const std::byte> bytes, std::string_view what) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte each) { return each == std::byte{0}; }))
    return {};
  return data_loss(fmt::format("reserved bytes of the {} are not zero", what));
}

}  // namespace

std::vector<std::byte> encode_file_header(std::string_view generation, int32_t rank,
                                          int32_t world_size) {
  std::vector<std::byte> bytes =
      begin_record(kHeaderMagic, kFileHeaderBytes, {generation, rank, world_size});
  seal(&bytes);
  return bytes;
}

Status check_file_header(std::span<const std::byte> bytes, std::string_view generation,
                         int32_t rank) {
  SHW_RETURN_IF_ERROR(check_record(bytes, kFileHeaderBytes, kHeaderMagic, "file header"));
  SHW_RETURN_IF_ERROR(check_zero(
      bytes.subspan(kHeaderEnd, kFileHeaderBytes - kHeaderEnd - kDigestBytes), "file header"));
  const std::string found = to_hex(bytes.subspan(kGenerationPosition, 16));
  if (found != generation) {
    return data_loss(fmt::format("the file belongs to generation {}, expected {}", found,
                                 escape_text(generation, 64)))
        .with_detail("expected", generation)
        .with_detail("found", found);
  }
  const auto found_rank = get<int32_t>(bytes, kRankPosition);
  if (found_rank != rank) {
    return data_loss(fmt::format("the file was written by rank {}, expected {}", found_rank, rank))
        .with_detail("expected", fmt::to_string(rank))
        .with_detail("found", fmt::to_string(found_rank));
  }
  return {};
}

std::vector<std::byte> encode_trailer(const Trailer& trailer) {
  std::vector<std::byte> bytes = begin_record(
      kTrailerMagic, kTrailerBytes, {trailer.generation, trailer.rank, trailer.world_size});
  put(&bytes, kIndexPosition, trailer.index_position);
  put(&bytes, kIndexPosition + 8, trailer.index_bytes);
  std::copy(trailer.index_digest.begin(), trailer.index_digest.end(),
            bytes.begin() + static_cast<ptrdiff_t>(kIndexDigestPosition));
  put(&bytes, kFileBytesPosition, trailer.file_bytes);
  seal(&bytes);
  return bytes;
}

Result<Trailer> decode_trailer(std::span<const std::byte> bytes) {
  SHW_RETURN_IF_ERROR(check_record(bytes, kTrailerBytes, kTrailerMagic, "trailer"));
  SHW_RETURN_IF_ERROR(check_zero(
      bytes.subspan(kTrailerEnd, kTrailerBytes - kTrailerEnd - kDigestBytes), "trailer"));
  Trailer trailer;
  trailer.generation = to_hex(bytes.subspan(kGenerationPosition, 16));
  trailer.rank = get<int32_t>(bytes, kRankPosition);
  trailer.world_size = get<int32_t>(bytes, kRankPosition + 4);
  trailer.index_position = get<uint64_t>(bytes, kIndexPosition);
  trailer.index_bytes = get<uint64_t>(bytes, kIndexPosition + 8);
  std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(kIndexDigestPosition), kDigestBytes,
              trailer.index_digest.begin());
  trailer.file_bytes = get<uint64_t>(bytes, kFileBytesPosition);
  if (trailer.world_size < 1 || trailer.world_size > kMaxWorldSize || trailer.rank < 0 ||
      trailer.rank >= trailer.world_size) {
    return data_loss(
        fmt::format("the trailer names rank {} of {}", trailer.rank, trailer.world_size));
  }
  return trailer;
}

}  // namespace shardwright::format::native
