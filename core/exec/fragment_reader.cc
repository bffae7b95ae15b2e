// SPDX-License-Identifier: Apache-2.0
#include "core/exec/fragment_reader_internal.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/exec/chunk_region_internal.h"
#include "core/plan/load/catalog_index.h"

namespace shardwright::exec::internal {
namespace {

DType stored_dtype(const plan::Catalog& catalog, uint64_t chunk) {
  return catalog.tensors[catalog.tensor_of(chunk)].dtype;
}

// Bytes of a box; exact for boxes of whole bytes, which all stored ones are.
uint64_t packed_bytes(DType dtype, const Box& box) {
  return static_cast<uint64_t>(box_element_count(box)) * static_cast<uint64_t>(dtype_bits(dtype)) /
         8;
}

// Appends the blocks of a chunk that hold wanted bytes. Without verification only the wanted part
// of a block is read.
struct NeedMaker {
  const format::OpenedCheckpoint& opened;
  bool whole_blocks = true;
  uint64_t unit = kDigestBlockBytes;
  std::vector<BlockNeed> needs;
  uint64_t wanted_bytes = 0;

  NeedMaker(const format::OpenedCheckpoint& checkpoint, VerifyRule verify)
      : opened(checkpoint), unit(block_bytes_of(checkpoint)) {
    whole_blocks = verify == VerifyRule::kOnRead && checkpoint.digest_block_bytes() > 0;
  }

  Status add_region(uint64_t chunk, uint32_t user, const ChunkRegion& region) {
    SHW_ASSIGN_OR_RETURN(const format::Extent extent, opened.chunk_extent(chunk));
    wanted_bytes += region.size_bytes;
    uint64_t position = region.origin;
    while (position != UINT64_MAX) {
      const uint64_t block = position / unit * unit;
      uint64_t begin = block;
      uint64_t end = std::min(block + unit, extent.size_bytes);
      if (!whole_blocks) {
        begin = position;
        end = std::min(end, region.end());
      }
      BlockNeed need{extent.offset + begin, chunk, begin, extent.file, 0, user};
      need.length = static_cast<uint32_t>(end - begin);
      needs.push_back(need);
      position = block + unit >= region.end() ? UINT64_MAX : next_wanted(region, block + unit);
    }
    return {};
  }
};

// Files of everything that is asked for, with repeats.
std::vector<uint32_t> files_of(const format::OpenedCheckpoint& opened,
                               const FragmentRequest& request) {
  std::vector<uint32_t> files;
  const auto add = [&files](uint32_t file) {
    if (files.empty() || files.back() != file) files.push_back(file);
  };
  const size_t count = request.fragments == nullptr ? 0 : request.fragments->size();
  for (size_t i = 0; i < count; ++i) add(opened.chunk_file(request.fragments->chunk(i)));
  for (const ObjectTarget& each : request.objects) add(opened.object_file(each.object));
  return files;
}

// Copies checked blocks to the fragments and objects that want them.
class CopySink final : public BlockSink {
 public:
  CopySink(const plan::Catalog& catalog, const FragmentRequest& request)
      : catalog_(catalog), request_(request) {}

  std::span<std::byte> destination(std::span<const BlockNeed> needs) override {
    const BlockNeed& first = needs.front();
    uint64_t size = 0;
    for (const BlockNeed& need : needs) {
      if (need.user != first.user || need.kind != first.kind || need.offset != first.offset + size)
        return {};
      size += need.length;
    }
    if (size < kMinStagingBytes) return {};
    const std::span<std::byte> dense = dense_memory(first, size);
    if (!dense.empty() || first.kind == NeedKind::kObject) return dense;
    const uint64_t position = first.begin;
    Result<Copy> copy = copy_of(first.user);
    if (!copy.ok() || copy->cast() || !copy->region.contiguous) return {};
    const bool inside = position >= copy->region.origin &&
                        position + size <= copy->region.origin + copy->region.size_bytes;
    if (!inside || !window_is_contiguous(copy->window)) return {};
    return {copy->window.data + (position - copy->region.origin), size};
  }

  Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                 bool landed) override {
    if (landed) return {};
    for (const BlockNeed& need : needs) {
      const std::span<std::byte> dense = dense_memory(need, bytes.size());
      if (!dense.empty()) {
        std::memcpy(dense.data(), bytes.data(), bytes.size());
        continue;
      }
      SHW_ASSIGN_OR_RETURN(const Copy copy, copy_of(need.user));
      const ChunkBytes from{bytes, need.begin};
      if (copy.cast()) {
        SHW_RETURN_IF_ERROR(cast_region(copy.region, from, copy.stored, copy.window, copy.wanted));
      } else {
        copy_region(copy.region, from, copy.window);
      }
    }
    return {};
  }

