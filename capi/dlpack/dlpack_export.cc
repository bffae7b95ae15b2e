// SPDX-License-Identifier: Apache-2.0
//
// An export is one object that begins with the DLPack struct and ends with the reference.
#include "capi/dlpack/dlpack_export.h"

#include <utility>

namespace shardwright::capi {
namespace {

constexpr DLPackVersion kVersion = {1, 1};

template <typename T>
struct Export {
  T managed{};
  std::shared_ptr<const void> owner;
};

void describe(const ExportedTensor& tensor, DLTensor* to) {
  const DLPackType type = dtype_to_dlpack(tensor.dtype);
  to->data = tensor.data;
  to->device = {tensor.place.type, tensor.place.id};
  to->ndim = static_cast<int32_t>(tensor.shape.size());
  to->dtype = {type.code, type.bits, 1};
  // The protocol has no const; consumers do not write through these.
  to->shape = const_cast<int64_t*>(tensor.shape.data());
  to->strides = const_cast<int64_t*>(tensor.strides.data());
  to->byte_offset = 0;
}

template <typename T>
T* make_export(const ExportedTensor& tensor, std::shared_ptr<const void> owner) {
  auto made = std::make_unique<Export<T>>();
  describe(tensor, &made->managed.dl_tensor);
  made->owner = std::move(owner);
  made->managed.manager_ctx = made.get();
  made->managed.deleter = [](T* self) { delete static_cast<Export<T>*>(self->manager_ctx); };
  return &made.release()->managed;
}

}  // namespace

DLManagedTensorVersioned* export_dlpack(const ExportedTensor& tensor,
                                        std::shared_ptr<const void> owner) {
  auto* managed = make_export<DLManagedTensorVersioned>(tensor, std::move(owner));
  managed->version = kVersion;
  return managed;
}

DLManagedTensor* export_dlpack_legacy(const ExportedTensor& tensor,
                                      std::shared_ptr<const void> owner) {
  return make_export<DLManagedTensor>(tensor, std::move(owner));
}

ExportedTensor exported(const OwnedTensorImpl& tensor) {
  return {tensor.view.data, tensor.view.dtype, tensor.view.shape.span(), tensor.strides.span(), {}};
}

}  // namespace shardwright::capi
