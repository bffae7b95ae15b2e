// SPDX-License-Identifier: Apache-2.0
//
// tensor.h: descriptors, dtype names, DLPack in and out, tensors in memory of the library.
#include "shardwright/tensor.h"

#include <sys/mman.h>

#include <memory>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/tensor_argument.h"
#include "capi/dlpack/dlpack_export.h"
#include "capi/dlpack/dlpack_import.h"
#include "capi/owned_tensor.h"
#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/tensor/dtype_numbers.h"

namespace shardwright::capi {
namespace {

constexpr uint64_t kOwnedAlignment = 4096;

// One body for both kinds of DLPack structs.
template <typename T>
Status describe_checked(const T* managed, shw_tensor* out) {
  SHW_RETURN_IF_ERROR(need_pointer(managed, "managed"));
  SHW_RETURN_IF_ERROR(check_out(out, "out"));
  SHW_ASSIGN_OR_RETURN(const shw_tensor tensor, describe_dlpack(managed));
  SHW_ASSIGN_OR_RETURN(const TensorSpan view, span_of_tensor(tensor));
  (void)view;
  write_out(tensor, out);
  return {};
}

}  // namespace

Result<std::shared_ptr<OwnedTensorImpl>> make_owned_tensor(DType dtype,
                                                           std::span<const int64_t> shape) {
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(shape));
  SHW_ASSIGN_OR_RETURN(const uint64_t bytes, dtype_packed_bytes(dtype, count));
  uint64_t allocated = 0;
  if (!checked_round_up(bytes == 0 ? 1 : bytes, kOwnedAlignment, &allocated) ||
      allocated > INT64_MAX) {
    return bad_argument("shape", fmt::format("{} bytes are too many", bytes));
  }
  auto impl = std::make_shared<OwnedTensorImpl>();
  impl->view.dtype = dtype;
  impl->view.shape = Dims(shape);
  impl->strides = Dims(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    // Extents of 0 must not make all strides to their left 0.
    impl->strides[i - 1] = impl->strides[i] * (shape[i] == 0 ? 1 : shape[i]);
  }
  impl->byte_size = bytes;
  // Fresh pages of the system are zero and page-aligned, and cost nothing until they are touched.
  void* memory =
      ::mmap(nullptr, allocated, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return resource_exhausted("memory", fmt::format("no {} bytes for a tensor", allocated));
  }
  impl->view.data = static_cast<std::byte*>(memory);
  impl->allocated_bytes = allocated;
  return impl;
}

OwnedTensorImpl::~OwnedTensorImpl() {
  if (view.data != nullptr) ::munmap(view.data, allocated_bytes);
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::DType;
using shardwright::Status;

extern "C" {

void shw_tensor_init(shw_tensor* tensor, uint32_t struct_size) noexcept {
  capi::init_struct(tensor, struct_size);
}

shw_status shw_tensor_check(const shw_tensor* tensor, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    shw_tensor copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(tensor, "tensor", &copy));
    return capi::span_of_tensor(copy).status();
  });
}

shw_status shw_tensor_from_dlpack(const struct DLManagedTensorVersioned* managed, shw_tensor* out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::describe_checked(managed, out); });
}

shw_status shw_tensor_from_dlpack_legacy(const struct DLManagedTensor* managed, shw_tensor* out,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&] { return capi::describe_checked(managed, out); });
}

const char* shw_dtype_name(int32_t dtype) noexcept {
  const DType type = shardwright::find_dtype(dtype);
  // Names are literals, so their views end with a NUL.
  return type == DType::kInvalid ? "" : shardwright::dtype_name(type).data();
}

shw_status shw_dtype_parse(const char* name, int32_t* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(name, "name"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const auto dtype = shardwright::dtype_from_name(name);
    if (!dtype.has_value()) {
      return capi::bad_argument("name", fmt::format("there is no dtype '{}'", name));
    }
    *out = static_cast<int32_t>(*dtype);
    return {};
  });
}

uint32_t shw_dtype_bits(int32_t dtype) noexcept {
  return static_cast<uint32_t>(shardwright::dtype_bits(shardwright::find_dtype(dtype)));
}

uint64_t shw_dtype_byte_size(int32_t dtype, uint64_t element_count) noexcept {
  uint64_t total = 0;
  if (!shardwright::checked_multiply<uint64_t>(element_count, shw_dtype_bits(dtype), &total))
    return 0;
  return total / 8 + (total % 8 == 0 ? 0 : 1);
}

int32_t shw_dtype_from_dlpack(uint32_t type) noexcept {
  return static_cast<int32_t>(shardwright::find_dlpack_dtype(type));
}

uint32_t shw_dtype_to_dlpack(int32_t dtype) noexcept {
  const DType found = shardwright::find_dtype(dtype);
  if (found == DType::kInvalid) return 0;
  const auto type = shardwright::dtype_to_dlpack(found);
  return type.code + 256U * type.bits + 65536U;
}

shw_status shw_owned_tensor_create(int32_t dtype, const int64_t* shape, int32_t ndim,
                                   shw_owned_tensor** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    if (ndim < 0 || ndim > shardwright::kMaxTensorRank) {
      return capi::bad_argument(
          "ndim", fmt::format("{} is not between 0 and {}", ndim, shardwright::kMaxTensorRank));
    }
    SHW_ASSIGN_OR_RETURN(const auto extents,
                         capi::list_argument(shape, static_cast<uint64_t>(ndim), "shape"));
    SHW_ASSIGN_OR_RETURN(const DType type, shardwright::dtype_from_number(dtype));
    SHW_ASSIGN_OR_RETURN(auto impl, capi::make_owned_tensor(type, extents));
    *out = capi::make_handle<shw_owned_tensor>(std::move(impl));
    return {};
  });
}

shw_status shw_owned_tensor_describe(const shw_owned_tensor* tensor, shw_tensor* out,
                                     shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(tensor, "tensor"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    shw_tensor described = capi::tensor_of_span(impl->view);
    described.byte_size = impl->byte_size;
    described.strides = impl->strides.data();
    capi::write_out(described, out);
    return {};
  });
}

shw_status shw_owned_tensor_dlpack(const shw_owned_tensor* tensor,
                                   struct DLManagedTensorVersioned** out,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(tensor, "tensor"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    *out = capi::export_dlpack(capi::exported(*impl), impl);
    return {};
  });
}

shw_status shw_owned_tensor_dlpack_legacy(const shw_owned_tensor* tensor,
                                          struct DLManagedTensor** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(tensor, "tensor"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    *out = capi::export_dlpack_legacy(capi::exported(*impl), impl);
    return {};
  });
}

void shw_owned_tensor_release(shw_owned_tensor* tensor) noexcept {
  capi::release_handle(tensor);
}

}  // extern "C"
