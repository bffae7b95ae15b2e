// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dlpack/export.h"

#include <algorithm>
#include <utility>

namespace shardwright::dlpack {
namespace {

// An exported struct and what it points to; manager_ctx leads back here.
template <typename Managed>
struct Exported {
  Managed managed;
  Dims shape;
  Dims strides;
  std::shared_ptr<void> owner;  // co-owned with whoever else uses the memory
};

template <typename Managed>
void release_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->manager_ctx);
}

Dims explicit_strides(const TensorView& view) {
  if (!view.strides.empty()) return view.strides;
  Dims strides(view.shape.size(), 1);
  for (size_t d = view.shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(view.shape[d], 1);
  return strides;
}

template <typename Managed>
std::unique_ptr<Exported<Managed>> make_exported(const TensorView& view,
                                                 std::shared_ptr<void> owner) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->shape = view.shape;
  exported->strides = explicit_strides(view);
  exported->owner = std::move(owner);
  const DLPackType type = dtype_to_dlpack(view.dtype);
  Tensor& tensor = exported->managed.dl_tensor;
  tensor.data = view.data;
  tensor.device = {view.device_type, view.device_id};
  tensor.ndim = static_cast<int32_t>(view.shape.size());
  tensor.dtype = {type.code, type.bits, 1};
  tensor.shape = exported->shape.data();
  tensor.strides = exported->strides.data();
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = &release_exported<Managed>;
  return exported;
}

}  // namespace

Result<DLManagedTensorVersioned*> export_versioned(const TensorView& view,
                                                   std::shared_ptr<void> owner) {
  if (!dtype_is_valid(view.dtype))
    return invalid_argument("the dtype of the tensor is not one of the table");
  auto exported = make_exported<DLManagedTensorVersioned>(view, std::move(owner));
  exported->managed.version = {kMajorVersion, kMinorVersion};
  exported->managed.flags = view.read_only ? kFlagReadOnly : 0;
  return &exported.release()->managed;  // the deleter owns it from here
}

Result<DLManagedTensor*> export_legacy(const TensorView& view, std::shared_ptr<void> owner) {
  if (!dtype_is_valid(view.dtype))
    return invalid_argument("the dtype of the tensor is not one of the table");
  if (view.read_only) {
    return invalid_argument(
        "a read-only tensor cannot be exported in the unversioned DLPack struct");
  }
  auto exported = make_exported<DLManagedTensor>(view, std::move(owner));
  return &exported.release()->managed;  // the deleter owns it from here
}

}  // namespace shardwright::dlpack
