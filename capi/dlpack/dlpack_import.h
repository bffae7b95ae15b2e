// SPDX-License-Identifier: Apache-2.0
//
// DLPack tensors as descriptors, and their ownership: once armed, a DLPackOwner calls each deleter
// exactly once when it goes. Nothing synchronises. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/dlpack/dlpack_structs.h"
#include "core/base/result.h"
#include "shardwright/tensor.h"

namespace shardwright::capi {

// Descriptor that borrows from the tensor. INVALID_ARGUMENT for NULL, UNIMPLEMENTED for another
// major version (nothing but the version is read then), unknown flags, several lanes and device 0;
// what the descriptor says is checked by whoever takes it.
Result<shw_tensor> describe_dlpack(const DLManagedTensorVersioned* managed);
Result<shw_tensor> describe_dlpack(const DLManagedTensor* managed);

// T: DLManagedTensor or DLManagedTensorVersioned.
template <typename T>
class DLPackOwner {
 public:
  explicit DLPackOwner(std::vector<T*> tensors) : tensors_(std::move(tensors)) {}
  ~DLPackOwner() {
    if (!armed_) return;
    for (T* tensor : tensors_) {
      if (tensor->deleter != nullptr) tensor->deleter(tensor);
    }
  }
  DLPackOwner(const DLPackOwner&) = delete;
  DLPackOwner& operator=(const DLPackOwner&) = delete;
  // From now on the tensors are ours.
  void arm() noexcept { armed_ = true; }

 private:
  std::vector<T*> tensors_;
  bool armed_ = false;
};

}  // namespace shardwright::capi