 private:
  struct Copy {
    ChunkRegion region;
    StridedWindow window;
    DType stored = DType::kInvalid;
    DType wanted = DType::kInvalid;
    bool cast() const { return stored != wanted; }
  };

  // Where `size` bytes of a need go as they are: into an object, or into a target that takes the
  // whole chunk.
  std::span<std::byte> dense_memory(const BlockNeed& need, uint64_t size) const {
    if (need.kind == NeedKind::kObject)
      return request_.objects[need.user].memory.subspan(need.begin, size);
    const std::span<std::byte> memory =
        request_.fragments->dense(need.user, stored_dtype(catalog_, need.item));
    // The fragment lies inside its chunk, so equal sizes are equal boxes.
    return memory.size() == catalog_.chunk_bytes(need.item) ? memory.subspan(need.begin, size)
                                                            : std::span<std::byte>();
  }

  Result<Copy> copy_of(size_t fragment) const {
    const FragmentSource& source = *request_.fragments;
    const uint64_t chunk = source.chunk(fragment);
    const Box& box = source.box(fragment);
    SHW_ASSIGN_OR_RETURN(const TargetMemory target, source.target(fragment));
    Copy copy;
    copy.stored = stored_dtype(catalog_, chunk);
    copy.wanted = target.dtype;
    SHW_ASSIGN_OR_RETURN(copy.region, chunk_region(copy.stored, catalog_.chunk_box(chunk), box));
    SHW_ASSIGN_OR_RETURN(copy.window, part_of_window(target.window, target.dtype, target.box, box));
    return copy;
  }

  const plan::Catalog& catalog_;
  const FragmentRequest& request_;
};

}  // namespace

std::span<std::byte> FragmentSource::dense(size_t, DType) const {
  return {};
}

std::span<std::byte> PlanFragments::dense(size_t fragment, DType stored) const {
  const plan::ReadKey& item = plan_.reads.key(fragment);
  const TensorRef entry = state_.tensors()[item.entry];
  if (entry.local.dtype != stored) return {};
  const uint64_t size = packed_bytes(stored, plan_.reads.box(fragment));
  // The fragment lies inside its piece, so equal sizes are equal boxes.
  if (size != packed_bytes(stored, entry.pieces[item.piece].box)) return {};
  const Result<StridedWindow> window = state_.piece_window(item.entry, item.piece);
  if (!window.ok() || !window_is_contiguous(*window)) return {};
  return {window->data, size};
}

Result<TargetMemory> PlanFragments::target(size_t fragment) const {
  const plan::ReadKey& item = plan_.reads.key(fragment);
  const TensorRef entry = state_.tensors()[item.entry];
  SHW_ASSIGN_OR_RETURN(StridedWindow window, state_.piece_window(item.entry, item.piece));
  return TargetMemory{std::move(window), entry.pieces[item.piece].box, entry.local.dtype};
}

Result<TargetMemory> BoxFragments::target(size_t fragment) const {
  const BoxRead& read = reads_[fragments_[fragment].read];
  const Dims start(read.box.sizes.size(), 0);
  SHW_ASSIGN_OR_RETURN(StridedWindow window, window_of(read.target, start, read.box.sizes));
  return TargetMemory{std::move(window), read.box, read.target.dtype};
}

