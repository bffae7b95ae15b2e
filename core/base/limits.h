// SPDX-License-Identifier: Apache-2.0
//
// Named bounds of everything that is counted, queued, retried or read from outside. One place, so
// that a reader sees all of them; docs/formats/native.md repeats those that concern files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardwright {

inline constexpr int32_t kMaxTensorRank = 64;            // dimensions of a tensor
inline constexpr uint64_t kMaxNameBytes = 65535;         // UTF-8 bytes of a tensor name
inline constexpr uint64_t kMaxPathTextBytes = 1U << 20;  // nested path of one entry, JSON text
// Bytes of the texts that the records of a catalog use over the bytes of its texts.
inline constexpr uint64_t kMaxTextUses = 4;
inline constexpr uint64_t kMaxObjectBytes = uint64_t{64} << 20;  // one byte object in our files
inline constexpr uint64_t kMaxDescribedObjectBytes = uint64_t{1} << 40;  // in files of others
inline constexpr uint64_t kMaxMetadataBytes =
    uint64_t{16} << 20;  // all metadata keys and values of a checkpoint
inline constexpr uint64_t kMaxFlatBufferBytes = (uint64_t{1} << 31) - 1;
inline constexpr int32_t kMaxWorldSize = 1 << 20;
inline constexpr int64_t kMaxPiecesPerRank = 1 << 20;  // boxes of one tensor by a strided layout
inline constexpr uint64_t kDigestBlockBytes = uint64_t{1}
                                              << 20;         // unit of protection inside a chunk
inline constexpr uint64_t kExtentAlignmentBytes = 4096;      // file offset of a large chunk
inline constexpr uint64_t kSlabChunkLimitBytes = 64 * 1024;  // smaller chunks are packed into slabs
inline constexpr uint64_t kSlabAlignmentBytes = 64;          // offset of a packed chunk
inline constexpr uint64_t kWriteBlockBytes = uint64_t{4} << 20;  // unit of a large write or read
inline constexpr uint64_t kDefaultMemoryBudgetBytes = uint64_t{256} << 20;
inline constexpr int32_t kMaxDefaultThreads = 8;
inline constexpr uint64_t kReplicaDigestLimitBytes = uint64_t{1} << 20;  // verify_replicas = auto
inline constexpr int64_t kDefaultCollectiveDeadlineNs = int64_t{1800} * 1000 * 1000 * 1000;
inline constexpr uint64_t kFreeSpaceReserveBytes = uint64_t{64} << 20;
inline constexpr int32_t kMaxGenerationDraws = 16;  // tries for an unused generation id
inline constexpr int64_t kGcGraceNs = int64_t{24} * 3600 * 1000 * 1000 * 1000;
inline constexpr int64_t kFencePollNs = int64_t{20} * 1000 * 1000;  // a save that waits for gc asks
inline constexpr int64_t kMaxFenceWaitNs = int64_t{600} * 1000 * 1000 * 1000;  // and gives up
inline constexpr uint64_t kMaxListedBoxes = uint64_t{1} << 28;  // chunks of a plan as flat arrays
inline constexpr int32_t kMaxFindings = 1000;                   // findings listed by a verifier
inline constexpr int32_t kNearestNames = 3;                     // suggestions in NOT_FOUND
inline constexpr size_t kNearestCompared = 256;  // names that are compared in full for them

}  // namespace shardwright
