// SPDX-License-Identifier: Apache-2.0
//
// Appending to catalogs: check all, then append all.
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/catalog.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan {
namespace {

constexpr size_t kMaxRecords =
    std::numeric_limits<uint32_t>::max() - 3;  // ids are 32 bits, three texts per record

Status check_owner(EntryKind kind, int32_t rank, std::string_view name) {
  if (kind != EntryKind::kReplicated && kind != EntryKind::kSharded &&
      kind != EntryKind::kRankLocal) {
    return invalid_argument(fmt::format("'{}' has no settled kind", escape_text(name)));
  }
  if ((kind == EntryKind::kRankLocal) != (rank >= 0)) {
    return invalid_argument(fmt::format("'{}' is {} but names rank {} as its owner",
                                        escape_text(name), entry_kind_name(kind), rank));
  }
  return {};
}

Status check_texts(const Catalog& catalog, std::string_view name, std::string_view path) {
  if (name.size() > kMaxNameBytes || path.size() > kMaxPathTextBytes) {
    return invalid_argument(
        fmt::format("a name of {} and a path of {} bytes exceed the limits {} and {}", name.size(),
                    path.size(), kMaxNameBytes, kMaxPathTextBytes));
  }
  if (!is_valid_utf8(name) || !is_valid_utf8(path)) {
    return invalid_argument(
        fmt::format("the name '{}' or its path is not UTF-8", escape_text(name)));
  }
  if (catalog.texts.size() > kMaxRecords)
    return resource_exhausted("texts", "too many texts for one catalog");
  return {};
}

Status check_tensor(const Catalog& catalog, const CatalogBuilder::Tensor& tensor,
                    std::span<const CatalogBuilder::Chunk> chunks) {
  SHW_RETURN_IF_ERROR(check_texts(catalog, tensor.name, tensor.path));
  SHW_RETURN_IF_ERROR(check_owner(tensor.kind, tensor.rank, tensor.name));
  if (!dtype_is_valid(tensor.dtype)) {
    return invalid_argument(
        fmt::format("tensor '{}' has no valid dtype", escape_text(tensor.name)));
  }
  if (tensor.shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return invalid_argument(fmt::format("tensor '{}' has {} dimensions, more than {}",
                                        escape_text(tensor.name), tensor.shape.size(),
                                        kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const int64_t elements, checked_element_count(tensor.shape));
  SHW_ASSIGN_OR_RETURN([[maybe_unused]] const uint64_t bytes,
                       dtype_packed_bytes(tensor.dtype, elements));
  for (const CatalogBuilder::Chunk& each : chunks) {
    Status status = check_box(each.box, tensor.shape);
    if (!status.ok()) {
      return std::move(status)
          .with_detail("tensor", tensor.name)
          .annotated(fmt::format("add a box of tensor '{}'", escape_text(tensor.name)));
    }
  }
  return {};
}

}  // namespace

uint64_t internal::split_mask_of(std::span<const int64_t> shape,
                                 std::span<const CatalogBuilder::Chunk> chunks) {
  uint64_t mask = 0;
  for (const CatalogBuilder::Chunk& each : chunks) {
    for (size_t d = 0; d < shape.size(); ++d) {
      // A box of full size begins at zero, because it lies inside the shape.
      if (each.box.sizes[d] != shape[d]) mask |= uint64_t{1} << d;
    }
  }
  return mask;
}

Status CatalogBuilder::add_tensor(const Tensor& tensor, std::span<const Chunk> chunks) {
  SHW_RETURN_IF_ERROR(check_tensor(*catalog_, tensor, chunks));
  TensorRecord record;
  record.name = catalog_->texts.append(tensor.name);
  record.path = catalog_->texts.append(tensor.path);
  record.dtype = tensor.dtype;
  record.kind = tensor.kind;
  record.rank = tensor.rank;
  record.shape_begin = catalog_->shapes.size();
  record.dimension_count = static_cast<uint32_t>(tensor.shape.size());
  record.split_mask = internal::split_mask_of(tensor.shape, chunks);
  record.chunk_begin = catalog_->chunk_count();
  record.chunk_count = chunks.size();
  record.box_begin = catalog_->boxes.size();
  record.more_begin = catalog_->more.size();
  catalog_->shapes.insert(catalog_->shapes.end(), tensor.shape.begin(), tensor.shape.end());
  catalog_->tensors.push_back(record);
  const internal::SplitDims split = internal::split_dims(tensor.shape, record.split_mask);
  for (const Chunk& each : chunks) {
    ChunkRecord chunk;
    chunk.tensor = static_cast<uint32_t>(catalog_->tensors.size() - 1);
    chunk.place = each.place;
    internal::pack_box(split, each.box, &chunk, &catalog_->more);
    catalog_->boxes.push_back(chunk);
  }
  return {};
}

Status CatalogBuilder::add_object(const ObjectRecord& record, std::string_view name,
                                  std::string_view path, std::string_view content_type) {
  SHW_RETURN_IF_ERROR(check_texts(*catalog_, name, path));
  SHW_RETURN_IF_ERROR(check_owner(record.kind, record.rank, name));
  if (record.kind == EntryKind::kSharded) {
    return invalid_argument(fmt::format("object '{}' cannot be sharded", escape_text(name)));
  }
  if (content_type.size() > kMaxNameBytes || !is_valid_utf8(content_type)) {
    return invalid_argument(
        fmt::format("the content type of object '{}' is not UTF-8 of at most {} bytes",
                    escape_text(name), kMaxNameBytes));
  }
  if (record.size_bytes > max_object_bytes_) {
    return resource_exhausted(
        "object_bytes", fmt::format("object '{}' has {} bytes, more than {}", escape_text(name),
                                    record.size_bytes, max_object_bytes_));
  }
  ObjectRecord added = record;
  added.name = catalog_->texts.append(name);
  added.path = catalog_->texts.append(path);
  // Runs of objects mostly share one content type.
  const bool same_type = !catalog_->objects.empty() &&
                         catalog_->texts.at(catalog_->objects.back().content_type) == content_type;
  added.content_type =
      same_type ? catalog_->objects.back().content_type : catalog_->texts.append(content_type);
  catalog_->objects.push_back(added);
  return {};
}

}  // namespace shardwright::plan
