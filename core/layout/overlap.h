// SPDX-License-Identifier: Apache-2.0
//
// Which two of many boxes share an element. Pure, any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "core/layout/box.h"

namespace shardwright {

// Two boxes of one rank that share an element, or nothing. Space is halved at box boundaries until
// at most one box is left in a half: O(n log n) for boxes in rows or grids, at worst a box is cut
// once per boundary that crosses it.
std::optional<std::pair<size_t, size_t>> find_overlap(std::span<const Box> boxes);

}  // namespace shardwright
