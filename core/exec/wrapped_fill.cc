// SPDX-License-Identifier: Apache-2.0
//
// Tasks of files whose items are wrapped. Of a task first all bytes of items come to where they are
// wanted, by one read where they come from elsewhere; then checksums are summed while the bytes are
// hot, and what wraps the items is put around them. A small item that lies across a cut is read
// whole by each task that needs its checksum; its digest belongs to the task with its first byte.
#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "core/base/copy_bytes.h"
#include "core/base/limits.h"
#include "core/concurrency/mutex.h"
#include "core/exec/block_filler_internal.h"
#include "core/integrity/crc32.h"

namespace shardwright::exec::internal {
namespace {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool empty() const { return begin >= end; }
};

Range common(const Range& a, const Range& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

// Where the last 4 KiB of an item begin that are no whole ones.
uint64_t end_begin(uint64_t item_bytes) {
  return item_bytes / kExtentAlignmentBytes * kExtentAlignmentBytes;
}

}  // namespace

class BlockFiller::WrappedTask {
 public:
  WrappedTask(BlockFiller& filler, const format::FileLayout& layout, const WriteTask& task,
              std::span<std::byte> buffer)
      : filler_(filler), layout_(layout), task_(task), buffer_(buffer) {}

  Status run() {
    zero_bytes(buffer_);
    for (size_t i = task_.first_item; i < layout_.items.size(); ++i) {
      const format::PlacedItem& placed = layout_.items[i];
      if (layout_.wrapped_begin(placed) >= task_.end) break;
      if (task_.part == WriteTask::Part::kItem && i != task_.first_item) break;
      is_large(placed) ? want_large(placed) : want_small(placed);
    }
    SHW_RETURN_IF_ERROR(filler_.read_runs(runs_));
    finish_runs();
    for (const Wrapped& each : wrapped_) wrap(*each.placed, checksum_of(each));
    return {};
  }

 private:
  static constexpr size_t kNoRun = SIZE_MAX;
  struct Wrapped {
    const format::PlacedItem* placed = nullptr;
    size_t run = kNoRun;  // that has all of its bytes
  };
  // A part of a small item, from its bytes to the task's.
  struct Part {
    size_t run = 0;
    Range range;  // of the file
    uint64_t position = 0;
  };

  Range of_task(uint64_t begin, uint64_t end) const {
    return common({begin, end}, {task_.begin, task_.end});
  }
  std::span<std::byte> at(const Range& range) const {
    return buffer_.subspan(static_cast<size_t>(range.begin - task_.begin),
                           static_cast<size_t>(range.end - range.begin));
  }
  bool is_wrapped_here(const format::PlacedItem& placed) const {
    if (task_.part == WriteTask::Part::kItem || placed.wrapping == format::PlacedItem::kBare)
      return false;
    const uint64_t end = placed.position + placed.size_bytes;
    return !of_task(layout_.wrapped_begin(placed), placed.position).empty() ||
           !of_task(end, layout_.wrapped_end(placed)).empty();
  }

  void want_large(const format::PlacedItem& placed) {
    const uint64_t end = placed.position + placed.size_bytes;
    if (task_.part == WriteTask::Part::kAround) {
      const Range rest = of_task(placed.position + end_begin(placed.size_bytes), end);
      if (!rest.empty()) want(placed, rest, false);
    } else if (const Range range = of_task(placed.position, end); !range.empty()) {
      blocks_.push_back(runs_.size());
      want(placed, range, true);
    }
    if (is_wrapped_here(placed)) wrapped_.push_back({&placed, kNoRun});
  }

  void want_small(const format::PlacedItem& placed) {
    const uint64_t end = placed.position + placed.size_bytes;
    const Range range = of_task(placed.position, end);
    const bool wraps = is_wrapped_here(placed);
    if (wraps) wrapped_.push_back({&placed, placed.size_bytes == 0 ? kNoRun : runs_.size()});
    if (placed.size_bytes == 0 || (range.empty() && !wraps)) return;
    if (range.begin == placed.position && range.end == end) return want(placed, range, true);
    std::vector<std::byte>& all = whole_.emplace_back(static_cast<size_t>(placed.size_bytes));
    if (!range.empty()) parts_.push_back({runs_.size(), range, placed.position});
    const bool is_first = task_.begin <= placed.position && placed.position < task_.end;
    runs_.push_back({{placed.item, 0, all}, is_first});
  }

  void want(const format::PlacedItem& placed, const Range& range, bool is_digested) {
    runs_.push_back({{placed.item, range.begin - placed.position, at(range)}, is_digested});
  }

