// SPDX-License-Identifier: Apache-2.0
//
// Gathers and digests in one pass; how, is the device's concern.
#include "core/exec/block_filler_internal.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/copy_bytes.h"
#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright::exec::internal {

// An object's bytes are in host memory; else window says where a tensor's are.
struct BlockFiller::Bytes {
  std::span<const std::byte> object;
  device::DeviceWindow window;  // no device: an object

  Status copy(uint64_t begin, std::span<std::byte> to) const {
    if (window.device != nullptr) return window.device->gather(window, begin, to);
    copy_bytes(object.subspan(begin, to.size()), to);
    return {};
  }

  Result<integrity::Digest128> copy_and_digest(uint64_t begin, std::span<std::byte> to) const {
    if (window.device != nullptr) return window.device->gather_and_digest(window, begin, to);
    return integrity::copy_and_digest(object.subspan(begin, to.size()), to);
  }
};

BlockFiller::BlockFiller(const device::Devices& devices, const format::RankContents& source,
                         ContentSource* bytes)
    : devices_(devices), source_(source), bytes_(bytes) {
  digest_begins_.reserve(source.list.items.size() + 1);
  digest_begins_.push_back(0);
  uint64_t count = 0;
  for (const plan::WriteItem& item : source.list.items) {
    count += integrity::block_count(item.size_bytes);
    digest_begins_.push_back(count);
  }
  if (source.digests) digests_.resize(static_cast<size_t>(count));
}

Result<BlockFiller::Bytes> BlockFiller::bytes_of(const plan::WriteItem& item) const {
  Bytes bytes;
  if (item.piece == plan::kObjectPiece) {
    bytes.object = source_.state.objects()[item.entry].bytes;
    return bytes;
  }
  SHW_ASSIGN_OR_RETURN(bytes.window, devices_.piece_window(source_.state, item.entry, item.piece));
  if (window_bytes(bytes.window.elements) != item.size_bytes) {
    return internal_error(fmt::format("tensor '{}' has {} bytes in piece {}, the plan says {}",
                                      escape_text(source_.state.tensors()[item.entry].name),
                                      window_bytes(bytes.window.elements), item.piece,
                                      item.size_bytes));
  }
  return bytes;
}

integrity::Digest128 BlockFiller::key_of(const plan::WriteItem& item) const {
  integrity::ChunkIdentity identity;
  identity.generation = source_.list.generation;
  if (item.piece == plan::kObjectPiece) {
    const ObjectEntry& entry = source_.state.objects()[item.entry];
    identity.name = entry.name;
    identity.content = entry.content_type;
    identity.rank = source_.owner(source_.local.description.catalog.objects[item.entry].rank);
    return integrity::chunk_key(identity);
  }
  const TensorRef entry = source_.state.tensors()[item.entry];
  identity.name = entry.name;
  identity.content = dtype_name(entry.local.dtype);
  identity.shape = entry.global_shape;
  const Box box = entry.pieces[item.piece].box;
  identity.box = &box;
  identity.rank = source_.owner(source_.local.description.catalog.tensors[item.entry].rank);
  return integrity::chunk_key(identity);
}

// target receives the bytes from begin on: whole digest blocks of the item.
Status BlockFiller::fill_blocks(size_t item, const Bytes& from, uint64_t begin,
                                std::span<std::byte> target) {
  if (!source_.digests) return from.copy(begin, target);
  const integrity::Digest128 key = key_of(source_.list.items[item]);
  for (size_t done = 0; done < target.size(); done += kDigestBlockBytes) {
    const auto block =
        target.subspan(done, std::min<size_t>(kDigestBlockBytes, target.size() - done));
    const uint64_t number = (begin + done) / kDigestBlockBytes;
    SHW_ASSIGN_OR_RETURN(const integrity::Digest128 payload,
                         from.copy_and_digest(begin + done, block));
    digests_[digest_begins_[item] + number] =
        integrity::block_digest(payload, key, number, block.size());
  }
  return {};
}

Status BlockFiller::fill_item(const WriteTask& task, const format::PlacedItem& placed,
                              std::span<std::byte> buffer) {
  Status status = fill_part(task, placed, buffer);
  const plan::WriteItem& item = source_.list.items[placed.item];
  if (status.ok() || item.piece == plan::kObjectPiece) return status;
  return device::with_tensor(std::move(status), "reading",
                             source_.state.tensors().name(item.entry));
}

Status BlockFiller::fill_part(const WriteTask& task, const format::PlacedItem& placed,
                              std::span<std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, bytes_of(source_.list.items[placed.item]));
  const uint64_t begin = std::max(task.begin, placed.position) - placed.position;
  const uint64_t end = std::min(task.end, placed.position + placed.size_bytes) - placed.position;
  const auto target = buffer.subspan(static_cast<size_t>(placed.position + begin - task.begin),
                                     static_cast<size_t>(end - begin));
  const bool small = placed.size_bytes < kSlabChunkLimitBytes;
  if (!small || end - begin == placed.size_bytes)
    return fill_blocks(placed.item, bytes, begin, target);
  // A small chunk across a cut: both tasks copy their part, the first one hashes it all.
  SHW_RETURN_IF_ERROR(bytes.copy(begin, target));
  if (begin == 0 && source_.digests) {
    std::vector<std::byte> whole(static_cast<size_t>(placed.size_bytes));
    SHW_RETURN_IF_ERROR(fill_blocks(placed.item, bytes, 0, whole));
  }
  return {};
}

