// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/rank_items.h"

#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/torch_dcp/byte_items.h"
#include "core/format/torch_dcp/value_pickle.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr uint64_t kItemAlignmentBytes = 64;

class ItemPlacer {
 public:
  ItemPlacer(const RankContents& contents, Framing framing)
      : contents_(contents), framing_(framing) {}

  Result<FileLayout> run() {
    layout_.items.reserve(contents_.list.items.size());
    for (uint32_t i = 0; i < contents_.list.items.size(); ++i) {
      const plan::WriteItem& item = contents_.list.items[i];
      SHW_RETURN_IF_ERROR(item.piece == plan::kObjectPiece ? place_object(i, item)
                                                           : place_tensor(i, item));
    }
    layout_.data_bytes = end_;
    return std::move(layout_);
  }

 private:
  Status place_tensor(uint32_t number, const plan::WriteItem& item) {
    const TensorRef entry = contents_.state.tensors()[item.entry];
    Result<uint32_t> wrapping = wrapping_of(entry, item);
    if (!wrapping.ok()) {
      return Status(wrapping.status())
          .annotated(fmt::format("storing tensor '{}'", escape_text(entry.name)))
          .with_detail("tensor", entry.name);
    }
    return place({number, 0, item.size_bytes, PlacedItem::kTogether, *wrapping});
  }

  // Tensors of one dtype and shape share theirs.
  Result<uint32_t> wrapping_of(const TensorRef& entry, const plan::WriteItem& item) {
    const DType dtype = entry.local.dtype;
    SHW_ASSIGN_OR_RETURN(const TorchElements elements, torch_elements(dtype));
    SHW_ASSIGN_OR_RETURN(const Dims sizes, torch_extents(elements, entry.pieces.sizes(item.piece)));
    auto key = std::pair(dtype, std::vector<int64_t>(sizes.begin(), sizes.end()));
    if (const auto known = wrapping_of_.find(key); known != wrapping_of_.end())
      return known->second;
    SHW_ASSIGN_OR_RETURN(Wrapping wrapping, wrap_tensor(framing_, dtype, sizes, item.size_bytes));
    const uint32_t number = add(std::move(wrapping));
    wrapping_of_.emplace(std::move(key), number);
    return number;
  }

  // A value lies in the wrapping, which is all of the item.
  Status place_object(uint32_t number, const plan::WriteItem& item) {
    const ObjectEntry& entry = contents_.state.objects()[item.entry];
    if (is_stored_bare(entry.content_type))
      return place({number, 0, item.size_bytes, PlacedItem::kTogether, PlacedItem::kBare});
    if (entry.bytes_elsewhere > 0) return too_large(entry);
    auto archive = object_item(framing_, entry.content_type, entry.bytes);
    if (!archive.ok()) {
      return Status(archive.status())
          .annotated(fmt::format("storing object '{}'", escape_text(entry.name)))
          .with_detail("object", entry.name);
    }
    Wrapping wrapping;
    wrapping.front = std::move(*archive);
    const uint32_t wrapped = add(std::move(wrapping));
    return place({number, 0, 0, PlacedItem::kTogether, wrapped});
  }

  static Status too_large(const ObjectEntry& entry) {
    return resource_exhausted(
               "object", fmt::format("object '{}' of {} bytes is larger than the {} that can be "
                                     "stored as a value of torch",
                                     escape_text(entry.name), entry.size_bytes(), kMaxObjectBytes))
        .with_detail("object", entry.name);
  }

  uint32_t add(Wrapping wrapping) {
    layout_.wrappings.push_back(std::move(wrapping));
    return static_cast<uint32_t>(layout_.wrappings.size() - 1);
  }

  Status place(PlacedItem placed) {
    const uint64_t front =
        placed.wrapping == PlacedItem::kBare ? 0 : layout_.wrappings[placed.wrapping].front.size();
    const bool is_value = placed.size_bytes == 0;
    const bool is_large = placed.size_bytes >= kSlabChunkLimitBytes;
    // The front of a tensor is a multiple of the small alignment itself.
    uint64_t position = end_;
    if (is_value) {
      static_cast<void>(checked_round_up(position, kItemAlignmentBytes, &position));
      position += front;
    } else if (!checked_add(position, front, &position) ||
               !checked_round_up(position, is_large ? kExtentAlignmentBytes : kItemAlignmentBytes,
                                 &position)) {
      return too_many();
    }
    placed.position = position;
    uint64_t end = 0;
    if (!checked_add(position, placed.size_bytes, &end) || end > kMaxFileEnd) return too_many();
    end_ = layout_.wrapped_end(placed);
    layout_.items.push_back(placed);
    return {};
  }

  static constexpr uint64_t kMaxFileEnd = uint64_t{1} << 61;
  static Status too_many() {
    return invalid_argument("the items of this rank need more bytes than a file can have");
  }

