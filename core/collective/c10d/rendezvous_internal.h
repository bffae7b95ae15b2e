// SPDX-License-Identifier: Apache-2.0
//
// Rendezvous: how the ranks of a group agree on an id that none had before, through a c10d store. A
// store may outlive processes, so every rank shows a nonce and rank 0 replies to that nonce; what
// an earlier process left behind gets no reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "core/base/result.h"

namespace shardwright::collective::internal {

struct Meeting {
  std::string place;  // prefix of the keys, equal on all ranks
  int32_t rank = 0;
  int32_t size = 1;
  std::chrono::milliseconds limit{0};
};

// Collective. DEADLINE_EXCEEDED naming the ranks that did not come; what the store throws is
// thrown.
Result<std::string> rendezvous(::c10d::Store& store, const Meeting& meeting);

// Collective: returns when all ranks have come to it under this id. A rank that uses a group, and
// ends it, before others are connected would break their connecting.
Status all_are_connected(::c10d::Store& store, const std::string& id, const Meeting& meeting);

}  // namespace shardwright::collective::internal
