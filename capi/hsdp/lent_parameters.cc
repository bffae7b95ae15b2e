// SPDX-License-Identifier: Apache-2.0
#include "capi/hsdp/lent_parameters.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/layout/index_range.h"

namespace shardwright::capi {
namespace {

Dims row_major_strides(const Dims& shape) {
  Dims strides(shape);
  int64_t step = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = step;
    step *= shape[dim] == 0 ? 1 : shape[dim];
  }
  return strides;
}

Result<std::vector<LentParameter>> lend(hsdp::Unit& unit) {
  std::vector<LentParameter> parameters(unit.parameter_count());
  for (size_t each = 0; each < parameters.size(); ++each) {
    LentParameter& lent = parameters[each];
    lent.global_shape = unit.spec(each).shape;
    SHW_ASSIGN_OR_RETURN(lent.box, unit.box(each));
    lent.global_strides = row_major_strides(lent.global_shape);
    lent.local_strides = row_major_strides(lent.box.sizes);
  }
  return parameters;
}

}  // namespace

Status check_parameters(HsdpUnitImpl& unit, uint64_t first, uint64_t count) {
  if (!unit.unit->is_sealed())
    return failed_precondition(fmt::format("unit '{}' is not sealed yet", unit.unit->name()));
  if (unit.parameters.empty()) {
    SHW_ASSIGN_OR_RETURN(unit.parameters, lend(*unit.unit));
  }
  const uint64_t there = unit.parameters.size();
  if (first <= there && count <= there - first) return {};
  return out_of_range(fmt::format("parameters {} to {} of the {} of unit '{}'", first,
                                  first + count, there, unit.unit->name()));
}

}  // namespace shardwright::capi
