// SPDX-License-Identifier: Apache-2.0
#include "core/hsdp/parameter_groups.h"

#include <algorithm>
#include <utility>

namespace shardwright::hsdp {

Result<std::vector<ParameterGroup>> group_parameters(std::vector<ParameterSpec> parameters,
                                                     const UnitOptions& options) {
  std::vector<ParameterGroup> groups;
  for (size_t number = 0; number < parameters.size(); ++number) {
    ParameterSpec& spec = parameters[number];
    SHW_ASSIGN_OR_RETURN(const DTypePolicy dtypes, dtype_policy(options, spec.dtype));
    auto group = std::ranges::find_if(groups, [&](const ParameterGroup& each) {
      return each.dtypes == dtypes && each.replicate == spec.replicate;
    });
    if (group == groups.end())
      group = groups.insert(groups.end(), ParameterGroup{dtypes, spec.replicate, {}, {}});
    group->specs.push_back(std::move(spec));
    group->numbers.push_back(number);
  }
  return groups;
}

}  // namespace shardwright::hsdp