Status BlockFiller::read_run(const WrappedRun& wanted) {
  const plan::WriteItem& item = source_.list.items[wanted.run.item];
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, bytes_of(item));
  Status status = wanted.is_digested
                      ? fill_blocks(wanted.run.item, bytes, wanted.run.begin, wanted.run.to)
                      : bytes.copy(wanted.run.begin, wanted.run.to);
  if (status.ok() || item.piece == plan::kObjectPiece) return status;
  return device::with_tensor(std::move(status), "reading",
                             source_.state.tensors().name(item.entry));
}

// Of a run that begins where a digest block does, and ends there or with its item.
void BlockFiller::digest_run(const WantedRun& run) {
  const integrity::Digest128 key = key_of(source_.list.items[run.item]);
  for (size_t done = 0; done < run.to.size(); done += kDigestBlockBytes) {
    const auto block =
        run.to.subspan(done, std::min<size_t>(kDigestBlockBytes, run.to.size() - done));
    const uint64_t number = (run.begin + done) / kDigestBlockBytes;
    digests_[digest_begins_[run.item] + number] =
        integrity::block_digest(integrity::xxh3_128(block), key, number, block.size());
  }
}

// As fill does with memory, with one read for all runs of the task.
Status BlockFiller::fill_from_source(const format::FileLayout& layout, const WriteTask& task,
                                     std::span<std::byte> buffer) {
  const std::vector<format::PlacedItem>& items = layout.items;
  std::vector<WantedRun> runs;
  std::vector<std::vector<std::byte>> whole;  // small chunks across a cut
  if (task.is_scattered) {
    runs.push_back({items[task.first_item].item, task.begin, buffer});
    return bytes_->read(runs);
  }
  zero_bytes(buffer);
  if (task.begin == 0) copy_bytes(layout.head, buffer);
  std::vector<size_t> digested;  // numbers of runs
  for (size_t i = task.first_item; i < items.size() && items[i].position < task.end; ++i) {
    const format::PlacedItem& placed = items[i];
    if (placed.size_bytes == 0) continue;
    const uint64_t begin = std::max(task.begin, placed.position) - placed.position;
    const uint64_t end = std::min(task.end, placed.position + placed.size_bytes) - placed.position;
    const bool is_cut = placed.size_bytes < kSlabChunkLimitBytes && end - begin < placed.size_bytes;
    if (!is_cut) digested.push_back(runs.size());
    runs.push_back({placed.item, begin,
                    buffer.subspan(static_cast<size_t>(placed.position + begin - task.begin),
                                   static_cast<size_t>(end - begin))});
    if (!is_cut || begin != 0 || !source_.digests) continue;
    digested.push_back(runs.size());
    runs.push_back({placed.item, 0, whole.emplace_back(static_cast<size_t>(placed.size_bytes))});
  }
  SHW_RETURN_IF_ERROR(bytes_->read(runs));
  if (!source_.digests) return {};
  for (const size_t run : digested) digest_run(runs[run]);
  return {};
}

Status BlockFiller::fill(const format::FileLayout& layout, const WriteTask& task,
                         std::span<std::byte> buffer) {
  if (layout.is_own && !layout.wrappings.empty()) return fill_wrapped(layout, task, buffer);
  if (bytes_ != nullptr) return fill_from_source(layout, task, buffer);
  const std::vector<format::PlacedItem>& items = layout.items;
  if (task.is_scattered) {
    const plan::WriteItem& item = source_.list.items[items[task.first_item].item];
    SHW_ASSIGN_OR_RETURN(const Bytes bytes, bytes_of(item));
    return device::with_tensor(fill_blocks(items[task.first_item].item, bytes, task.begin, buffer),
                               "reading", source_.state.tensors().name(item.entry));
  }
  uint64_t filled = task.begin;  // file offset up to which the buffer is done
  if (task.begin == 0) {
    copy_bytes(layout.head, buffer);
    filled = layout.head.size();
  }
  const auto zero_until = [&](uint64_t offset) {
    const auto gap = buffer.subspan(static_cast<size_t>(filled - task.begin),
                                    static_cast<size_t>(offset - filled));
    zero_bytes(gap);
  };
  for (size_t i = task.first_item; i < items.size() && items[i].position < task.end; ++i) {
    if (items[i].size_bytes == 0) continue;
    if (items[i].position > filled) zero_until(items[i].position);
    SHW_RETURN_IF_ERROR(fill_item(task, items[i], buffer));
    filled = std::min(task.end, items[i].position + items[i].size_bytes);
  }
  zero_until(task.end);
  return {};
}

}  // namespace shardwright::exec::internal
