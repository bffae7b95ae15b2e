// SPDX-License-Identifier: Apache-2.0
//
// StagedCommunicator: a communicator between two memories. What an operation reads is copied to
// memory that the inner one reaches before it is issued, what it wrote is copied back where it is
// waited for. Ranks, capabilities and failures are those of the inner one. As thread-safe as that.
#pragma once

#include <cstdint>
#include <memory>

#include "core/collective/communicator.h"
#include "core/device/memory_work.h"
#include "core/hsdp/unit_memory.h"

namespace shardwright::hsdp::internal {

// kHost: operations are on memory of the device, the inner communicator reaches the host's.
// kDevice: the reverse.
enum class StagedThrough : int32_t { kHost, kDevice };

// room: memory that the inner communicator reaches. All are co-owned.
collective::CommunicatorPtr make_staged_communicator(collective::CommunicatorPtr inner,
                                                     StagedThrough through,
                                                     std::shared_ptr<device::MemoryWork> work,
                                                     std::shared_ptr<UnitMemory> room);

}  // namespace shardwright::hsdp::internal
