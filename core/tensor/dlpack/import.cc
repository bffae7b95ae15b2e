// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dlpack/import.h"

#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"

namespace shardwright::dlpack {
namespace {

// Calls the producer's deleter when it goes; holds nothing until the import can no longer fail.
template <typename Managed>
class ManagedOwner {
 public:
  ManagedOwner() = default;
  ManagedOwner(const ManagedOwner&) = delete;
  ManagedOwner& operator=(const ManagedOwner&) = delete;
  ~ManagedOwner() {
    if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
  }
  void take(Managed* managed) { managed_ = managed; }

 private:
  Managed* managed_ = nullptr;
};

Result<TensorView> view_of(const Tensor& tensor, bool read_only, const ImportOptions& options) {
  SHW_ASSIGN_OR_RETURN(const DType dtype,
                       dtype_from_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes));
  if (tensor.ndim < 0 || tensor.ndim > kMaxTensorRank) {
    return invalid_argument(fmt::format("a DLPack tensor has {} dimensions, the range is 0 to {}",
                                        tensor.ndim, kMaxTensorRank));
  }
  const auto rank = static_cast<size_t>(tensor.ndim);
  if (rank > 0 && tensor.shape == nullptr) {
    return invalid_argument("a DLPack tensor with dimensions has a NULL shape");
  }
  if (read_only && options.load_target) {
    return invalid_argument("a read-only DLPack tensor cannot be the target of a load");
  }
  TensorArguments arguments;
  arguments.data = tensor.data;
  arguments.byte_offset = tensor.byte_offset;
  arguments.dtype = dtype;
  arguments.shape = std::span<const int64_t>(tensor.shape, rank);
  if (tensor.strides != nullptr) arguments.strides = std::span<const int64_t>(tensor.strides, rank);
  arguments.device_type = tensor.device.type;
  arguments.device_id = tensor.device.id;
  arguments.read_only = read_only;
  arguments.stream = options.stream;
  return make_tensor_view(arguments);
}

template <typename Managed>
Result<ImportedTensor> import_tensor(Managed* managed, bool read_only,
                                     const ImportOptions& options) {
  SHW_ASSIGN_OR_RETURN(TensorView view, view_of(managed->dl_tensor, read_only, options));
  auto owner = std::make_shared<ManagedOwner<Managed>>();
  owner->take(managed);  // the last step, so that a failure before it leaves the caller the owner
  return ImportedTensor{std::move(view), std::move(owner)};
}

Status check_flags(const DLManagedTensorVersioned& managed) {
  constexpr uint64_t kKnown = kFlagReadOnly | kFlagIsCopied | kFlagSubbytePadded;
  if ((managed.flags & ~kKnown) != 0) {
    return unimplemented(
        fmt::format("a DLPack tensor has the unknown flags {}", managed.flags & ~kKnown));
  }
  if ((managed.flags & kFlagSubbytePadded) != 0 && managed.dl_tensor.dtype.bits < 8) {
    return unimplemented("a DLPack tensor pads its sub-byte elements to whole bytes");
  }
  return {};
}

}  // namespace

Result<ImportedTensor> import_versioned(DLManagedTensorVersioned* managed,
                                        const ImportOptions& options) {
  if (managed == nullptr) return invalid_argument("the DLPack tensor is NULL");
  if (managed->version.major != kMajorVersion) {
    return unimplemented(
        fmt::format("a DLPack tensor has version {}.{}, supported is major version {}",
                    managed->version.major, managed->version.minor, kMajorVersion));
  }
  SHW_RETURN_IF_ERROR(check_flags(*managed));
  return import_tensor(managed, (managed->flags & kFlagReadOnly) != 0, options);
}

Result<ImportedTensor> import_legacy(DLManagedTensor* managed, const ImportOptions& options) {
  if (managed == nullptr) return invalid_argument("the DLPack tensor is NULL");
  // The old struct cannot say that its memory is read-only.
  return import_tensor(managed, false, options);
}

}  // namespace shardwright::dlpack
