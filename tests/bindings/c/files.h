// SPDX-License-Identifier: Apache-2.0
//
// The steps of the contract that change files below a scenario's directory.
#pragma once

#include <filesystem>

#include "tests/bindings/c/values.h"

namespace contract {

// Runs the step and returns true, or returns false when it is none of these. Throws
// std::runtime_error.
bool run_file_step(const std::filesystem::path& root, const Json& step);

}  // namespace contract