  const RankContents& contents_;
  const Framing framing_;
  FileLayout layout_;
  std::map<std::pair<DType, std::vector<int64_t>>, uint32_t> wrapping_of_;
  uint64_t end_ = 0;
};

void append(uint64_t number, std::vector<std::byte>* out) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  out->insert(out->end(), bytes.begin(), bytes.end());
}

uint64_t take(std::span<const std::byte>* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes->data(), sizeof(number));
  *bytes = bytes->subspan(sizeof(number));
  return number;
}

Status no_details() {
  return data_loss("what a rank says of its items is damaged");
}

}  // namespace

Result<FileLayout> lay_out_items(const RankContents& contents, Framing framing) {
  return ItemPlacer(contents, framing).run();
}

Digest128 object_item_key(std::string_view generation, std::string_view name, int32_t rank) {
  integrity::ChunkIdentity identity;
  identity.generation = generation;
  identity.name = name;
  identity.content = kTorchSaveType;
  identity.rank = rank;
  return integrity::chunk_key(identity);
}

void append_item_digests(std::span<const std::byte> item, const Digest128& key,
                         std::vector<Digest128>* digests) {
  for (uint64_t block = 0; block * kDigestBlockBytes < item.size(); ++block) {
    const uint64_t begin = block * kDigestBlockBytes;
    const auto bytes = item.subspan(
        static_cast<size_t>(begin),
        static_cast<size_t>(std::min<uint64_t>(kDigestBlockBytes, item.size() - begin)));
    digests->push_back(
        integrity::block_digest(integrity::xxh3_128(bytes), key, block, bytes.size()));
  }
}

WrittenItems written_items(const RankContents& contents, const FileLayout& layout,
                           std::span<const Digest128> digests) {
  WrittenItems written;
  written.items.reserve(layout.items.size());
  for (const PlacedItem& placed : layout.items) {
    const plan::WriteItem& item = contents.list.items[placed.item];
    WrittenItem each;
    each.offset = layout.wrapped_begin(placed);
    each.size_bytes = layout.wrapped_end(placed) - each.offset;
    each.payload_offset = placed.position - each.offset;
    each.payload_bytes = placed.size_bytes;
    const auto blocks = static_cast<size_t>(integrity::block_count(item.size_bytes));
    const auto own = contents.digests ? digests.first(blocks) : std::span<const Digest128>();
    if (contents.digests) digests = digests.subspan(blocks);
    const bool is_value = item.piece == plan::kObjectPiece && placed.wrapping != PlacedItem::kBare;
    if (is_value) {
      each.payload_offset = 0;
      each.payload_bytes = each.size_bytes;
    }
    if (is_value && contents.digests) {
      const ObjectEntry& entry = contents.state.objects()[item.entry];
      const int32_t rank =
          contents.owner(contents.local.description.catalog.objects[item.entry].rank);
      append_item_digests(layout.wrappings[placed.wrapping].front,
                          object_item_key(contents.list.generation, entry.name, rank),
                          &written.digests);
    } else {
      written.digests.insert(written.digests.end(), own.begin(), own.end());
    }
    written.items.push_back(each);
  }
  return written;
}

std::vector<std::byte> encode_details(const WrittenItems& items) {
  std::vector<std::byte> out;
  out.reserve(16 + items.items.size() * sizeof(WrittenItem) +
              items.digests.size() * sizeof(Digest128));
  append(items.items.size(), &out);
  const auto records = std::as_bytes(std::span(items.items));
  out.insert(out.end(), records.begin(), records.end());
  append(items.digests.size(), &out);
  const auto digests = std::as_bytes(std::span(items.digests));
  out.insert(out.end(), digests.begin(), digests.end());
  return out;
}

Result<WrittenItems> decode_details(std::span<const std::byte> bytes) {
  WrittenItems written;
  if (bytes.size() < sizeof(uint64_t)) return no_details();
  const uint64_t items = take(&bytes);
  if (items > bytes.size() / sizeof(WrittenItem)) return no_details();
  written.items.resize(static_cast<size_t>(items));
  const size_t item_bytes = static_cast<size_t>(items) * sizeof(WrittenItem);
  if (item_bytes > 0) std::memcpy(written.items.data(), bytes.data(), item_bytes);
  bytes = bytes.subspan(item_bytes);
  if (bytes.size() < sizeof(uint64_t)) return no_details();
  const uint64_t digests = take(&bytes);
  if (bytes.size() % sizeof(Digest128) != 0 || digests != bytes.size() / sizeof(Digest128))
    return no_details();
  written.digests.resize(static_cast<size_t>(digests));
  if (digests > 0) std::memcpy(written.digests.data(), bytes.data(), bytes.size());
  return written;
}

}  // namespace shardwright::format::torch_dcp
