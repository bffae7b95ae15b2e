// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_entries.h: tensors, chunks, objects and files of a checkpoint. Reads of payload are in
// checkpoint_reads_c.cc.
#include "shardwright/checkpoint_entries.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"

namespace shardwright::capi {
namespace {

const plan::Catalog& catalog_of(const CheckpointImpl& impl) {
  return impl.checkpoint->catalog();
}

const plan::TensorRecord* tensor_record(const CheckpointImpl* impl, uint64_t index) {
  if (impl == nullptr || index >= catalog_of(*impl).tensors.size()) return nullptr;
  return &catalog_of(*impl).tensors[index];
}
const plan::ObjectRecord* object_record(const CheckpointImpl* impl, uint64_t index) {
  if (impl == nullptr || index >= catalog_of(*impl).objects.size()) return nullptr;
  return &catalog_of(*impl).objects[index];
}

// A text of a record, or "" when there is no record.
template <typename Record>
const char* record_text(const CheckpointImpl* impl, const Record* record,
                        plan::TextId Record::* field, uint64_t* size) noexcept {
  return text_out(record == nullptr ? "" : impl->texts[record->*field], size);
}

shw_tensor_info tensor_info(const plan::Catalog& catalog, uint64_t index) {
  const plan::TensorRecord& record = catalog.tensors[index];
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  info.dtype = static_cast<int32_t>(record.dtype);
  info.ndim = static_cast<int32_t>(record.dimension_count);
  info.kind = static_cast<int32_t>(record.kind);
  info.rank = record.rank;
  info.element_count = 1;
  for (const int64_t extent : catalog.shape(index)) {
    info.element_count *= static_cast<uint64_t>(extent);
  }
  info.byte_size = catalog.tensor_bytes(index);
  info.first_chunk = record.chunk_begin;
  info.chunk_count = record.chunk_count;
  return info;
}

Result<shw_chunk_info> chunk_info(const format::OpenedCheckpoint& opened, uint64_t index) {
  SHW_ASSIGN_OR_RETURN(const format::Extent extent, opened.chunk_extent(index));
  shw_chunk_info info = SHW_CHUNK_INFO_INIT;
  info.tensor = static_cast<uint32_t>(opened.catalog().tensor_of(index));
  const bool is_derived = extent.file == opened.derived_file();
  info.file = is_derived ? opened.chunk_file(index) : extent.file;
  info.offset = is_derived ? UINT64_MAX : extent.offset;
  info.byte_size = extent.size_bytes;
  info.rank = info.file < opened.files().size() ? opened.files()[info.file].rank : -1;
  return info;
}

Status check_range(uint64_t first, uint64_t count, uint64_t total, const char* noun) {
  if (first <= total && count <= total - first) return {};
  return out_of_range(fmt::format("the checkpoint has {} {}, {} from number {} on do not exist",
                                  total, noun, count, first));
}

// Fills `count` out structs of the caller with make(first + i).
template <typename Info, typename Make>
Status fill_infos(uint64_t first, uint64_t count, Info* infos, Make&& make) {
  if (count == 0) return {};
  SHW_RETURN_IF_ERROR(check_out(infos, "infos"));
  const uint32_t stride = infos->struct_size;
  auto* bytes = reinterpret_cast<std::byte*>(infos);
  for (uint64_t i = 0; i < count; ++i) {
    auto* each = reinterpret_cast<Info*>(bytes + i * stride);
    if (each->struct_size != stride) {
      return bad_argument("infos", fmt::format("infos[{}].struct_size is {}, but infos[0] says {}",
                                               i, each->struct_size, stride));
    }
  }
  for (uint64_t i = 0; i < count; ++i) {
    SHW_ASSIGN_OR_RETURN(const Info info, Result<Info>(make(first + i)));
    write_out(info, reinterpret_cast<Info*>(bytes + i * stride));
  }
  return {};
}

// A text as hosts give it.
struct GivenText {
  const char* data;
  uint64_t size;
};

// find is Checkpoint::find_tensor or find_object.
template <typename Find>
Status find_entry(const shw_checkpoint* checkpoint, Find find, const GivenText& name, int32_t rank,
                  uint64_t* out) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(checkpoint, "checkpoint"));
  SHW_RETURN_IF_ERROR(need_pointer(out, "out"));
  SHW_ASSIGN_OR_RETURN(const auto text, text_argument(name.data, name.size, "name"));
  SHW_ASSIGN_OR_RETURN(*out, (*impl->checkpoint.*find)(text, rank));
  return {};
}

