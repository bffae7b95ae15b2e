// SPDX-License-Identifier: Apache-2.0
//
// Items of tensors: each is an archive of torch.save that holds one tensor. Where its elements lie
// is known from the first bytes of the archive. Pure but for reading, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/result.h"
#include "core/format/archive/archive_bytes.h"
#include "core/format/derived_items.h"
#include "core/tensor/dtype.h"

namespace shardwright::format::torch_dcp {

// Bytes of an item that show where its elements lie, with names and pickles of the usual size.
inline constexpr uint64_t kItemHeadBytes = 4096;

// Where the elements of an item's tensor lie.
struct FoundElements {
  StridedSource source;          // its offset counts from the beginning of the item
  bool is_whole_record = false;  // a record has no more than them
  uint32_t crc = 0;              // of that record; 0 = it has none, or it was not seen
};

// The elements of the tensor in an item. head: its first kItemHeadBytes, or all; more is read only
// where these do not show it. DATA_LOSS for an item that is damaged or holds something else than a
// tensor of that dtype and those sizes; UNIMPLEMENTED for kinds of tensors that are not given;
// PERMISSION_DENIED as ZipDirectory.
Result<FoundElements> find_elements(const archive::ArchiveBytes& item,
                                    std::span<const std::byte> head, DType dtype,
                                    std::span<const int64_t> sizes);

// The same by the head alone; nullopt when it does not show it. What fails here may still be found
// by find_elements.
Result<std::optional<FoundElements>> find_elements_in_head(const archive::ArchiveBytes& item,
                                                           std::span<const std::byte> head,
                                                           DType dtype,
                                                           std::span<const int64_t> sizes);

}  // namespace shardwright::format::torch_dcp
