// SPDX-License-Identifier: Apache-2.0
#include "core/exec/fragment_reader_internal.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/copy_bytes.h"
#include "core/base/text.h"
#include "core/exec/checksum_sink_internal.h"
#include "core/exec/chunk_region_internal.h"
#include "core/layout/box_bytes.h"
#include "core/plan/load/catalog_index.h"

namespace shardwright::exec::internal {
namespace {

using format::StoredItem;

DType stored_dtype(const plan::Catalog& catalog, uint64_t chunk) {
  return catalog.tensors[catalog.tensor_of(chunk)].dtype;
}

// Appends the blocks of a chunk that hold wanted bytes. Without verification only the wanted part
// of a block is read.
struct NeedMaker {
  const format::OpenedCheckpoint& opened;
  bool whole_blocks = true;
  uint64_t unit = kDigestBlockBytes;
  std::vector<BlockNeed> needs;
  uint64_t wanted_bytes = 0;

  NeedMaker(const format::OpenedCheckpoint& checkpoint, const FragmentRequest& request)
      : opened(checkpoint), unit(block_bytes_of(checkpoint)) {
    whole_blocks = checks_blocks(checkpoint, request.rules) || request.whole_blocks;
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

  // Whole blocks: objects are read from end to end, so nothing is gained by less.
  Status add_object(const ObjectTarget& target, uint32_t user) {
    SHW_ASSIGN_OR_RETURN(const format::Extent extent, opened.object_extent(target.object));
    for (uint64_t begin = target.begin / unit * unit; begin < target.end(); begin += unit) {
      BlockNeed need{extent.offset + begin, target.object, begin, extent.file, 0, user,
                     NeedKind::kObject};
      need.length = static_cast<uint32_t>(std::min(unit, extent.size_bytes - begin));
      needs.push_back(need);
    }
    return {};
  }
};

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
    if (first.kind == NeedKind::kObject) {
      const ObjectTarget& target = request_.objects[first.user];
      const bool inside = first.begin >= target.begin && first.begin + size <= target.end();
      return inside ? target.memory.subspan(first.begin - target.begin, size)
                    : std::span<std::byte>();
    }
    const uint64_t position = first.begin;
    if (const auto target = filled_target(first)) {
      const std::span<std::byte> memory = target->device->host_bytes(*target);
      return memory.empty() ? memory : memory.subspan(position, size);
    }
    Result<Copy> copy = copy_of(first.user);
    if (!copy.ok() || copy->cast() || !copy->region.contiguous) return {};
    const bool inside = position >= copy->region.origin &&
                        position + size <= copy->region.origin + copy->region.size_bytes;
    if (!inside) return {};
    const std::span<std::byte> memory = copy->window.device->host_bytes(copy->window);
    return memory.empty() ? memory : memory.subspan(position - copy->region.origin, size);
  }

  Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                 bool landed) override {
    if (landed) return {};
    for (const BlockNeed& need : needs) {
      if (need.kind == NeedKind::kObject) {
        copy_object(need, bytes);
        continue;
      }
      SHW_RETURN_IF_ERROR(device::with_tensor(fill(need, bytes), "filling",
                                              catalog_.tensor_name(catalog_.tensor_of(need.item))));
    }
    return {};
  }

 private:
  struct Copy {
    ChunkRegion region;
    device::DeviceWindow window;
    DType stored = DType::kInvalid;
    DType wanted = DType::kInvalid;
    bool cast() const { return stored != wanted; }
  };

  // What the target wants of a block.
  void copy_object(const BlockNeed& need, std::span<const std::byte> block) const {
    const ObjectTarget& target = request_.objects[need.user];
    const uint64_t begin = std::max(need.begin, target.begin);
    const uint64_t end = std::min(need.begin + block.size(), target.end());
    copy_bytes(block.subspan(begin - need.begin, end - begin),
               target.memory.subspan(begin - target.begin));
  }

