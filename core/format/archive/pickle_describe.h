// SPDX-License-Identifier: Apache-2.0
//
// A value of a pickle as JSON for people: what kind it is and what is in it. Plain data is what it
// is elsewhere (pickle_export.h); dates, numbers, paths, streams and arrays that pickles of the
// standard library and of numpy hold are spelled out; any other object says its class, its
// arguments and its state. It can not be read back. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>

#include "core/format/archive/pickle_data.h"

namespace shardwright::format::archive {

// The data was read with torch_vocabulary(). What exceeds most_bytes, or is nested too deep, ends
// in {"$more": true}.
std::string describe_value(const PickleData& data, PickleRef value, uint64_t most_bytes);

}  // namespace shardwright::format::archive
