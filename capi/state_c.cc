// SPDX-License-Identifier: Apache-2.0
//
// state.h: states and their getters. Reading batches is in state_batch.cc.
#include "capi/state_batch.h"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/tensor_argument.h"
#include "capi/box_list.h"
#include "capi/dlpack/dlpack_import.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/object_key.h"

namespace shardwright::capi {
namespace {

// Adds DLPack tensors of either kind; they are ours only when all were added.
template <typename T>
Status add_dlpack(shw_state* state, const shw_tensor_batch* given, T* const* managed) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(state, "state"));
  shw_tensor_batch batch;
  SHW_RETURN_IF_ERROR(read_struct(given, "batch", &batch));
  SHW_ASSIGN_OR_RETURN(const auto list, list_argument(managed, batch.count, "managed"));
  if (batch.tensors != nullptr) {
    return bad_argument("batch", "tensors must be NULL when DLPack tensors are given");
  }
  std::vector<shw_tensor> described(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    auto tensor = describe_dlpack(list[i]);
    if (!tensor.ok()) return tensor.status().annotated(fmt::format("managed[{}]", i));
    described[i] = *tensor;
  }
  batch.tensors = described.data();
  auto owner = std::make_shared<DLPackOwner<T>>(std::vector<T*>(list.begin(), list.end()));
  impl->state->add_keepalive(owner);
  SHW_RETURN_IF_ERROR(add_tensor_batch(batch, impl->state.get()));
  owner->arm();
  return {};
}

Result<TensorRef> need_tensor(const shw_state* state, uint64_t index) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(state, "state"));
  const uint64_t count = impl->state->tensors().size();
  if (index < count) return impl->state->tensors()[index];
  return out_of_range(fmt::format("the state has {} tensors, there is no number {}", count, index));
}

// The entry, or one without texts when there is none.
TensorRef tensor_at(const shw_state* state, uint64_t index) {
  const auto* impl = peek(state);
  const bool there = impl != nullptr && index < impl->state->tensors().size();
  return there ? impl->state->tensors()[index] : TensorRef();
}
const ObjectEntry* object_at(const shw_state* state, uint64_t index) {
  const auto* impl = peek(state);
  const bool there = impl != nullptr && index < impl->state->objects().size();
  return there ? &impl->state->objects()[index] : nullptr;
}

Status name_not_found(std::string_view name, const char* noun,
                      const std::vector<std::string_view>& names) {
  const std::string nearest =
      escape_text(fmt::format("{}", fmt::join(nearest_names(name, names, kNearestNames), ", ")));
  return not_found(
             fmt::format("the state has no {} '{}'; nearest: {}", noun, escape_text(name), nearest))
      .with_detail("tensor", name)
      .with_detail("hint", nearest);
}

template <typename Entries>
std::vector<std::string_view> names_of(const Entries& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_tensor_batch_init(shw_tensor_batch* batch, uint32_t struct_size) noexcept {
  capi::init_struct(batch, struct_size);
}

void shw_object_batch_init(shw_object_batch* batch, uint32_t struct_size) noexcept {
  capi::init_struct(batch, struct_size);
}

shw_status shw_state_create(shw_state** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    *out = capi::make_handle<shw_state>(std::make_shared<capi::StateImpl>());
    return {};
  });
}

shw_status shw_state_reserve(shw_state* state, uint64_t tensors, uint64_t name_bytes,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    return impl->state->reserve(tensors, name_bytes);
  });
}

shw_status shw_state_add_tensors(shw_state* state, const shw_tensor_batch* batch,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    shw_tensor_batch copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(batch, "batch", &copy));
    if (copy.count != 0) SHW_RETURN_IF_ERROR(capi::need_pointer(copy.tensors, "tensors"));
    return capi::add_tensor_batch(copy, impl->state.get());
  });
}

shw_status shw_state_add_tensor(shw_state* state, const char* name, uint64_t name_size,
                                const shw_tensor* tensor, const int64_t* global_shape,
                                const int64_t* offsets, int32_t kind, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    shw_tensor copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(tensor, "tensor", &copy));
    return capi::add_one_tensor(text, copy, {global_shape, offsets, kind}, impl->state.get());
  });
}

shw_status shw_state_add_dlpack(shw_state* state, const shw_tensor_batch* batch,
                                struct DLManagedTensorVersioned* const* managed,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::add_dlpack(state, batch, managed); });
}

shw_status shw_state_add_dlpack_legacy(shw_state* state, const shw_tensor_batch* batch,
                                       struct DLManagedTensor* const* managed,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::add_dlpack(state, batch, managed); });
}

shw_status shw_state_add_objects(shw_state* state, const shw_object_batch* batch,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    shw_object_batch copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(batch, "batch", &copy));
    SHW_ASSIGN_OR_RETURN(auto entries, capi::read_object_batch(copy));
    return impl->state->add_objects(std::move(entries));
  });
}

shw_status shw_state_add_object(shw_state* state, const char* name, uint64_t name_size,
                                const char* content_type, const void* data, uint64_t size,
                                int32_t kind, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    SHW_RETURN_IF_ERROR(capi::option_in_range(kind, SHW_KIND_RANK_LOCAL, "kind"));
    shardwright::ObjectEntry entry;
    entry.name = text;
    entry.kind = static_cast<shardwright::EntryKind>(kind);
    const bool typed = content_type != nullptr && *content_type != '\0';
    entry.content_type = typed ? content_type : "application/octet-stream";
    entry.bytes.assign(bytes.begin(), bytes.end());
    std::vector<shardwright::ObjectEntry> entries;
    entries.push_back(std::move(entry));
    return impl->state->add_objects(std::move(entries));
  });
}

