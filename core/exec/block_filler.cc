// SPDX-License-Identifier: Apache-2.0
//
// Gathers and hashes in one pass: contiguous elements are copied and hashed in cache-sized steps,
// strided ones are gathered in such steps and hashed right after.
#include "core/exec/block_filler_internal.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/native/native_format.h"
#include "core/format/native/rank_file.h"
#include "core/tensor/strided_copy.h"

namespace shardwright::exec::internal {
namespace {

constexpr size_t kGatherStepBytes = size_t{128} * 1024;  // stays in the second-level cache

}  // namespace

// contiguous is set when all bytes lie in one run; else window says where they are.
struct BlockFiller::Bytes {
  const std::byte* contiguous = nullptr;
  StridedWindow window;
  uint64_t size_bytes = 0;

  void copy(uint64_t begin, std::span<std::byte> to) const {
    if (contiguous != nullptr) {
      std::memcpy(to.data(), contiguous + begin, to.size());
    } else {
      gather(window, begin, to);
    }
  }

  integrity::Digest128 copy_and_digest(uint64_t begin, std::span<std::byte> to) const {
    if (contiguous != nullptr)
      return integrity::copy_and_digest({contiguous + begin, to.size()}, to);
    if (to.size() <= kGatherStepBytes) {
      gather(window, begin, to);
      return integrity::xxh3_128(to);
    }
    integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
    for (size_t done = 0; done < to.size(); done += kGatherStepBytes) {
      const auto step = to.subspan(done, std::min(kGatherStepBytes, to.size() - done));
      gather(window, begin + done, step);
      digester.update(step);
    }
    integrity::Digest128 digest{};
    std::ranges::copy(digester.finish(), digest.begin());
    return digest;
  }
};

BlockFiller::BlockFiller(const FillSource& source)
    : source_(source),
      header_(format::native::encode_file_header(source.list.generation, source.list.rank,
                                                 source.list.world_size)) {
  digest_begins_.reserve(source.list.items.size() + 1);
  digest_begins_.push_back(0);
  uint64_t count = 0;
  for (const plan::WriteItem& item : source.list.items) {
    if (source.digests) count += integrity::block_count(item.size_bytes);
    digest_begins_.push_back(count);
  }
  digests_.resize(static_cast<size_t>(count));
}

Result<BlockFiller::Bytes> BlockFiller::bytes_of(const plan::WriteItem& item) const {
  Bytes bytes;
  bytes.size_bytes = item.size_bytes;
  if (item.piece == plan::kObjectPiece) {
    bytes.contiguous = source_.state.objects()[item.entry].bytes.data();
    return bytes;
  }
  SHW_ASSIGN_OR_RETURN(bytes.window, source_.state.piece_window(item.entry, item.piece));
  if (window_bytes(bytes.window) != item.size_bytes) {
    return internal_error(fmt::format("tensor '{}' has {} bytes in piece {}, the plan says {}",
                                      escape_text(source_.state.tensors()[item.entry].name),
                                      window_bytes(bytes.window), item.piece, item.size_bytes));
  }
  if (window_is_contiguous(bytes.window)) bytes.contiguous = bytes.window.data;
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
void BlockFiller::fill_blocks(size_t item, const Bytes& from, uint64_t begin,
                              std::span<std::byte> target) {
  if (!source_.digests) return from.copy(begin, target);
  const integrity::Digest128 key = key_of(source_.list.items[item]);
  for (size_t done = 0; done < target.size(); done += kDigestBlockBytes) {
    const auto block =
        target.subspan(done, std::min<size_t>(kDigestBlockBytes, target.size() - done));
    const uint64_t number = (begin + done) / kDigestBlockBytes;
    digests_[digest_begins_[item] + number] = integrity::block_digest(
        from.copy_and_digest(begin + done, block), key, number, block.size());
  }
}

Status BlockFiller::fill_item(const WriteTask& task, const format::native::PlacedItem& placed,
                              std::span<std::byte> buffer) {
  SHW_ASSIGN_OR_RETURN(const Bytes bytes, bytes_of(source_.list.items[placed.item]));
  const uint64_t begin = std::max(task.begin, placed.position) - placed.position;
  const uint64_t end = std::min(task.end, placed.position + placed.size_bytes) - placed.position;
  const auto target = buffer.subspan(static_cast<size_t>(placed.position + begin - task.begin),
                                     static_cast<size_t>(end - begin));
  const bool small = placed.size_bytes < kSlabChunkLimitBytes;
  if (!small || end - begin == placed.size_bytes) {
    fill_blocks(placed.item, bytes, begin, target);
    return {};
  }
  // A small chunk across a cut: both tasks copy their part, the first one hashes it all.
  bytes.copy(begin, target);
  if (begin == 0 && source_.digests) {
    std::vector<std::byte> whole(static_cast<size_t>(placed.size_bytes));
    fill_blocks(placed.item, bytes, 0, whole);
  }
  return {};
}

Status BlockFiller::fill(const WriteTask& task, std::span<std::byte> buffer) {
  const std::vector<format::native::PlacedItem>& items = source_.layout.items;
  uint64_t filled = task.begin;  // file offset up to which the buffer is done
  if (task.begin == 0) {
    std::ranges::copy(header_, buffer.begin());
    filled = header_.size();
  }
  const auto zero_until = [&](uint64_t offset) {
    const auto gap = buffer.subspan(static_cast<size_t>(filled - task.begin),
                                    static_cast<size_t>(offset - filled));
    std::ranges::fill(gap, std::byte{0});
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