  void finish_runs() {
    for (const size_t run : blocks_) {
      filler_.sum_blocks(runs_[run].run);
      if (task_.part == WriteTask::Part::kItem)
        filler_.keep_end(runs_[run].run, layout_.items[task_.first_item].size_bytes);
    }
    for (const Part& part : parts_) {
      const auto from =
          runs_[part.run].run.to.subspan(static_cast<size_t>(part.range.begin - part.position),
                                         static_cast<size_t>(part.range.end - part.range.begin));
      copy_bytes(from, at(part.range));
    }
  }

  uint32_t checksum_of(const Wrapped& each) const {
    if (each.run != kNoRun) return integrity::crc32(0, runs_[each.run].run.to);
    return each.placed->size_bytes == 0 ? 0 : filler_.checksum_of(*each.placed);
  }

  void wrap(const format::PlacedItem& placed, uint32_t checksum) const {
    const format::Wrapping& wrapping = layout_.wrappings[placed.wrapping];
    put(wrapping.front, wrapping.front_checksums, checksum, layout_.wrapped_begin(placed));
    put(wrapping.behind, wrapping.behind_checksums, checksum, placed.position + placed.size_bytes);
  }

  // Bytes that stand at a position of the file, as far as the task has it.
  void put(std::span<const std::byte> bytes, std::span<const uint32_t> places, uint32_t checksum,
           uint64_t position) const {
    const auto put_part = [&](std::span<const std::byte> part, uint64_t begin) {
      const Range range = of_task(begin, begin + part.size());
      if (range.empty()) return;
      copy_bytes(part.subspan(static_cast<size_t>(range.begin - begin),
                              static_cast<size_t>(range.end - range.begin)),
                 at(range));
    };
    put_part(bytes, position);
    for (const uint32_t place : places)
      put_part(std::as_bytes(std::span(&checksum, 1)), position + place);
  }

  BlockFiller& filler_;
  const format::FileLayout& layout_;
  const WriteTask& task_;
  const std::span<std::byte> buffer_;
  std::vector<WrappedRun> runs_;
  std::vector<size_t> blocks_;  // runs of large items
  std::vector<Part> parts_;
  std::vector<Wrapped> wrapped_;
  std::deque<std::vector<std::byte>> whole_;  // small items across a cut
};

Status BlockFiller::fill_wrapped(const format::FileLayout& layout, const WriteTask& task,
                                 std::span<std::byte> buffer) {
  return WrappedTask(*this, layout, task, buffer).run();
}

Status BlockFiller::read_runs(std::span<const WrappedRun> runs) {
  if (bytes_ == nullptr) {
    for (const WrappedRun& each : runs) SHW_RETURN_IF_ERROR(read_run(each));
    return {};
  }
  std::vector<WantedRun> wanted;
  for (const WrappedRun& each : runs) {
    const MutexLock lock(ends_mutex_);
    const auto kept = ends_.find(each.run.item);
    if (each.is_digested || kept == ends_.end()) {
      wanted.push_back(each.run);
      continue;
    }
    const uint64_t begin = end_begin(source_.list.items[each.run.item].size_bytes);
    copy_bytes(std::span(kept->second)
                   .subspan(static_cast<size_t>(each.run.begin - begin), each.run.to.size()),
               each.run.to);
  }
  SHW_RETURN_IF_ERROR(bytes_->read(wanted));
  if (!source_.digests) return {};
  for (const WrappedRun& each : runs) {
    if (each.is_digested) digest_run(each.run);
  }
  return {};
}

// Of whole blocks.
void BlockFiller::sum_blocks(const WantedRun& run) {
  for (size_t done = 0; done < run.to.size(); done += kDigestBlockBytes) {
    const auto block =
        run.to.subspan(done, std::min<size_t>(kDigestBlockBytes, run.to.size() - done));
    const uint64_t number = (run.begin + done) / kDigestBlockBytes;
    checksums_[digest_begins_[run.item] + number] = integrity::crc32(0, block);
  }
}

uint32_t BlockFiller::checksum_of(const format::PlacedItem& placed) const {
  uint32_t sum = 0;
  for (uint64_t begin = 0; begin < placed.size_bytes; begin += kDigestBlockBytes) {
    const uint32_t block = checksums_[digest_begins_[placed.item] + begin / kDigestBlockBytes];
    const uint64_t size = std::min(kDigestBlockBytes, placed.size_bytes - begin);
    sum = begin == 0 ? block : integrity::crc32_of_both(sum, block, size);
  }
  return sum;
}

void BlockFiller::keep_end(const WantedRun& run, uint64_t item_bytes) {
  const uint64_t begin = end_begin(item_bytes);
  if (bytes_ == nullptr || begin == item_bytes || run.begin + run.to.size() != item_bytes) return;
  const auto end = run.to.last(static_cast<size_t>(item_bytes - begin));
  const MutexLock lock(ends_mutex_);
  ends_[run.item].assign(end.begin(), end.end());
}

}  // namespace shardwright::exec::internal