// Names of all `records` of the catalog, one part each.
template <typename Records, typename Name>
Status names_of(const shw_checkpoint* checkpoint, Records records, Name name, shw_buffer** out) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(checkpoint, "checkpoint"));
  SHW_RETURN_IF_ERROR(need_pointer(out, "out"));
  const auto& catalog = catalog_of(*impl);
  std::vector<std::string_view> names((catalog.*records).size());
  for (size_t i = 0; i < names.size(); ++i) names[i] = (catalog.*name)(i);
  SHW_ASSIGN_OR_RETURN(*out, buffer_of_parts(names));
  return {};
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;
using shardwright::exec::Checkpoint;
using shardwright::plan::Catalog;
using shardwright::plan::ObjectRecord;
using shardwright::plan::TensorRecord;

extern "C" {

void shw_tensor_info_init(shw_tensor_info* info, uint32_t struct_size) noexcept {
  capi::init_struct(info, struct_size);
}

void shw_chunk_info_init(shw_chunk_info* info, uint32_t struct_size) noexcept {
  capi::init_struct(info, struct_size);
}

void shw_box_batch_init(shw_box_batch* batch, uint32_t struct_size) noexcept {
  capi::init_struct(batch, struct_size);
}

uint64_t shw_checkpoint_tensor_count(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : capi::catalog_of(*impl).tensors.size();
}

const char* shw_checkpoint_tensor_name(const shw_checkpoint* checkpoint, uint64_t index,
                                       uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::record_text(impl, capi::tensor_record(impl, index), &TensorRecord::name, size);
}

const char* shw_checkpoint_tensor_path(const shw_checkpoint* checkpoint, uint64_t index,
                                       uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::record_text(impl, capi::tensor_record(impl, index), &TensorRecord::path, size);
}

const int64_t* shw_checkpoint_tensor_shape(const shw_checkpoint* checkpoint,
                                           uint64_t index) noexcept {
  const auto* impl = capi::peek(checkpoint);
  if (capi::tensor_record(impl, index) == nullptr) return nullptr;
  return capi::catalog_of(*impl).shape(index).data();
}

shw_status shw_checkpoint_tensor_infos(const shw_checkpoint* checkpoint, uint64_t first,
                                       uint64_t count, shw_tensor_info* infos,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    const auto& catalog = capi::catalog_of(*impl);
    SHW_RETURN_IF_ERROR(capi::check_range(first, count, catalog.tensors.size(), "tensors"));
    return capi::fill_infos(first, count, infos, [&catalog](uint64_t index) {
      return capi::tensor_info(catalog, index);
    });
  });
}

shw_status shw_checkpoint_tensor_names(const shw_checkpoint* checkpoint, shw_buffer** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::names_of(checkpoint, &Catalog::tensors, &Catalog::tensor_name, out);
  });
}

shw_status shw_checkpoint_find_tensor(const shw_checkpoint* checkpoint, const char* name,
                                      uint64_t name_size, int32_t rank, uint64_t* out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::find_entry(checkpoint, &Checkpoint::find_tensor, {name, name_size}, rank, out);
  });
}

uint64_t shw_checkpoint_chunk_count(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : capi::catalog_of(*impl).chunk_count();
}

