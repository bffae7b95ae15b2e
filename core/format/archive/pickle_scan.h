// SPDX-License-Identifier: Apache-2.0
//
// What a pickle would import and call if it were unpickled, for people who decide whether they
// trust it. Nothing is imported. Pure function, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/format/archive/pickle_reader.h"

namespace shardwright::format::archive {

struct PickleImport {
  std::string module;  // bytes as they stand in the pickle
  std::string name;
  uint64_t offset = 0;     // of the opcode that looks it up first
  bool is_known = false;   // it is in the vocabulary, and is called only as that allows
  uint64_t imports = 0;    // times that it is looked up
  uint64_t calls = 0;      // times that it is called
  uint64_t instances = 0;  // times that an object of it is made without a call
};

// Module of the entry for calls of values that are computed, which no name tells.
inline constexpr std::string_view kComputedModule = "(computed value)";

struct PickleScan {
  std::vector<PickleImport> imports;  // in the order of appearance
  int protocol = 0;
  uint64_t end = 0;  // behind the last opcode that was understood
  Status ended;      // success, or why the scan could not go on to the end
};

// file: what messages call the input. vocabulary: what is known; may be empty. What was found up to
// a failure is listed with it, because an unpickler would have done that much.
PickleScan scan_pickle(std::span<const std::byte> input, std::string_view file,
                       std::span<const PickleClass> vocabulary = {},
                       const PickleLimits& limits = {});

}  // namespace shardwright::format::archive
