// SPDX-License-Identifier: Apache-2.0
//
// The mesh of a shw_layout_spec, for those who take a mesh without placements. Pure.
#pragma once

#include "core/base/result.h"
#include "core/layout/mesh.h"
#include "shardwright/layout.h"

namespace shardwright::capi {

// The spec has our size. Shape, names and ranks are copied; whether they are sound is for whoever
// uses them.
Result<Mesh> read_mesh(const shw_layout_spec& spec);
// INVALID_ARGUMENT where the spec has placements or a tensor map.
Result<Mesh> read_mesh_only(const shw_layout_spec& spec);

}  // namespace shardwright::capi
