// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/torch_dcp/item_digests_internal.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/integrity/digest.h"
#include "core/layout/box.h"

namespace shardwright::format::torch_dcp::internal {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

Result<DigestSidecar> decode(std::span<const std::byte> bytes) {
  const auto header = decode_sidecar_header(bytes);
  if (!header.has_value()) return data_loss("the digests beside the index were cut");
  return decode_sidecar(*header, bytes.subspan(kSidecarHeaderBytes));
}

// Null when the item has no such block.
const Digest128* digest_of(const DigestSidecar& sidecar, const SidecarItem& item, uint64_t block) {
  if (item.first_digest == SidecarItem::kNoDigest ||
      block >= sidecar.digests.size() - item.first_digest)
    return nullptr;
  return &sidecar.digests[static_cast<size_t>(item.first_digest + block)];
}

bool is_sound(const DigestSidecar& sidecar, const SidecarItem& item, const Digest128& key,
              std::span<const std::byte> bytes) {
  for (uint64_t block = 0; block * kDigestBlockBytes < bytes.size(); ++block) {
    const auto part =
        bytes.subspan(static_cast<size_t>(block * kDigestBlockBytes),
                      static_cast<size_t>(std::min<uint64_t>(
                          kDigestBlockBytes, bytes.size() - block * kDigestBlockBytes)));
    const Digest128* const expected = digest_of(sidecar, item, block);
    if (expected == nullptr) return item.first_digest == SidecarItem::kNoDigest;
    if (integrity::block_digest(integrity::xxh3_128(part), key, block, part.size()) != *expected)
      return false;
  }
  return true;
}

}  // namespace

Status check_sidecar(std::span<const std::byte> bytes, const DcpIndex& index) {
  SHW_ASSIGN_OR_RETURN(const DigestSidecar sidecar, decode(bytes));
  if (sidecar.chunks.size() == index.places.size() &&
      sidecar.objects.size() == index.objects.size())
    return {};
  return data_loss("the digests beside the index are of another number of items");
}

CheckItem check_items(const Opened& opened, const DcpIndex& index) {
  if (opened.sidecar.empty()) return {};
  auto decoded = decode(opened.sidecar);
  if (!decoded.ok()) return {};
  const auto sidecar = std::make_shared<const DigestSidecar>(std::move(*decoded));
  return [sidecar, &index](size_t object, std::span<const std::byte> item) {
    const DcpIndex::Object& entry = index.objects[object];
    const Digest128 key = object_item_key(sidecar->generation, entry.name, entry.rank);
    return is_sound(*sidecar, sidecar->objects[object], key, item);
  };
}

ItemDigests::ItemDigests(const Opened& opened, const Contents& contents) {
  if (opened.sidecar.empty()) return;
  auto decoded = decode(opened.sidecar);
  if (!decoded.ok()) return;  // checked before
  sidecar_ = std::move(*decoded);
  numbers_ = contents.numbers;
  payloads_.assign(contents.chunks.size(), kUnknown);
  for (size_t t = 0; t < contents.catalog.tensors.size(); ++t) {
    const plan::TensorRecord& record = contents.catalog.tensors[t];
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const ItemPlace& place = contents.chunks[c];
      const uint64_t payload = sidecar_->chunks[numbers_[c]].payload_offset;
      const uint64_t bytes = contents.catalog.chunk_bytes(c);
      if (payload != 0 && place.transform == 0 && payload <= place.size_bytes &&
          bytes <= place.size_bytes - payload && place.file < contents.files.size() &&
          place.offset + place.size_bytes <= contents.files[place.file].size_bytes)
        payloads_[c] = place.offset + payload;
    }
  }
}

std::string_view ItemDigests::generation() const {
  return sidecar_.has_value() ? std::string_view(sidecar_->generation) : std::string_view();
}

std::optional<uint64_t> ItemDigests::payload_offset(size_t chunk) const {
  if (!sidecar_.has_value() || payloads_[chunk] == kUnknown) return std::nullopt;
  return payloads_[chunk];
}

Status ItemDigests::check_chunk(const Contents& contents, size_t chunk, uint64_t block,
                                std::span<const std::byte> bytes) const {
  if (!sidecar_.has_value()) return {};
  const Digest128* const expected = digest_of(*sidecar_, sidecar_->chunks[numbers_[chunk]], block);
  if (expected == nullptr) return {};
  const plan::Catalog& catalog = contents.catalog;
  const size_t tensor = catalog.tensor_of(chunk);
  const plan::TensorRecord& record = catalog.tensors[tensor];
  const Box box = catalog.chunk_box(chunk);
  integrity::ChunkIdentity identity;
  identity.generation = sidecar_->generation;
  identity.name = catalog.tensor_name(tensor);
  identity.content = dtype_name(record.dtype);
  identity.shape = catalog.shape(tensor);
  identity.box = &box;
  identity.rank = record.rank;
  const Digest128 found = integrity::block_digest(
      integrity::xxh3_128(bytes), integrity::chunk_key(identity), block, bytes.size());
  if (found == *expected) return {};
  const ItemPlace& place = contents.chunks[chunk];
  const std::string& file = contents.files[place.file].key;
  const uint64_t offset =
      (payloads_[chunk] == kUnknown ? place.offset : payloads_[chunk]) + block * kDigestBlockBytes;
  return data_loss(fmt::format("tensor '{}' {} is damaged: the digest of bytes {} to {} of {} does "
                               "not hold",
                               escape_text(identity.name, 256), box_text(box), offset,
                               offset + bytes.size(), escape_text(file)))
      .with_detail("tensor", identity.name)
      .with_detail("box", box_text(box))
      .with_detail("file", file)
      .with_detail("offset", fmt::to_string(offset))
      .with_detail("length", fmt::to_string(bytes.size()))
      .with_detail("expected", to_hex(*expected))
      .with_detail("found", to_hex(found));
}

Status ItemDigests::check_object(const Contents& contents, size_t object, uint64_t block,
                                 std::span<const std::byte> bytes) const {
  if (!sidecar_.has_value()) return {};
  const Digest128* const expected = digest_of(*sidecar_, sidecar_->objects[object], block);
  if (expected == nullptr) return {};
  const plan::ObjectRecord& record = contents.catalog.objects[object];
  const std::string_view name = contents.catalog.object_name(object);
  const Digest128 found = integrity::block_digest(
      integrity::xxh3_128(bytes), object_item_key(sidecar_->generation, name, record.rank), block,
      bytes.size());
  if (found == *expected) return {};
  const ItemPlace& place = contents.objects[object];
  const std::string& file = contents.files[place.file].key;
  const uint64_t offset = place.offset + block * kDigestBlockBytes;
  return data_loss(
             fmt::format("object '{}' is damaged: the digest of bytes {} to {} of {} does not "
                         "hold",
                         escape_text(name, 256), offset, offset + bytes.size(), escape_text(file)))
      .with_detail("object", name)
      .with_detail("file", file)
      .with_detail("offset", fmt::to_string(offset))
      .with_detail("length", fmt::to_string(bytes.size()))
      .with_detail("expected", to_hex(*expected))
      .with_detail("found", to_hex(found));
}

}  // namespace shardwright::format::torch_dcp::internal
