// SPDX-License-Identifier: Apache-2.0
//
// pickles.h: what pickles would import, and files without that.
#include "shardwright/pickles.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "core/format/pickle_cleaning.h"
#include "core/format/pickle_survey.h"

namespace capi = shardwright::capi;
namespace format = shardwright::format;
using shardwright::Status;

shw_status shw_scan_pickles(shw_context* context, shw_storage* storage, const char* path,
                            shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need(context, "context").status());
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(const format::PickleSurvey survey, format::survey_pickles(location));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(survey.to_json()));
    return {};
  });
}

shw_status shw_clean_pickles(shw_context* context, shw_storage* source_storage, const char* source,
                             shw_storage* target_storage, const char* target, shw_buffer** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need(context, "context").status());
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto from, capi::read_location(source_storage, source, "source"));
    const bool is_file = from.storage->stat(from.prefix).ok();
    SHW_ASSIGN_OR_RETURN(
        const auto to, capi::read_location(target_storage, target, "target",
                                           is_file ? capi::PathKind::kFile : capi::PathKind::kAny));
    SHW_ASSIGN_OR_RETURN(const format::PickleCleaning cleaning, format::clean_pickles(from, to));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(cleaning.to_json()));
    return {};
  });
}
