// SPDX-License-Identifier: Apache-2.0
//
// BlockReader: reads digest blocks of a checkpoint's files in as few, as large and as parallel
// reads as it can, checks each block, and hands it to a sink. In steps:
//   1  needs (one per block and user of it) are sorted by file and offset;
//   2  neighbours are joined to tasks of up to kReadTaskBytes while the gap between them is cheap
//      to read over;
//   3  tasks run on the workers: read into staging memory, or straight into memory that the sink
//      offers, several at a time where they go to the device;
//   4  each block is checked once, in private memory, and consumed. Ranks of one machine that share
//      reads check a block once for all of them (shared_reads_internal.h).
// Large files are read with direct I/O where the storage has it. A task that finds its bytes in the
// page cache copies them from there block by block, so that each is checked while the processor
// still has it. Thread-compatible; sinks are called by many threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/limits.h"
#include "core/exec/options.h"
#include "core/exec/runtime.h"
#include "core/exec/save.h"
#include "core/exec/trace.h"
#include "core/format/format.h"

namespace shardwright::exec::internal {

// Longest single read: with twice of it the last bytes come later and the first are checked later,
// which costs 5 % (measured, 1 to 4 ranks).
inline constexpr uint64_t kReadTaskBytes = kWriteBlockBytes / 2;
// Least bytes of a file in one call for direct I/O. Conversions read block by block, also such as
// are not full; round the page cache they take two thirds of the time.
inline constexpr uint64_t kDirectFileBytes = kReadTaskBytes;
inline constexpr uint64_t kDirectTaskBytes = uint64_t{256} << 10;  // least bytes of a direct read
inline constexpr uint64_t kFreeGapBytes = 4096;                    // read over at any price
inline constexpr uint64_t kMaxGapBytes = uint64_t{256} << 10;      // about 0.1 ms of a fast disk
inline constexpr uint64_t kMaxOverReadTenths = 13;  // a joined read is at most 1.3 x its needs
inline constexpr uint64_t kMinStagingBytes = uint64_t{64} << 10;
inline constexpr size_t kLocatedTogether = 256;  // items of one call of locate
// Of each worker, where reads go to the device; a worker that shares reads begins with one.
inline constexpr uint32_t kMostReadsInFlight = 4;
inline constexpr uint32_t kLeastReadsInFlight = 2;
inline constexpr uint64_t kCachedTenths = 9;  // least share of a task that is read from the cache

// What a need reads: a chunk, an object or padding.
enum class NeedKind : uint8_t { kChunk = 0, kObject = 1, kPadding = 2 };

// One block of a chunk or object that somebody wants. With verification the range is the whole
// block, else it may be the wanted part of it.
struct BlockNeed {
  uint64_t offset = 0;  // in the file
  uint64_t item = 0;    // chunk or object number
  uint64_t begin = 0;   // in the item's bytes
  uint32_t file = 0;
  uint32_t length = 0;
  uint32_t user = 0;  // the sink's own number
  NeedKind kind = NeedKind::kChunk;
};

// One read: needs [first, last) of the sorted list lie in `length` bytes at `offset`.
struct ReadTask {
  uint32_t file = 0;
  uint32_t handle = 0;  // number of the file among the files of the call
  bool direct = false;
  uint64_t offset = 0;
  uint64_t length = 0;
  size_t first = 0;
  size_t last = 0;
};

struct TaskRules {
  uint64_t alignment = 1;  // of direct reads; a power of two
  bool direct_offered = false;
  std::span<const format::FileInfo> files;
};
// Step 1. Pure.
void sort_needs(std::vector<BlockNeed>* needs);
// Steps 1 and 2. Pure; sorts the needs.
std::vector<ReadTask> make_read_tasks(std::vector<BlockNeed>* needs, const TaskRules& rules);
// A task as it is read: direct, with both ends on the alignment, where that is worth it.
ReadTask rounded_task(ReadTask task, const TaskRules& rules);

class NodeGroup;

class BlockSink {
 public:
  virtual ~BlockSink() = default;
  // Memory that takes exactly the bytes of these needs (neighbours without gaps), or nothing:
  // staging is used.
  virtual std::span<std::byte> destination(std::span<const BlockNeed> needs);
  // Checked bytes of one block; needs: everybody who wants it. landed: they lie in the memory that
  // destination gave.
  virtual Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                         bool landed) = 0;
  // A block that could not be read or failed its check. Success means: go on with the next one.
  virtual Status failed(const BlockNeed& need, Status status);
  // True when failed() may answer with success; a read that fails is then repeated block by block.
  virtual bool survives_failures() const { return false; }
};

struct BlockReadTotals {
  uint64_t bytes_read = 0;
  uint64_t bytes_cached = 0;  // of them, known to have come from the page cache
  std::string io_engine;      // of batched reads; empty when there were none

  void add(const BlockReadTotals& more);
};

// Reads, checks and consumes. The first failure ends the call; blocks consumed before stay
// consumed.
class BlockReader {
 public:
  // Everything outlives the reader; trace may be null.
  BlockReader(Runtime& runtime, const format::Location& location,
              const format::OpenedCheckpoint& opened, Trace* trace = nullptr)
      : runtime_(runtime), location_(location), opened_(opened), trace_(trace) {}

  Runtime& runtime() const { return runtime_; }
  // group: shares some of the needs; null = none.
  Result<BlockReadTotals> run(std::vector<BlockNeed> needs, const ReadRules& rules,
                              const CallContext& call, BlockSink& sink,
                              NodeGroup* group = nullptr) const;

 private:
  Runtime& runtime_;
  const format::Location& location_;
  const format::OpenedCheckpoint& opened_;
  Trace* trace_;
};

// Makes the extents of these items known, in any order and with repeats, by as many workers as
// there are: prepares their files, then finds their places. item_at: of every number below count.
Status prepare_items(Runtime& runtime, const format::OpenedCheckpoint& opened, size_t count,
                     const std::function<format::StoredItem(size_t)>& item_at,
                     const CallControl& control);

// Bytes that are the unit of reading: those of a digest, or of one where there are none.
uint64_t block_bytes_of(const format::OpenedCheckpoint& opened);
// Appends the needs of all blocks of a whole chunk or object, which prepare_items was given.
Status append_whole_item(const format::OpenedCheckpoint& opened, format::StoredItem item,
                         uint32_t user, std::vector<BlockNeed>* needs);

}  // namespace shardwright::exec::internal
