// SPDX-License-Identifier: Apache-2.0
//
// A value of a pickle as bytes of its own that other languages read: JSON where it is plain data,
// bytes where it is bytes, and else a pickle of this value alone, which nobody has run and nobody
// runs who does not trust it. Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/format/archive/pickle_data.h"

namespace shardwright::format::archive {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kBytesType = "application/octet-stream";
inline constexpr std::string_view kPickleType = "application/python-pickle";
// JSON text that says what a value is that cannot be given: {"class": "module.name"}.
inline constexpr std::string_view kOpaqueType = "application/x-opaque+json";

struct ExportedValue {
  std::string_view content_type;  // one of the above
  std::string bytes;
};

// The vocabulary that the data was read with names what records are; torch_vocabulary(). Tuples are
// {"$tuple": [...]} in JSON, mappings whose keys are no plain text {"$map": [[key, value], ...]},
// numbers that JSON lacks {"$float": "nan"}; dtypes and devices of torch are text. Opaque: a value
// with tensors inside, one that holds itself, or more bytes than *budget_bytes, which what is
// written, in vain too, takes from: small pickles can say much.
ExportedValue export_value(const PickleData& data, PickleRef value, uint64_t* budget_bytes);

// "module.name" of what an object is made by, or the kind of any other value.
std::string class_name(const PickleData& data, PickleRef value);

}  // namespace shardwright::format::archive
