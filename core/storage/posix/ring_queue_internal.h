// SPDX-License-Identifier: Apache-2.0
//
// RingQueue: batches of posix storage over io_uring. The ring carries what goes to the device
// directly and is aligned; all else, and what the kernel gives back short or refuses for the
// moment, is carried out by the object itself, so that both engines end in the same code.
#pragma once

#include <cstdint>
#include <memory>

#include "core/storage/io_queue.h"
#include "core/storage/posix/ring.h"

namespace shardwright::storage::internal {

// Requests are of PosixObjects. ring: with room for depth transfers.
std::unique_ptr<IoQueue> make_ring_queue(std::unique_ptr<Ring> ring, uint32_t depth);

}  // namespace shardwright::storage::internal
