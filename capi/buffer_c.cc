// SPDX-License-Identifier: Apache-2.0
//
// buffer.h: immutable bytes in parts.
#include "shardwright/buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"

namespace shardwright::capi {
namespace {

constexpr std::align_val_t kAlignment{64};

// An uninitialised buffer of this many bytes, followed by a NUL.
std::shared_ptr<BufferImpl> allocate_buffer(uint64_t size, std::vector<uint64_t> offsets) {
  auto impl = std::make_shared<BufferImpl>();
  impl->data.reset(static_cast<std::byte*>(::operator new[](size + 1, kAlignment)));
  impl->data[size] = std::byte{0};
  impl->offsets = std::move(offsets);
  return impl;
}

}  // namespace

void BufferImpl::Free::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kAlignment);
}

Result<shw_buffer*> buffer_of(std::span<const std::byte> bytes) {
  auto impl = allocate_buffer(bytes.size(), {0, bytes.size()});
  if (!bytes.empty()) std::memcpy(impl->data.get(), bytes.data(), bytes.size());
  return make_handle<shw_buffer>(std::move(impl));
}

Result<shw_buffer*> buffer_of(std::string_view text) {
  return buffer_of(std::as_bytes(std::span(text.data(), text.size())));
}

Result<shw_buffer*> buffer_of_parts(std::span<const std::string_view> parts) {
  std::vector<uint64_t> offsets = {0};
  offsets.reserve(parts.size() + 1);
  for (const std::string_view part : parts) offsets.push_back(offsets.back() + part.size());
  const uint64_t size = offsets.back();
  auto impl = allocate_buffer(size, std::move(offsets));
  std::byte* target = impl->data.get();
  for (const std::string_view part : parts) {
    if (!part.empty()) std::memcpy(target, part.data(), part.size());
    target += part.size();
  }
  return make_handle<shw_buffer>(std::move(impl));
}

Result<shw_buffer*> buffer_of_parts(std::span<const plan::Bytes> parts) {
  std::vector<std::string_view> views;
  views.reserve(parts.size());
  for (const plan::Bytes& bytes : parts) {
    views.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return buffer_of_parts(views);
}

Result<shw_buffer*> buffer_of_parts(plan::PlanParts parts) {
  static_assert(plan::PlanParts::kAlignment == kAlignment);
  auto impl = std::make_shared<BufferImpl>();
  impl->data.reset(parts.take_memory().release());
  impl->offsets = parts.take_offsets();
  return make_handle<shw_buffer>(std::move(impl));
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

shw_status shw_buffer_create(const void* data, uint64_t size, shw_buffer** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(bytes));
    return {};
  });
}

shw_status shw_buffer_create_parts(const void* data, const uint64_t* offsets, uint64_t part_count,
                                   shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(offsets, "offsets"));
    SHW_ASSIGN_OR_RETURN(const auto list,
                         capi::text_list_argument(data, offsets, part_count, "data"));
    std::vector<std::string_view> parts(part_count);
    for (uint64_t i = 0; i < part_count; ++i) parts[i] = list.at(i);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(parts));
    return {};
  });
}

const void* shw_buffer_data(const shw_buffer* buffer) noexcept {
  const auto* impl = capi::peek(buffer);
  return impl == nullptr ? nullptr : impl->data.get();
}

uint64_t shw_buffer_size(const shw_buffer* buffer) noexcept {
  const auto* impl = capi::peek(buffer);
  return impl == nullptr ? 0 : impl->offsets.back();
}

uint64_t shw_buffer_part_count(const shw_buffer* buffer) noexcept {
  const auto* impl = capi::peek(buffer);
  return impl == nullptr ? 0 : impl->offsets.size() - 1;
}

const uint64_t* shw_buffer_part_offsets(const shw_buffer* buffer) noexcept {
  const auto* impl = capi::peek(buffer);
  return impl == nullptr ? nullptr : impl->offsets.data();
}

const void* shw_buffer_part_data(const shw_buffer* buffer, uint64_t index) noexcept {
  const auto* impl = capi::peek(buffer);
  if (impl == nullptr || index >= impl->offsets.size() - 1) return nullptr;
  return impl->data.get() + impl->offsets[index];
}

uint64_t shw_buffer_part_size(const shw_buffer* buffer, uint64_t index) noexcept {
  const auto* impl = capi::peek(buffer);
  if (impl == nullptr || index >= impl->offsets.size() - 1) return 0;
  return impl->offsets[index + 1] - impl->offsets[index];
}

void shw_buffer_release(shw_buffer* buffer) noexcept {
  capi::release_handle(buffer);
}

}  // extern "C"