  // Where the chunk of a need goes as it is: a target that takes the whole chunk.
  std::optional<device::DeviceWindow> filled_target(const BlockNeed& need) const {
    auto target = request_.fragments->filled(need.user, stored_dtype(catalog_, need.item));
    // The fragment lies inside its chunk, so equal sizes are equal boxes.
    if (target.has_value() && window_bytes(target->elements) != catalog_.chunk_bytes(need.item))
      target.reset();
    return target;
  }

  Status fill(const BlockNeed& need, std::span<const std::byte> bytes) const {
    if (const auto target = filled_target(need))
      return target->device->scatter(bytes, *target, need.begin);
    SHW_ASSIGN_OR_RETURN(const Copy copy, copy_of(need.user));
    const ChunkBytes from{bytes, need.begin};
    return copy.cast() ? cast_region(copy.region, from, copy.stored, copy.window, copy.wanted)
                       : copy_region(copy.region, from, copy.window);
  }

  Result<Copy> copy_of(size_t fragment) const {
    const FragmentSource& source = *request_.fragments;
    const uint64_t chunk = source.chunk(fragment);
    const Box& box = source.box(fragment);
    SHW_ASSIGN_OR_RETURN(TargetMemory target, source.target(fragment));
    Copy copy;
    copy.stored = stored_dtype(catalog_, chunk);
    copy.wanted = target.dtype;
    SHW_ASSIGN_OR_RETURN(copy.region, chunk_region(copy.stored, catalog_.chunk_box(chunk), box));
    copy.window = std::move(target.window);
    SHW_ASSIGN_OR_RETURN(copy.window.elements,
                         part_of_window(copy.window.elements, target.dtype, target.box, box));
    return copy;
  }

  const plan::Catalog& catalog_;
  const FragmentRequest& request_;
};

}  // namespace

std::optional<device::DeviceWindow> FragmentSource::filled(size_t, DType) const {
  return std::nullopt;
}

std::optional<device::DeviceWindow> PlanFragments::filled(size_t fragment, DType stored) const {
  const plan::ReadKey& item = plan_.reads.key(fragment);
  const TensorRef entry = state_.tensors()[item.entry];
  if (entry.local.dtype != stored) return std::nullopt;
  const uint64_t size = box_bytes(stored, plan_.reads.box(fragment));
  // The fragment lies inside its piece, so equal sizes are equal boxes.
  if (size != box_bytes(stored, entry.pieces[item.piece].box)) return std::nullopt;
  Result<device::DeviceWindow> window = devices_.piece_window(state_, item.entry, item.piece);
  return window.ok() ? std::optional(std::move(*window)) : std::nullopt;
}

Result<TargetMemory> PlanFragments::target(size_t fragment) const {
  const plan::ReadKey& item = plan_.reads.key(fragment);
  const TensorRef entry = state_.tensors()[item.entry];
  SHW_ASSIGN_OR_RETURN(device::DeviceWindow window,
                       devices_.piece_window(state_, item.entry, item.piece));
  return TargetMemory{std::move(window), entry.pieces[item.piece].box, entry.local.dtype};
}

Result<TargetMemory> BoxFragments::target(size_t fragment) const {
  const BoxRead& read = reads_[fragments_[fragment].read];
  const Dims start(read.box.sizes.size(), 0);
  SHW_ASSIGN_OR_RETURN(StridedWindow elements, window_of(read.target, start, read.box.sizes));
  SHW_ASSIGN_OR_RETURN(device::DeviceWindow window,
                       devices_->place(read.target, std::move(elements)));
  return TargetMemory{std::move(window), read.box, read.target.dtype};
}

Result<BoxFragments> BoxFragments::create(const device::Devices& devices,
                                          const plan::Catalog& catalog,
                                          const plan::CatalogIndex& index,
                                          std::span<const BoxRead> reads) {
  BoxFragments result;
  result.devices_ = &devices;
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
    SHW_RETURN_IF_ERROR(devices.check_writable(read.target, name));
    const std::vector<uint64_t> chunks = index.chunks_meeting(read.tensor, read.box);
    SHW_RETURN_IF_ERROR(index.prove_filled(read.tensor, read.box, chunks));
    for (const uint64_t chunk : chunks) {
      Box common = intersect(catalog.chunk_box(chunk), read.box);
      if (!box_is_empty(common)) result.fragments_.push_back({chunk, i, std::move(common)});
    }
  }
  return result;
}

