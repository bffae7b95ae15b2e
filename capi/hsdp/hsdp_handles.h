// SPDX-License-Identifier: Apache-2.0
//
// What the handles of HSDP hold. A unit keeps its context alive, works and states keep it, too.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capi/boundary/handle.h"
#include "capi/context/context.h"
#include "core/hsdp/hsdp.h"
#include "core/layout/box.h"
#include "core/tensor/dims.h"
#include "shardwright/hsdp.h"
#include "shardwright/hsdp_unit.h"

namespace shardwright::capi {

struct HsdpMeshImpl {
  static constexpr uint64_t kMagic = 0x7368772d6d657368;
  static constexpr const char* kNoun = "mesh";
  std::shared_ptr<hsdp::HsdpMesh> mesh;
};

class GivenMemory;

struct HsdpImpl {
  static constexpr uint64_t kMagic = 0x7368772d68736470;
  static constexpr const char* kNoun = "HSDP context";
  std::shared_ptr<Context> context;
  std::unique_ptr<hsdp::Hsdp> hsdp;
};

// What the C surface lends until a unit is released.
struct LentParameter {
  Dims global_shape;
  Dims global_strides;
  Box box;  // its sizes are the shape of the shard's part
  Dims local_strides;
};

struct HsdpUnitImpl {
  static constexpr uint64_t kMagic = 0x7368772d756e6974;
  static constexpr const char* kNoun = "HSDP unit";
  std::shared_ptr<HsdpImpl> owner;
  hsdp::Unit* unit = nullptr;             // lives as long as the context
  std::shared_ptr<GivenMemory> memory;    // of whole parameters, where the host gives it
  std::vector<LentParameter> parameters;  // once sealed
};

inline const device::LaneDevice& device_of_unit(const HsdpUnitImpl& unit) {
  return unit.owner->hsdp->device();
}

}  // namespace shardwright::capi

struct shw_hsdp_mesh : shardwright::capi::Handle<shardwright::capi::HsdpMeshImpl> {};
struct shw_hsdp : shardwright::capi::Handle<shardwright::capi::HsdpImpl> {};
struct shw_hsdp_unit : shardwright::capi::Handle<shardwright::capi::HsdpUnitImpl> {};
