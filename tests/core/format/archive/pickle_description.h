// SPDX-License-Identifier: Apache-2.0
//
// Values of a pickle as text, for tests: (1, "a"), [..], {k: v}, set{..}, <module.name>,
// module.name(arguments) and what BUILD set behind "|". pickle_differential_test.py writes what
// CPython makes of a pickle in the same form.
#pragma once

#include <string>
#include <string_view>

#include "core/format/archive/pickle_data.h"
#include "core/format/archive/pickle_reader.h"

namespace shardwright::format::archive::test {

// Stops with "..." below 64 levels and behind 20,000 values.
std::string describe(const PickleData& data, PickleRef value);
std::string describe(const PickleData& data);

// The bytes of a text with its NULs, as a pickle.
std::span<const std::byte> pickle_of(std::string_view bytes);

}  // namespace shardwright::format::archive::test
