// SPDX-License-Identifier: Apache-2.0
//
// Files of sharded objects as Megatron-core wrote them beside arrays of zarr:
//
//   KEY/shard_OFFSETS_SHAPE.pt     lists of numbers with "." between; in old ones the shape lacks
//                                  its last number where it has more than one
//
// Each is what torch.save makes of the object. Among the data of torch_dist the same object has the
// name KEY/shard_OFFSETS_SHAPE (core/state/object_key.h) and is the only element of a list. Pure
// but for reading, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"
#include "core/state/object_key.h"

namespace shardwright::format::megatron {

// The object whose file a path relative to the checkpoint is; nullopt for other files. DATA_LOSS
// naming file and key where the object is a cell outside of its grid.
Result<std::optional<ObjectKey>> object_of_file(std::string_view path);

// The archive of a list whose only element is the value of another archive: bytes that were made,
// and ranges of the other one between them.
struct ListedArchive {
  struct Part {
    std::vector<std::byte> bytes;  // none: a range
    uint64_t offset = 0;           // of the range
    uint64_t size_bytes = 0;       // of either
  };
  std::vector<Part> parts;
  uint64_t size_bytes = 0;
};
// The failures of TorchArchive::open and of locating payloads; DATA_LOSS for a pickle without an
// end; UNIMPLEMENTED for a model with its code.
Result<ListedArchive> listed_archive(const archive::ArchiveBytes& value);

}  // namespace shardwright::format::megatron
