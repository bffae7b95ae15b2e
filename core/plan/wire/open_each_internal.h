// SPDX-License-Identifier: Apache-2.0
//
// Reads the plan buffers of all ranks one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/status.h"

namespace shardwright::plan::internal {

// Gives the opener each rank's buffer; what fails names the rank.
template <typename Opener>
Status open_each(std::span<const std::span<const std::byte>> buffers, Opener* opener) {
  for (size_t rank = 0; rank < buffers.size(); ++rank) {
    Status status = opener->add(buffers[rank]);
    if (!status.ok()) {
      return std::move(status)
          .with_detail("rank", std::to_string(rank))
          .annotated(fmt::format("read the plan of rank {}", rank));
    }
  }
  return {};
}

}  // namespace shardwright::plan::internal
