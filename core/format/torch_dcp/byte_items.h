// SPDX-License-Identifier: Apache-2.0
//
// Items of byte objects: each is an archive of torch.save that holds one value. Plain values are
// read when the checkpoint is opened, and are then what the native format stores: JSON, bytes, or a
// pickle that nobody runs. Values with tensors inside, large ones and those that could not be read
// stay the archive that they are stored as. Pure but for reading, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/opened_checkpoint.h"
#include "core/format/torch_dcp/dcp_index.h"

namespace shardwright::format::torch_dcp {

inline constexpr std::string_view kTorchSaveType = "application/x-torch-save";
// One that lies behind a transform and could not be read.
inline constexpr std::string_view kTransformedType = "application/x-torch-save-transformed";
inline constexpr uint64_t kMaxReadObjectBytes = uint64_t{1} << 20;  // one item that is read
inline constexpr uint64_t kMaxReadObjects = uint64_t{256} << 20;    // bytes of all of them

struct ByteObject {
  std::string content_type;
  std::string bytes;       // nothing when it stays as it is stored
  bool is_stored = false;  // it stays as it is stored
};

// Of one item. The value is as stored when it cannot be given in another form.
ByteObject read_object(std::span<const std::byte> item, std::string_view file, uint64_t* budget);
// Whether the bytes of an object's item are those that were written.
using CheckItem = std::function<bool(size_t object, std::span<const std::byte> item)>;
// Of all objects of the index, in its order. files: with their sizes. Items of files that cannot be
// read stay as they are stored; the notes say so. Items that do not pass the check stay, too: who
// reads them hears of it. check: null = none.
std::vector<ByteObject> read_objects(const Location& location, const DcpIndex& index,
                                     std::span<const FileInfo> files, const CheckItem& check,
                                     std::vector<std::string>* notes);

}  // namespace shardwright::format::torch_dcp
