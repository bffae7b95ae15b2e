// SPDX-License-Identifier: Apache-2.0
//
// Failed calls and owned handles of the C interface.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "shardwright/shardwright.h"

namespace contract {

// A call of the library failed.
struct Failed {
  shw_status status;
  std::string message;
  std::map<std::string, std::string> details;
};
// Throws Failed for anything but OK and releases the error.
void check(shw_status status, shw_error** error);

// Owned handle of the C interface.
template <typename T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* handle) const { Release(handle); }
};
template <typename T, void (*Release)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, Release>>;
using State = Owned<shw_state, shw_state_release>;
using Storage = Owned<shw_storage, shw_storage_release>;
using Collective = Owned<shw_collective, shw_collective_release>;
using Checkpoint = Owned<shw_checkpoint, shw_checkpoint_release>;
using Buffer = Owned<shw_buffer, shw_buffer_release>;
using Report = Owned<shw_report, shw_report_release>;
using Job = Owned<shw_job, shw_job_release>;
using Plan = Owned<shw_plan, shw_plan_release>;
using SavePlanner = Owned<shw_save_planner, shw_save_planner_release>;
using LoadPlanner = Owned<shw_load_planner, shw_load_planner_release>;
using Layout = Owned<shw_layout, shw_layout_release>;
using GlobalPlan = Owned<shw_global_plan, shw_global_plan_release>;

}  // namespace contract
