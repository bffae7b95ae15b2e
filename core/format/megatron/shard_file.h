// SPDX-License-Identifier: Apache-2.0
//
// Files of sharded objects as Megatron-core wrote them beside arrays of zarr:
//
//   KEY/shard_OFFSETS_SHAPE.pt     lists of numbers with "." between; in old ones the shape lacks
//                                  its last number where it has more than one
//
// Each is what torch.save makes of the object. Among the data of torch_dist the same object has the
// name KEY/shard_OFFSETS_SHAPE and is the only element of a list. Pure but for reading, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"
#include "core/tensor/dims.h"

namespace shardwright::format::megatron {

struct ShardName {
  std::string_view key;  // of the text that was parsed
  Dims offsets;
  Dims shape;  // one number fewer than offsets in old names

  bool lacks_extent() const { return shape.size() < offsets.size(); }
};

// Of a path relative to the checkpoint; nullopt for other files.
std::optional<ShardName> parse_shard_name(std::string_view path);
// "KEY/shard_0.1_1.2".
std::string object_name(const ShardName& name);

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
