// SPDX-License-Identifier: Apache-2.0
//
// The mappings that the library brings, by name.
#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/state/mapping.h"

namespace shardwright {
namespace {

constexpr ShippedMapping kShipped[] = {
#include "mapping_sets.inc"
};

}  // namespace

std::span<const ShippedMapping> shipped_mappings() {
  return kShipped;
}

Result<Mapping> Mapping::shipped(std::string_view name,
                                 std::span<const MappingParameter> parameters) {
  const auto* const found = std::ranges::find(kShipped, name, &ShippedMapping::name);
  if (found != std::end(kShipped)) return parse(found->json, parameters);
  std::vector<std::string_view> names;
  for (const ShippedMapping& each : kShipped) names.push_back(each.name);
  return not_found(fmt::format("there is no mapping '{}'; the library brings {}",
                               escape_text(name, 80), fmt::join(names, ", ")))
      .with_detail("parameter", "name");
}

}  // namespace shardwright
