// SPDX-License-Identifier: Apache-2.0
//
// Reports of calls as commands print them. Thread-compatible.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/session.h"

namespace shardwright::cli {

// What shw_report_json says.
nlohmann::ordered_json json_of(const Report& report);
// One line; bytes that are no UTF-8 are replaced.
void print_json(const nlohmann::ordered_json& json);
void print_notes(const nlohmann::ordered_json& report);
// A line for each of "removed"; not applied: that it would be.
void print_removed(const nlohmann::ordered_json& report, bool applied);

}  // namespace shardwright::cli
