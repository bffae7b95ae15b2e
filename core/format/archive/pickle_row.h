// SPDX-License-Identifier: Apache-2.0
//
// Pickles that lie one behind the other, as in the files of torch.save before 1.6, in front of
// whatever else. Nothing says how long they are, so the beginning is read in growing pieces. Pure
// but for the reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/archive/pickle_reader.h"

namespace shardwright::format::archive {

inline constexpr uint64_t kMaxRowBytes = uint64_t{1} << 30;
inline constexpr size_t kMaxPicklesInARow = 64;

// Whether bytes begin as those of protocols 2 to 5.
bool is_marked_pickle(std::span<const std::byte> head);

struct PickleRow {
  std::vector<std::byte> head;   // of the bytes, as far as they were read
  std::vector<uint64_t> begins;  // of each pickle, and where the last one ends
  bool is_whole = false;         // else the last one does not end where it seems to
  bool names_something = false;  // the first one imports something

  size_t size() const { return begins.size() - 1; }
  std::span<const std::byte> pickle(size_t i) const {
    return std::span(head).subspan(begins[i], begins[i + 1] - begins[i]);
  }
};

// The first is a pickle of any protocol; those behind it are of 2 and later. Failures of reading.
Result<PickleRow> read_pickle_row(const ArchiveBytes& bytes);

}  // namespace shardwright::format::archive
