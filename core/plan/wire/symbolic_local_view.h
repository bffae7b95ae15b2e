// SPDX-License-Identifier: Apache-2.0
//
// SymbolicLocalView: a symbolic local plan whose description and part are still bytes, for whoever
// reads those of all ranks and decodes equal descriptions once. Views the buffer, which must outlive
// it. Movable; thread-compatible.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/result.h"

namespace shardwright::plan {

struct SymbolicLocalView {
  SymbolicLocalView() = default;
  SymbolicLocalView(SymbolicLocalView&&) noexcept = default;
  SymbolicLocalView& operator=(SymbolicLocalView&&) noexcept = default;

  // Plan buffers of their own that nobody has looked at; empty where the plan has none.
  std::span<const std::byte> description;
  std::span<const std::byte> part;
  std::vector<std::byte> aligned;  // where both lie when the buffer is not aligned
};

// Through the doors of wire.h, but those of description and part. INVALID_ARGUMENT for another kind.
Result<SymbolicLocalView> view_symbolic_local(std::span<const std::byte> buffer);

}  // namespace shardwright::plan
