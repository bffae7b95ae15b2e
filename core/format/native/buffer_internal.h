// SPDX-License-Identifier: Apache-2.0
//
// What manifest and index share on their way through FlatBuffers: text columns of bytes, digests,
// versions. Included by the codec sources of this folder only. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <flatbuffers/flatbuffers.h>

#include "core/base/limits.h"
#include "core/base/result.h"
#include "core/integrity/digest.h"
#include "core/plan/catalog.h"
#include "core/plan/wire/records.h"

namespace shardwright::format::native::internal {

using TextVector = flatbuffers::Vector<uint8_t>;

inline flatbuffers::Offset<TextVector> encode_text(flatbuffers::FlatBufferBuilder* builder,
                                                   std::string_view text) {
  return builder->CreateVector(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

inline std::string decode_text(const TextVector* text) {
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text->data()), text->size()};
}

inline flatbuffers::Verifier::Options verifier_options(size_t size_bytes) {
  flatbuffers::Verifier::Options options;
  options.max_depth = 32;
  options.max_tables = static_cast<flatbuffers::uoffset_t>(size_bytes / 16 + 1);
  return options;
}

// UNIMPLEMENTED with detail needed_version for a version that this library does not read.
struct StoredVersion {
  uint32_t major_number = 0;
  uint32_t minor_number = 0;
  uint32_t minimum_reader_minor = 0;
};
Status check_version(const StoredVersion& version, std::string_view what);

}  // namespace shardwright::format::native::internal
