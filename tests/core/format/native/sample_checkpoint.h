// SPDX-License-Identifier: Apache-2.0
//
// A small native checkpoint made by hand from the codec of the format: two ranks, a sharded tensor,
// a scalar, a tensor larger than one digest block when asked for, objects. Deterministic: equal
// options give equal bytes, so it is also the golden checkpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/format/native/manifest.h"
#include "core/format/native/rank_file.h"
#include "core/storage/storage.h"

namespace shardwright::format::native::test {

inline constexpr std::string_view kSampleGeneration = "018f3c2a9b5d7e10a1b2c3d4e5f60718";

struct SampleOptions {
  std::string generation{kSampleGeneration};
  bool digests = true;
  bool large = false;  // adds a tensor of 2.5 MiB to rank 0's file
  std::vector<std::string> kept_generations;
};

// A checkpoint before it lies anywhere: bytes of each file by key below the prefix, the manifest
// among them.
struct Sample {
  Manifest manifest;
  std::map<std::string, std::vector<std::byte>> files;
};

// Fails the running test when the codec refuses what it is given.
Sample make_sample(const SampleOptions& options = {});
// The manifest's bytes again, after a test changed it; recomputes nothing else.
std::vector<std::byte> manifest_bytes(const Manifest& manifest);
// Writes all files under prefix.
void store_sample(const Sample& sample, storage::Storage* storage, const std::string& prefix);
// Bytes of tensor element i of the sharded tensor: what a reader must find.
std::byte sample_byte(size_t position);

}  // namespace shardwright::format::native::test
