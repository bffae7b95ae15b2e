// SPDX-License-Identifier: Apache-2.0
//
// What a removal of entries (entry_removal.h) leaves to do behind the new index, written down
// before anything else changes, so that the next one can finish it.
//
//   .shardwright.removal = {"before": INDEX, "after": INDEX, "files": [NAME, ...],
//                           "digests": NAME, "new_digests": NAME, "kept": TEXT}
//
// INDEX is the XXH3-128 of an index as hex. Thread rule of the storage.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::format::torch_dcp {

struct RemovalList {
  std::string before;                   // digest_text of the index with the entries
  std::string after;                    // and of the one without
  std::vector<std::string> files = {};  // of data, which go unless the index in place names them
  // The file that digests of the index lie in, and the one in which those of the new index wait; ""
  // where it has none.
  std::string digests = {};
  std::string new_digests = {};
  std::string kept = {};  // what a format around wants to have again

  friend bool operator==(const RemovalList&, const RemovalList&) = default;
};

std::string digest_text(std::span<const std::byte> index);

std::string encode_removal_list(const RemovalList& list);
// DATA_LOSS for what is none, and for files that are no files of data. Pure.
Result<RemovalList> decode_removal_list(std::span<const std::byte> bytes);
// The one that lies there; nullopt = none.
Result<std::optional<RemovalList>> read_removal_list(const Location& location);

}  // namespace shardwright::format::torch_dcp
