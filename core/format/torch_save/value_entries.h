// SPDX-License-Identifier: Apache-2.0
//
// The entries of a saved value: what lies at the ends of its dicts, lists and tuples, in their
// order. A tensor is a tensor; all else is an exported value (archive/pickle_export.h). Names join
// the keys by ".", paths keep their kinds. Containers may be shared, so an entry may come twice
// under different names; what a small pickle can make of that is bounded. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::format::torch_save {

inline constexpr uint64_t kMaxEntries = uint64_t{4} << 20;
inline constexpr size_t kMaxEntryNotes = 16;

struct ValueEntry {
  std::string name;
  std::string path;  // compact JSON; "" for a value that is no container
  std::optional<archive::TorchTensor> tensor;
  archive::ExportedValue object;  // when it is no tensor
};

struct ValueEntries {
  std::vector<ValueEntry> entries;
  std::map<std::string, std::string> metadata;  // attributes of state dicts, as JSON
  std::vector<std::string> notes;               // what is there and cannot be given
};

// data: read with torch_vocabulary(); views of it stay in the entries. DATA_LOSS for a tensor that
// no torch writes, and a container that holds itself; RESOURCE_EXHAUSTED above a limit.
Result<ValueEntries> entries_of(const archive::PickleData& data, std::string_view file,
                                uint64_t pickle_bytes);

}  // namespace shardwright::format::torch_save