Result<BoxFragments> BoxFragments::create(const plan::Catalog& catalog,
                                          const plan::CatalogIndex& index,
                                          std::span<const BoxRead> reads) {
  BoxFragments result;
  result.reads_ = reads;
  for (size_t i = 0; i < reads.size(); ++i) {
    const BoxRead& read = reads[i];
    if (read.tensor >= catalog.tensors.size()) {
      return out_of_range(fmt::format("there is no tensor number {}; the checkpoint has {}",
                                      read.tensor, catalog.tensors.size()));
    }
    const std::string_view name = catalog.tensor_name(read.tensor);
    Status inside = check_box(read.box, catalog.shape(read.tensor));
    if (!inside.ok()) {
      return std::move(inside)
          .with_detail("tensor", name)
          .with_detail("box", box_text(read.box))
          .annotated(fmt::format("cannot read box {} of tensor {}", box_text(read.box),
                                 escape_text(name)));
    }
    if (read.target.dtype != catalog.tensors[read.tensor].dtype) {
      return invalid_argument(fmt::format("tensor {} is stored as {}, the memory for it is {}",
                                          escape_text(name),
                                          dtype_name(catalog.tensors[read.tensor].dtype),
                                          dtype_name(read.target.dtype)))
          .with_detail("tensor", name);
    }
    if (read.target.shape != read.box.sizes) {
      return invalid_argument(
                 fmt::format("box {} of tensor {} does not have the shape of the memory for it",
                             box_text(read.box), escape_text(name)))
          .with_detail("tensor", name);
    }
    if (box_is_empty(read.box)) continue;
    SHW_RETURN_IF_ERROR(check_writable(read.target, name));
    for (const uint64_t chunk : index.chunks_meeting(read.tensor, read.box)) {
      Box common = intersect(catalog.chunk_box(chunk), read.box);
      if (!box_is_empty(common)) result.fragments_.push_back({chunk, i, std::move(common)});
    }
  }
  return result;
}

Result<ReadOutcome> read_fragments(const BlockReader& reader,
                                   const format::OpenedCheckpoint& opened,
                                   const FragmentRequest& request, const CallContext& call) {
  NeedMaker maker(opened, request.verify);
  const plan::Catalog& catalog = opened.catalog();
  const size_t count = request.fragments == nullptr ? 0 : request.fragments->size();
  uint32_t last_user = 0;
  if (!checked_cast(std::max(count, request.objects.size()), &last_user)) {
    return resource_exhausted("fragments",
                              "more than 2^32 boxes in one read; read the state in parts");
  }
  maker.needs.reserve(count + request.objects.size());
  SHW_RETURN_IF_ERROR(
      prepare_files(reader.runtime(), opened, files_of(opened, request), call.control));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t chunk = request.fragments->chunk(i);
    const Box box = request.fragments->box(i);
    if (packed_bytes(stored_dtype(catalog, chunk), box) == catalog.chunk_bytes(chunk)) {
      maker.wanted_bytes += catalog.chunk_bytes(chunk);
      SHW_RETURN_IF_ERROR(append_whole_item(opened, NeedKind::kChunk, chunk,
                                            static_cast<uint32_t>(i), &maker.needs));
      continue;
    }
    SHW_ASSIGN_OR_RETURN(const ChunkRegion region,
                         chunk_region(stored_dtype(catalog, chunk), catalog.chunk_box(chunk), box));
    SHW_RETURN_IF_ERROR(maker.add_region(chunk, static_cast<uint32_t>(i), region));
  }
  for (size_t i = 0; i < request.objects.size(); ++i) {
    maker.wanted_bytes += request.objects[i].memory.size();
    SHW_RETURN_IF_ERROR(append_whole_item(opened, NeedKind::kObject, request.objects[i].object,
                                          static_cast<uint32_t>(i), &maker.needs));
  }
  if (call.progress != nullptr) {
    call.progress->bytes_total += maker.wanted_bytes;
    call.progress->items_total += maker.needs.size();
  }
  CopySink sink(catalog, request);
  SHW_ASSIGN_OR_RETURN(const BlockReadTotals totals,
                       reader.run(std::move(maker.needs), request.verify, call, sink));
  const uint64_t wanted = std::min(maker.wanted_bytes, totals.bytes_read);
  return ReadOutcome{totals.bytes_read, totals.bytes_read - wanted};
}

Status check_writable(const TensorSpan& tensor, std::string_view name) {
  if (!device_is_host_accessible(tensor.device_type)) {
    return unimplemented(fmt::format("tensor {} lies on a device of type {}; load it into host "
                                     "memory and copy it, or "
                                     "load the plugin of that device",
                                     escape_text(name), tensor.device_type))
        .with_detail("tensor", name);
  }
  if (tensor.read_only) {
    return invalid_argument(fmt::format("the memory for tensor {} is read-only", escape_text(name)))
        .with_detail("tensor", name);
  }
  return {};
}

}  // namespace shardwright::exec::internal