Result<FragmentNeeds> fragment_needs(Runtime& runtime, const format::OpenedCheckpoint& opened,
                                     const FragmentRequest& request, const CallControl& control) {
  NeedMaker maker(opened, request);
  const plan::Catalog& catalog = opened.catalog();
  const size_t count = request.fragments == nullptr ? 0 : request.fragments->size();
  uint32_t last_user = 0;
  if (!checked_cast(std::max(count, request.objects.size()), &last_user)) {
    return resource_exhausted("fragments",
                              "more than 2^32 boxes in one read; read the state in parts");
  }
  maker.needs.reserve(count + request.objects.size());
  const auto item_at = [&request, count](size_t i) {
    return i < count ? StoredItem{StoredItem::Kind::kChunk, request.fragments->chunk(i)}
                     : StoredItem{StoredItem::Kind::kObject, request.objects[i - count].object};
  };
  SHW_RETURN_IF_ERROR(
      prepare_items(runtime, opened, count + request.objects.size(), item_at, control));
  for (size_t i = 0; i < count; ++i) {
    const uint64_t chunk = request.fragments->chunk(i);
    const Box box = request.fragments->box(i);
    if (box_bytes(stored_dtype(catalog, chunk), box) == catalog.chunk_bytes(chunk)) {
      maker.wanted_bytes += catalog.chunk_bytes(chunk);
      SHW_RETURN_IF_ERROR(append_whole_item(opened, {StoredItem::Kind::kChunk, chunk},
                                            static_cast<uint32_t>(i), &maker.needs));
      continue;
    }
    SHW_ASSIGN_OR_RETURN(const ChunkRegion region,
                         chunk_region(stored_dtype(catalog, chunk), catalog.chunk_box(chunk), box));
    SHW_RETURN_IF_ERROR(maker.add_region(chunk, static_cast<uint32_t>(i), region));
  }
  for (size_t i = 0; i < request.objects.size(); ++i) {
    maker.wanted_bytes += request.objects[i].memory.size();
    SHW_RETURN_IF_ERROR(maker.add_object(request.objects[i], static_cast<uint32_t>(i)));
  }
  return FragmentNeeds{std::move(maker.needs), maker.wanted_bytes};
}

std::unique_ptr<BlockSink> make_copy_sink(const plan::Catalog& catalog,
                                          const FragmentRequest& request) {
  return std::make_unique<CopySink>(catalog, request);
}

Result<ReadOutcome> read_fragments(const BlockReader& reader,
                                   const format::OpenedCheckpoint& opened,
                                   const FragmentRequest& request, const CallContext& call) {
  SHW_ASSIGN_OR_RETURN(FragmentNeeds needs,
                       fragment_needs(reader.runtime(), opened, request, call.control));
  CopySink copies(opened.catalog(), request);
  std::optional<ItemChecksums> own;
  ItemChecksums* checksums = request.rules.checksums;
  if (checksums == nullptr)
    checksums = expect_whole_items(opened, request.rules, needs.needs, &own);
  const uint64_t compared_before = checksums == nullptr ? 0 : checksums->compared_bytes();
  std::optional<ChecksumSink> summing;
  if (checksums != nullptr) summing.emplace(*checksums, copies);
  BlockSink& sink = summing.has_value() ? static_cast<BlockSink&>(*summing) : copies;
  SHW_ASSIGN_OR_RETURN(const BlockReadTotals totals,
                       reader.run(std::move(needs.needs), request.rules, call, sink));
  const uint64_t wanted = std::min(needs.wanted_bytes, totals.bytes_read);
  ReadOutcome outcome{totals.bytes_read, totals.bytes_read - wanted, totals.bytes_cached, 0,
                      totals.io_engine};
  const uint64_t compared =
      checksums == nullptr ? 0 : checksums->compared_bytes() - compared_before;
  if (!checks_blocks(opened, request.rules))
    outcome.bytes_unverified = needs.wanted_bytes - std::min(compared, needs.wanted_bytes);
  return outcome;
}

}  // namespace shardwright::exec::internal
