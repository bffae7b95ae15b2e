// SPDX-License-Identifier: Apache-2.0
//
// RaggedSplit: places tensors one behind the other in a range that is cut into equal parts, so that
// every cut lies between two rows of what it cuts. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shardwright::hsdp::internal {

struct RaggedTensor {
  int64_t row_elements = 0;  // at least 1
  int64_t elements = 0;      // whole rows, at least one
};

struct RaggedSplit {
  int64_t part_elements = 0;
  std::vector<int64_t> offsets;  // of each tensor
};

// The tensors in their order, in `parts` parts; elements of all of them and of padding fit int64_t.
// Looks for small parts and does not prove that there are none smaller. nullopt: beyond 63 bits.
std::optional<RaggedSplit> split_ragged(std::span<const RaggedTensor> tensors, int64_t parts);

}  // namespace shardwright::hsdp::internal
