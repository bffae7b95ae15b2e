// SPDX-License-Identifier: Apache-2.0
//
// The steps of a run directory, of ours (step-00000100) and of Megatron (iter_0000100 and the
// tracker beside them): listed, and found by number. Thread-compatible.
#pragma once

#include <cstdint>
#include <string>

#include "cli/session.h"

namespace shardwright::cli {

// Prints the steps of a directory that could not be opened as a checkpoint. False, and nothing
// printed: the failure says more, as it is another one or the directory holds no steps.
bool print_steps(Session& session, const std::string& path, const Failure& failure);

// Path of the step of that number. Throws a Failure that names the steps which are there.
std::string path_of_step(Session& session, const std::string& run, int64_t number);

}  // namespace shardwright::cli
