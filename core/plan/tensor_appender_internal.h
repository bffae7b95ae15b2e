// SPDX-License-Identifier: Apache-2.0
//
// Appends one tensor and its boxes to a catalog without copying the boxes. Everything is checked
// first, so a failure leaves the catalog as it was.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan/catalog.h"

namespace shardwright::plan::internal {

struct BoxReference {
  const Box* box = nullptr;  // borrowed for the call
  uint32_t place = 0;
};

// One bit per dimension that some box does not cover whole. The boxes lie inside the shape.
uint64_t split_mask_of(std::span<const int64_t> shape, std::span<const BoxReference> boxes);

// As CatalogBuilder::add_tensor.
Status append_tensor(Catalog* catalog, const CatalogBuilder::Tensor& tensor,
                     std::span<const BoxReference> boxes);

}  // namespace shardwright::plan::internal
