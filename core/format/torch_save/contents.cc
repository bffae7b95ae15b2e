// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_save/contents_internal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/torch_save/value_entries.h"

namespace shardwright::format::torch_save::internal {
namespace {

// What all tensors may have together: views and expanded tensors share storages.
constexpr uint64_t kBytesPerStoredByte = 64;
constexpr uint64_t kFreeTensorBytes = uint64_t{256} << 20;

class ContentsBuilder {
 public:
  explicit ContentsBuilder(const StoredValue& stored)
      : stored_(stored), tensor_bytes_left_(kFreeTensorBytes) {
    uint64_t shared = 0;
    if (!checked_multiply(stored.file_bytes, kBytesPerStoredByte, &shared) ||
        !checked_add(tensor_bytes_left_, shared, &tensor_bytes_left_))
      tensor_bytes_left_ = ~uint64_t{0};
  }

  Result<Contents> build() {
    archive::PickleOptions options;
    options.file = stored_.name;
    options.vocabulary = archive::torch_vocabulary();
    SHW_ASSIGN_OR_RETURN(const archive::PickleData data,
                         archive::read_pickle(stored_.pickle, options));
    SHW_ASSIGN_OR_RETURN(ValueEntries value, entries_of(data, stored_.name, stored_.pickle.size()));
    SHW_RETURN_IF_ERROR(check_names(value.entries));
    for (const ValueEntry& entry : value.entries) {
      Status status = entry.tensor.has_value() ? add_tensor(entry) : add_object(entry);
      if (!status.ok()) return with_file(std::move(status));
    }
    contents_.metadata = std::move(value.metadata);
    contents_.notes = std::move(value.notes);
    if (stored_.is_script)
      contents_.notes.emplace_back(
          "the file holds a model with its code: objects of its classes are listed whole, and "
          "tensors inside of them are not");
    if (stored_.compressed_records > 0)
      contents_.notes.push_back(fmt::format(
          "{} records of the archive are compressed: they are not read, and their checksums are "
          "not compared",
          stored_.compressed_records));
    plan::find_grids(&contents_.catalog);
    SHW_RETURN_IF_ERROR(with_file(plan::check_catalog(contents_.catalog)));
    return std::move(contents_);
  }

 private:
  Status with_file(Status status) const {
    if (status.ok() || !status.detail("file").empty()) return status;
    return std::move(status)
        .with_detail("file", stored_.name)
        .annotated(fmt::format("open '{}'", escape_text(stored_.name)));
  }

  // Of {"a": {"b": x}, "a.b": y} both are a.b.
  Status check_names(const std::vector<ValueEntry>& entries) const {
    std::vector<uint32_t> order(entries.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto name_of = [&](uint32_t i) -> const std::string& { return entries[i].name; };
    std::ranges::sort(order, {}, name_of);
    const auto twice = std::ranges::adjacent_find(order, {}, name_of);
    if (twice == order.end()) return {};
    return unimplemented(fmt::format("file '{}': two entries of its value have the name '{}', once "
                                     "the keys are joined",
                                     escape_text(stored_.name), escape_text(name_of(*twice))))
        .with_detail("file", stored_.name)
        .with_detail("tensor", name_of(*twice));
  }

  Status damaged(const ValueEntry& entry, std::string_view what) const {
    return data_loss(fmt::format("file '{}': tensor '{}' {}", escape_text(stored_.name),
                                 escape_text(entry.name), what))
        .with_detail("file", stored_.name)
        .with_detail("tensor", entry.name);
  }

  Status add_tensor(const ValueEntry& entry) {
    const archive::TorchTensor& tensor = *entry.tensor;
    const StorageRecord* const record = stored_.find(tensor.storage);
    if (record == nullptr)
      return damaged(entry, fmt::format("lies in storage '{}', which the file does not have",
                                        escape_text(tensor.storage, 64)));
    if (record->size_bytes != tensor.storage_bytes)
      return damaged(entry, fmt::format("lies in storage '{}' of {} bytes, and the file has {}",
                                        escape_text(tensor.storage, 64), tensor.storage_bytes,
                                        record->size_bytes));
    plan::CatalogBuilder::Tensor described;
    described.name = entry.name;
    described.path = entry.path;
    described.dtype = tensor.dtype;
    described.shape = tensor.shape;
    const Box whole = whole_box(tensor.shape);
    std::vector<plan::CatalogBuilder::Chunk> chunks;
    if (!box_is_empty(whole)) chunks.push_back({whole, 0});
    SHW_RETURN_IF_ERROR(plan::CatalogBuilder(&contents_.catalog).add_tensor(described, chunks));
    if (chunks.empty()) return {};
    return place(entry, *record, contents_.catalog.chunk_bytes(contents_.chunks.size()));
  }

  Status place(const ValueEntry& entry, const StorageRecord& record, uint64_t bytes) {
    if (bytes > tensor_bytes_left_)
      return resource_exhausted(
                 "archive", fmt::format("file '{}': up to '{}' its tensors have too many bytes for "
                                        "a file of {}: they are views that share or repeat storage",
                                        escape_text(stored_.name), escape_text(entry.name),
                                        stored_.file_bytes))
          .with_detail("file", stored_.name)
          .with_detail("tensor", entry.name);
    tensor_bytes_left_ -= bytes;
    const archive::TorchTensor& tensor = *entry.tensor;
    // The tensor lies in its storage, and that in the file.
    const uint64_t offset = record.offset + tensor.offset_bytes;
    if (is_packed(tensor.shape, tensor.strides)) {
      contents_.chunks.push_back({kTheFile, offset, bytes});
      const bool is_record = offset == record.offset && bytes == record.size_bytes;
      contents_.checksums.push_back(is_record ? record.crc : 0);
      return {};
    }
    StridedSource source;
    source.offset = offset;
    source.element_bytes = static_cast<uint64_t>(dtype_bits(tensor.dtype) / 8);
    source.shape = tensor.shape;
    source.strides = tensor.strides;
    const Result<uint64_t> spanned = elements_spanned(source.shape, source.strides);
    if (tensor.offset_bytes == 0 && spanned.ok() &&
        *spanned * source.element_bytes == record.size_bytes)
      source.crc = record.crc;
    contents_.chunks.push_back({kDerived, contents_.derived.add_strided(std::move(source)), bytes});
    contents_.checksums.push_back(0);
    return {};
  }

  Status add_object(const ValueEntry& entry) {
    plan::ObjectRecord record;
    record.size_bytes = entry.object.bytes.size();
    SHW_RETURN_IF_ERROR(plan::CatalogBuilder(&contents_.catalog, kMaxDescribedObjectBytes)
                            .add_object(record, entry.name, entry.path, entry.object.content_type));
    const auto bytes = std::as_bytes(std::span(entry.object.bytes));
    contents_.objects.push_back({kDerived, contents_.derived.add_bytes(bytes), bytes.size()});
    return {};
  }

  const StoredValue& stored_;
  uint64_t tensor_bytes_left_;
  Contents contents_;
};

}  // namespace

Result<Contents> contents_of(const StoredValue& stored) {
  return ContentsBuilder(stored).build();
}

}  // namespace shardwright::format::torch_save::internal
