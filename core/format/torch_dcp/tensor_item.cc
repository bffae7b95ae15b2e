// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/tensor_item.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/archive/zip_reader.h"
#include "core/layout/box.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::ArchiveBytes;
using archive::TorchTensor;

constexpr std::string_view kPickleRecord = "data.pkl";
constexpr std::string_view kStorageFolder = "data/";

std::string list_of(std::span<const int64_t> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

struct ReadTensor {
  archive::PickleData data;  // has the texts of the tensor
  TorchTensor tensor;
};

// The one tensor that the pickle of an item is.
Result<ReadTensor> tensor_of(const ArchiveBytes& item, std::span<const std::byte> pickle,
                             DType dtype, std::span<const int64_t> sizes) {
  archive::PickleOptions options;
  options.file = item.file;
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(archive::PickleData data, archive::read_pickle(pickle, options));
  SHW_ASSIGN_OR_RETURN(std::optional<TorchTensor> tensor,
                       archive::torch_tensor(data, data.root(), item.file));
  if (!tensor.has_value()) return item.damaged(0, "an item of a tensor holds something else");
  if (tensor->dtype != dtype || !std::ranges::equal(tensor->shape, sizes)) {
    return item.damaged(0, fmt::format("an item holds a tensor of {} {} where the index has {} {}",
                                       dtype_name(tensor->dtype), list_of(tensor->shape),
                                       dtype_name(dtype), list_of(sizes)));
  }
  return ReadTensor{std::move(data), std::move(*tensor)};
}

Result<FoundElements> found_at(const ArchiveBytes& item, const TorchTensor& tensor,
                               uint64_t payload, uint32_t crc) {
  uint64_t end = 0;
  FoundElements found;
  StridedSource& source = found.source;
  if (!checked_add(payload, tensor.storage_bytes, &end) || end > item.size_bytes ||
      !checked_add(payload, tensor.offset_bytes, &source.offset))
    return item.damaged(payload, "an item ends before its tensor does");
  // Elements of less than a byte are packed, so none is gathered by its place.
  source.element_bytes =
      dtype_is_subbyte(tensor.dtype) ? 1 : static_cast<uint64_t>(dtype_bits(tensor.dtype) / 8);
  source.shape = tensor.shape;
  source.strides = tensor.strides;
  const auto elements = elements_spanned(tensor.shape, tensor.strides);
  const auto bits = static_cast<uint64_t>(dtype_bits(tensor.dtype));
  found.is_whole_record = elements.ok() && tensor.offset_bytes == 0 &&
                          (*elements * bits + 7) / 8 == tensor.storage_bytes;
  if (found.is_whole_record) found.crc = crc;
  return found;
}

}  // namespace

Result<std::optional<FoundElements>> find_elements_in_head(const ArchiveBytes& item,
                                                           std::span<const std::byte> head,
                                                           DType dtype,
                                                           std::span<const int64_t> sizes) {
  SHW_ASSIGN_OR_RETURN(const std::vector<archive::ZipHeadEntry> entries,
                       archive::read_zip_head(item, head));
  if (entries.empty() || !entries[0].name.ends_with(kPickleRecord) ||
      entries[0].payload_offset >= head.size() || !entries[0].size_bytes.has_value() ||
      *entries[0].size_bytes > head.size() - entries[0].payload_offset)
    return std::optional<FoundElements>();
  const std::string_view root =
      entries[0].name.substr(0, entries[0].name.size() - kPickleRecord.size());
  const auto pickle = head.subspan(static_cast<size_t>(entries[0].payload_offset),
                                   static_cast<size_t>(*entries[0].size_bytes));
  SHW_ASSIGN_OR_RETURN(const ReadTensor read, tensor_of(item, pickle, dtype, sizes));
  const TorchTensor& tensor = read.tensor;
  const std::string record = fmt::format("{}{}{}", root, kStorageFolder, tensor.storage);
  const auto found = std::ranges::find(entries, record, &archive::ZipHeadEntry::name);
  if (found == entries.end()) return std::optional<FoundElements>();
  if (found->size_bytes.has_value() && *found->size_bytes != tensor.storage_bytes)
    return item.damaged(found->payload_offset, "a record has another size than its storage");
  SHW_ASSIGN_OR_RETURN(FoundElements elements,
                       found_at(item, tensor, found->payload_offset, found->crc));
  return std::optional(std::move(elements));
}

Result<FoundElements> find_elements(const ArchiveBytes& item, std::span<const std::byte> head,
                                    DType dtype, std::span<const int64_t> sizes) {
  auto quick = find_elements_in_head(item, head, dtype, sizes);
  if (quick.ok() && quick->has_value()) return std::move(**quick);
  SHW_ASSIGN_OR_RETURN(const archive::TorchArchive records, archive::TorchArchive::open(item));
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, records.read_pickle(item));
  SHW_ASSIGN_OR_RETURN(const ReadTensor read, tensor_of(item, pickle, dtype, sizes));
  const TorchTensor& tensor = read.tensor;
  const std::optional<archive::ZipEntry> entry = records.storage(tensor.storage);
  if (!entry.has_value()) return item.damaged(0, "an item lacks the storage of its tensor");
  if (entry->size_bytes != tensor.storage_bytes)
    return item.damaged(entry->header_offset, "a record has another size than its storage");
  SHW_ASSIGN_OR_RETURN(const uint64_t payload, archive::locate_payload(item, *entry));
  return found_at(item, tensor, payload, entry->crc);
}

}  // namespace shardwright::format::torch_dcp
