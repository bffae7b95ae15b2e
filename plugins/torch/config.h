// SPDX-License-Identifier: Apache-2.0
//
// The config text of a collective or communicator of this plugin: a JSON object.
#pragma once

#include <string_view>

#include "core/base/result.h"
#include "core/collective/c10d/c10d_collective.h"

namespace shardwright::torch_plugin {

//   {"group": name of a registered process group,
//    "use": "calls",      groups of different uses may be used at a time
//    "gloo": "",          a registered group with Gloo, where `group` has none
//    "keep": true,        the side group stays for the next collective of that group and use (that
//                         of a communicator ends with it)
//    "seconds": 1800,     of each operation at most
//    "poll_seconds": 0.5} how often a rank in a call asks for failures of the others
// INVALID_ARGUMENT for other text, an unknown key, a value of another type, and no group.
Result<collective::GroupRequest> read_config(std::string_view text);

}  // namespace shardwright::torch_plugin
