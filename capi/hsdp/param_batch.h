// SPDX-License-Identifier: Apache-2.0
//
// Batches of parameters, options and DLPack tensors of the C surface as the core takes them.
// Failures name parameter and entry. Thread-compatible.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capi/dlpack/dlpack_import.h"
#include "core/base/result.h"
#include "core/device/lane_device.h"
#include "core/hsdp/options.h"
#include "core/hsdp/unit.h"
#include "core/tensor/dtype.h"
#include "shardwright/hsdp_unit.h"

namespace shardwright::capi {

// Options as given, NULL = all defaults.
struct UnitDescription {
  hsdp::UnitOptions options;
  hsdp::UnitSettings settings;
  bool host_memory = false;
};
Result<UnitDescription> read_unit_options(const shw_hsdp_unit_options* given);

// The batch has our size. Ignored parameters are left out. owners: one per entry, or none. Tensors
// lie in memory of the device or of the host.
Result<std::vector<hsdp::ParameterInput>> read_param_batch(
    const shw_hsdp_param_batch& batch, std::span<const std::shared_ptr<const void>> owners,
    const device::LaneDevice& device);

// Elements of a dense row-major tensor of the C surface.
struct GivenTensor {
  DType dtype = DType::kInvalid;
  std::span<const std::byte> bytes;
  bool on_device = false;  // bytes are memory of the device, else of the host
};
Result<GivenTensor> read_tensor(const shw_tensor& tensor, const device::LaneDevice& device,
                                const char* parameter);

// DLPack tensors as descriptors, and what owns each of them once it is armed.
template <typename T>
struct ImportedTensors {
  std::vector<shw_tensor> described;
  std::vector<std::shared_ptr<DLPackOwner<T>>> armed_later;
  std::vector<std::shared_ptr<const void>> owners;

  void arm() noexcept {
    for (const auto& each : armed_later) each->arm();
  }
};

template <typename T>
Result<ImportedTensors<T>> import_tensors(T* const* managed, uint64_t count);

}  // namespace shardwright::capi