shw_status shw_checkpoint_chunk_infos(const shw_checkpoint* checkpoint, uint64_t first,
                                      uint64_t count, shw_chunk_info* infos,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    const auto& opened = impl->checkpoint->opened();
    SHW_RETURN_IF_ERROR(capi::check_range(first, count, opened.catalog().chunk_count(), "chunks"));
    return capi::fill_infos(first, count, infos,
                            [&opened](uint64_t index) { return capi::chunk_info(opened, index); });
  });
}

shw_status shw_checkpoint_chunk_box(const shw_checkpoint* checkpoint, uint64_t index, int64_t* box,
                                    uint64_t capacity, uint64_t* size, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    const auto& catalog = capi::catalog_of(*impl);
    SHW_RETURN_IF_ERROR(capi::check_range(index, 1, catalog.chunk_count(), "chunks"));
    const shardwright::Box found = catalog.chunk_box(index);
    const uint64_t needed = 2 * found.sizes.size();
    *size = needed;
    if (needed > capacity) {
      *answer = SHW_BUFFER_TOO_SMALL;
      return {};
    }
    if (needed != 0) SHW_RETURN_IF_ERROR(capi::need_pointer(box, "box"));
    std::copy(found.sizes.begin(), found.sizes.end(),
              std::copy(found.offsets.begin(), found.offsets.end(), box));
    return {};
  });
}

uint64_t shw_checkpoint_object_count(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : capi::catalog_of(*impl).objects.size();
}

const char* shw_checkpoint_object_name(const shw_checkpoint* checkpoint, uint64_t index,
                                       uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::record_text(impl, capi::object_record(impl, index), &ObjectRecord::name, size);
}

const char* shw_checkpoint_object_path(const shw_checkpoint* checkpoint, uint64_t index,
                                       uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::record_text(impl, capi::object_record(impl, index), &ObjectRecord::path, size);
}

const char* shw_checkpoint_object_content_type(const shw_checkpoint* checkpoint, uint64_t index,
                                               uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return capi::record_text(impl, capi::object_record(impl, index), &ObjectRecord::content_type,
                           size);
}

uint64_t shw_checkpoint_object_size(const shw_checkpoint* checkpoint, uint64_t index) noexcept {
  const auto* record = capi::object_record(capi::peek(checkpoint), index);
  return record == nullptr ? 0 : record->size_bytes;
}

int32_t shw_checkpoint_object_rank(const shw_checkpoint* checkpoint, uint64_t index) noexcept {
  const auto* record = capi::object_record(capi::peek(checkpoint), index);
  return record == nullptr ? -1 : record->rank;
}

shw_status shw_checkpoint_object_names(const shw_checkpoint* checkpoint, shw_buffer** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::names_of(checkpoint, &Catalog::objects, &Catalog::object_name, out);
  });
}

shw_status shw_checkpoint_find_object(const shw_checkpoint* checkpoint, const char* name,
                                      uint64_t name_size, int32_t rank, uint64_t* out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::find_entry(checkpoint, &Checkpoint::find_object, {name, name_size}, rank, out);
  });
}

uint64_t shw_checkpoint_file_count(const shw_checkpoint* checkpoint) noexcept {
  const auto* impl = capi::peek(checkpoint);
  return impl == nullptr ? 0 : impl->checkpoint->opened().files().size();
}

const char* shw_checkpoint_file_name(const shw_checkpoint* checkpoint, uint64_t index,
                                     uint64_t* size) noexcept {
  const auto* impl = capi::peek(checkpoint);
  const bool there = impl != nullptr && index < impl->checkpoint->opened().files().size();
  return capi::text_out(
      there ? std::string_view(impl->checkpoint->opened().files()[index].key) : "", size);
}

uint64_t shw_checkpoint_file_size(const shw_checkpoint* checkpoint, uint64_t index) noexcept {
  const auto* impl = capi::peek(checkpoint);
  const bool there = impl != nullptr && index < impl->checkpoint->opened().files().size();
  return there ? impl->checkpoint->opened().files()[index].size_bytes : 0;
}

}  // extern "C"
