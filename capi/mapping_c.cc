// SPDX-License-Identifier: Apache-2.0
//
// mapping.h: mappings, and states that are made with them.
#include "shardwright/mapping.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/state/mapped_state.h"

namespace shardwright::capi {
namespace {

Result<std::vector<MappingParameter>> read_parameters(const shw_mapping_spec& spec) {
  std::vector<MappingParameter> parameters;
  if (spec.parameter_count == 0) return parameters;
  SHW_ASSIGN_OR_RETURN(const auto names,
                       text_list_argument(spec.parameter_names, spec.parameter_name_offsets,
                                          spec.parameter_count, "parameter_names"));
  SHW_ASSIGN_OR_RETURN(const auto values, list_argument(spec.parameter_values, spec.parameter_count,
                                                        "parameter_values"));
  for (uint64_t i = 0; i < spec.parameter_count; ++i)
    parameters.push_back({std::string(names.at(i)), values[i]});
  return parameters;
}

Result<Mapping> read_mapping(const shw_mapping_spec& spec) {
  if ((spec.json == nullptr) == (spec.shipped == nullptr))
    return bad_argument("json", "a mapping is made of json or shipped, one of both");
  SHW_ASSIGN_OR_RETURN(const auto parameters, read_parameters(spec));
  if (spec.shipped != nullptr) return Mapping::shipped(spec.shipped, parameters);
  SHW_ASSIGN_OR_RETURN(const auto json, text_argument(spec.json, spec.json_size, "json"));
  return Mapping::parse(json, parameters);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
using shardwright::Status;

extern "C" {

void shw_mapping_spec_init(shw_mapping_spec* spec, uint32_t struct_size) noexcept {
  capi::init_struct(spec, struct_size);
}

shw_status shw_mapping_create(const shw_mapping_spec* spec, shw_mapping** out,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_mapping_spec copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(spec, "spec", &copy));
    auto impl = std::make_shared<capi::MappingImpl>();
    SHW_ASSIGN_OR_RETURN(impl->mapping, capi::read_mapping(copy));
    *out = capi::make_handle<shw_mapping>(std::move(impl));
    return {};
  });
}

shw_status shw_state_map(const shw_state* state, const shw_mapping* mapping, shw_state** out,
                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto from, capi::need(state, "state"));
    SHW_ASSIGN_OR_RETURN(const auto rules, capi::need(mapping, "mapping"));
    auto impl = std::make_shared<capi::StateImpl>();
    SHW_ASSIGN_OR_RETURN(impl->state, shardwright::map_state(from->state, rules->mapping));
    *out = capi::make_handle<shw_state>(std::move(impl));
    return {};
  });
}

void shw_mapping_release(shw_mapping* mapping) noexcept {
  capi::release_handle(mapping);
}

}  // extern "C"
