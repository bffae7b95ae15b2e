// SPDX-License-Identifier: Apache-2.0
//
// What victims did to files, as seam.c recorded it: the calls of all ranks in their order. Paths
// are relative to the directory that the test gave the victims; what happened outside it is left
// out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::crash {

// Bytes are shared: logs are copied and spoiled.
struct RecordedCall {
  uint32_t kind = 0;  // SEAM_
  int32_t rank = 0;
  int32_t error = 0;   // errno that a sync failed with, 0 = it succeeded
  std::string path;    // of a mark: the sentence
  std::string second;  // new name of a rename or link
  uint64_t inode = 0;
  uint64_t offset = 0;  // of a change of size: the size
  std::shared_ptr<const std::string> data;
};

// Reads a log file. Throws std::runtime_error when it is none.
std::vector<RecordedCall> read_record(const std::string& log, std::string_view root);

}  // namespace shardwright::crash
