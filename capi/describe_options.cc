// SPDX-License-Identifier: Apache-2.0
#include "capi/describe_options.h"

#include <string>
#include <utility>

#include "capi/boundary/arguments.h"

namespace shardwright::capi {
namespace {

Result<std::vector<plan::KindPattern>> read_kinds(const shw_describe_options& options) {
  SHW_ASSIGN_OR_RETURN(const auto globs,
                       text_list_argument(options.kind_globs, options.kind_offsets,
                                          options.kind_count, "kind_globs"));
  SHW_ASSIGN_OR_RETURN(const auto values,
                       list_argument(options.kind_values, options.kind_count, "kind_values"));
  std::vector<plan::KindPattern> kinds;
  for (uint64_t i = 0; i < options.kind_count; ++i) {
    SHW_RETURN_IF_ERROR(option_in_range(values[i], SHW_KIND_RANK_LOCAL, "kind_values"));
    kinds.push_back({std::string(globs.at(i)), static_cast<EntryKind>(values[i])});
  }
  return kinds;
}

}  // namespace

Result<plan::DescribeRules> read_describe_rules(const shw_describe_options& options) {
  plan::DescribeRules rules;
  SHW_ASSIGN_OR_RETURN(rules.kinds, read_kinds(options));
  rules.rank = options.rank;
  rules.world_size = options.world_size;
  SHW_ASSIGN_OR_RETURN(rules.agreement,
                       text_argument(options.agreement, options.agreement_size, "agreement"));
  return rules;
}

}  // namespace shardwright::capi
