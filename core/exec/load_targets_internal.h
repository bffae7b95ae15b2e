// SPDX-License-Identifier: Apache-2.0
//
// What a load plan needs of the memory that it fills, checked before the first byte is read. That
// the plan fits state and checkpoint is plan::check_load_plan's question. Pure, any thread.
#pragma once

#include "core/device/devices.h"
#include "core/plan/catalog.h"
#include "core/plan/load_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

// UNIMPLEMENTED for casts and devices that are not supported, INVALID_ARGUMENT for
// read-only memory and for tensors whose elements overlap. The plan fits the state.
Status check_targets(const device::Devices& devices, const plan::LoadPlan& plan,
                     const State& state);

// Sets to zero the pieces that reach beyond the stored shape of their tensor, before they are
// filled. The plan fits state and catalog.
Status fill_padding(const device::Devices& devices, const plan::LoadPlan& plan,
                    const plan::Catalog& stored, const State& state);
// Sets State::zeroed to zero.
Status zero_left_out(const device::Devices& devices, const State& state);

}  // namespace shardwright::exec::internal
