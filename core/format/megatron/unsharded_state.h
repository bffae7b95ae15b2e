// SPDX-License-Identifier: Apache-2.0
//
// The common state of a checkpoint: what its entries under the name "common" say, as one nested
// value. Each comes as the item that a rank wrote of it, an archive of torch.save; all together
// become one archive again: common.pt, or the list of one that is the object common_state. Nothing
// of a pickle is run. Pure, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::megatron {

// First key of the entries of the common state.
inline constexpr std::string_view kCommonKey = "common";
// The object that holds it where common.pt does not.
inline constexpr std::string_view kCommonObject = "common_state/shard_0_1";
inline constexpr uint64_t kMaxCommonBytes = uint64_t{1} << 30;

// Whether an entry of the name belongs to it: "common", or what begins with "common.".
bool is_common(std::string_view name);

struct CommonEntry {
  std::string name;
  std::string path;               // JSON text, "" = the parts of the name
  DType dtype = DType::kInvalid;  // of a tensor; kInvalid = a value
  Dims sizes;                     // of a tensor, as torch counts them
  // Elements of a tensor, packed; else the item.
  std::vector<std::byte> bytes;
};

enum class CommonForm : uint8_t { kDict, kListOfOne };

// The archive. Without entries an empty dict; an entry "common" is the whole value. Positions of
// lists and tuples become lists. INVALID_ARGUMENT naming entries that do not fit into one value;
// UNIMPLEMENTED for a value that cannot be written within another one.
Result<std::vector<std::byte>> encode_common(std::span<const CommonEntry> entries, CommonForm form);

}  // namespace shardwright::format::megatron