uint64_t shw_state_tensor_count(const shw_state* state) noexcept {
  const auto* impl = capi::peek(state);
  return impl == nullptr ? 0 : impl->state->tensors().size();
}

uint64_t shw_state_object_count(const shw_state* state) noexcept {
  const auto* impl = capi::peek(state);
  return impl == nullptr ? 0 : impl->state->objects().size();
}

const char* shw_state_tensor_name(const shw_state* state, uint64_t index, uint64_t* size) noexcept {
  return capi::text_out(capi::tensor_at(state, index).name, size);
}

const char* shw_state_tensor_path(const shw_state* state, uint64_t index, uint64_t* size) noexcept {
  return capi::text_out(capi::tensor_at(state, index).path, size);
}

shw_status shw_state_tensor(const shw_state* state, uint64_t index, shw_tensor* out,
                            shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto entry, capi::need_tensor(state, index));
    if (entry.memory.exists()) {
      return shardwright::failed_precondition(fmt::format(
          "the boxes of '{}' lie in several memories; the state that was mapped has them",
          shardwright::escape_text(entry.name)));
    }
    shw_tensor described = capi::tensor_of_span(entry.local);
    described.name_index = index;
    capi::write_out(described, out);
    return {};
  });
}

shw_status shw_state_global_shape(const shw_state* state, uint64_t index, int64_t* extents,
                                  uint64_t capacity, uint64_t* size, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto entry, capi::need_tensor(state, index));
    return capi::write_values(entry.global_shape, {"extents", extents, capacity, size}, answer);
  });
}

shw_status shw_state_boxes(const shw_state* state, uint64_t index, int64_t* boxes,
                           uint64_t capacity, uint64_t* size, shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_ASSIGN_OR_RETURN(const auto entry, capi::need_tensor(state, index));
    std::vector<shardwright::Piece> pieces;
    for (size_t p = 0; p < entry.pieces.size(); ++p) pieces.push_back(entry.pieces[p]);
    return capi::write_boxes(pieces, {"boxes", boxes, capacity, size}, answer);
  });
}

shw_status shw_object_key(const char* key, uint64_t key_size, const int64_t* cell,
                          const int64_t* shape, int32_t ndim, shw_buffer** out,
                          shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(key, key_size, "key"));
    if (ndim < 0) return capi::bad_argument("ndim", "it is negative");
    const auto axes = static_cast<uint64_t>(ndim);
    SHW_ASSIGN_OR_RETURN(const auto place, capi::list_argument(cell, axes, "cell"));
    SHW_ASSIGN_OR_RETURN(const auto extents, capi::list_argument(shape, axes, "shape"));
    SHW_ASSIGN_OR_RETURN(const auto name, shardwright::format_object_key(text, place, extents));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(name)));
    return {};
  });
}

shw_status shw_object_key_parse(const char* name, uint64_t name_size, int64_t* values,
                                uint64_t capacity, uint64_t* size, uint64_t* key_size,
                                shw_error** err) noexcept {
  return capi::guarded_answer(err, [&](shw_status* answer) -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(size, "size"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(key_size, "key_size"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    SHW_ASSIGN_OR_RETURN(const auto parsed, shardwright::parse_object_key(text));
    std::vector<int64_t> found(parsed.offsets.begin(), parsed.offsets.end());
    found.insert(found.end(), parsed.shape.begin(), parsed.shape.end());
    SHW_RETURN_IF_ERROR(capi::write_values(found, {"values", values, capacity, size}, answer));
    if (*answer == SHW_OK) *key_size = parsed.key.size();
    return {};
  });
}

const char* shw_state_object_name(const shw_state* state, uint64_t index, uint64_t* size) noexcept {
  const auto* entry = capi::object_at(state, index);
  return capi::text_out(entry == nullptr ? "" : std::string_view(entry->name), size);
}

const char* shw_state_object_path(const shw_state* state, uint64_t index, uint64_t* size) noexcept {
  const auto* entry = capi::object_at(state, index);
  return capi::text_out(entry == nullptr ? "" : std::string_view(entry->path), size);
}

const char* shw_state_object_content_type(const shw_state* state, uint64_t index,
                                          uint64_t* size) noexcept {
  const auto* entry = capi::object_at(state, index);
  return capi::text_out(entry == nullptr ? "" : std::string_view(entry->content_type), size);
}

const void* shw_state_object_data(const shw_state* state, uint64_t index, uint64_t* size) noexcept {
  const auto* entry = capi::object_at(state, index);
  if (size != nullptr) *size = entry == nullptr ? 0 : entry->bytes.size();
  if (entry == nullptr) return nullptr;
  return entry->bytes.empty() ? static_cast<const void*>("") : entry->bytes.data();
}

shw_status shw_state_find_tensor(const shw_state* state, const char* name, uint64_t name_size,
                                 uint64_t* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    const auto found = impl->state->find_tensor(text);
    if (!found) {
      return capi::name_not_found(text, "tensor", capi::names_of(impl->state->tensors()));
    }
    *out = *found;
    return {};
  });
}

shw_status shw_state_find_object(const shw_state* state, const char* name, uint64_t name_size,
                                 uint64_t* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    const auto found = impl->state->find_object(text);
    if (!found) {
      return capi::name_not_found(text, "object", capi::names_of(impl->state->objects()));
    }
    *out = *found;
    return {};
  });
}

void shw_state_release(shw_state* state) noexcept {
  capi::release_handle(state);
}

}  // extern "C"
