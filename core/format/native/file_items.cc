// SPDX-License-Identifier: Apache-2.0
//
// Ranks become files once per rank map, box and object; the lists are sorted by file.
#include "core/format/native/file_items_internal.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native::internal {
namespace {

// An index has a record for each of its chunks.
constexpr uint64_t kLeastIndexBytes = sizeof(plan::ChunkRecord);

Status check_file(const ManifestFile& file) {
  uint64_t index_end = 0;
  uint64_t least = 0;
  const bool fits = checked_add(file.index_position, file.index_bytes, &index_end) &&
                    checked_add(index_end, kTrailerBytes, &least) && least <= file.size_bytes &&
                    file.size_bytes <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (fits && file.index_position >= kFileHeaderBytes && file.index_bytes > 0) return {};
  return data_loss(fmt::format(
                       "{} of {} bytes cannot hold an index of {} bytes at offset {} and a trailer",
                       rank_file_name(file.rank), file.size_bytes, file.index_bytes,
                       file.index_position))
      .with_detail("file", rank_file_name(file.rank));
}

// A manifest that counts more than its indexes can name was made to take memory.
Status check_room(uint64_t chunks, std::span<const ManifestFile> files) {
  uint64_t room = 0;
  for (const ManifestFile& file : files) room += file.index_bytes / kLeastIndexBytes;
  if (chunks <= room) return {};
  return data_loss(
      fmt::format("the manifest counts {} chunks, its files have indexes for {}", chunks, room));
}

Status no_file(const plan::Catalog& catalog, uint64_t item, uint32_t rank) {
  return data_loss(fmt::format("{} lies in the file of rank {}, which the manifest does not name",
                               item_text(catalog, item), rank));
}

}  // namespace

std::string item_text(const plan::Catalog& catalog, uint64_t item) {
  const uint64_t chunks = catalog.chunk_count();
  if (item < chunks) {
    return fmt::format("tensor '{}' {}",
                       escape_text(catalog.tensor_name(catalog.tensor_of(item)), 128),
                       box_text(catalog.chunk_box(item)));
  }
  return fmt::format("object '{}'", escape_text(catalog.object_name(item - chunks), 128));
}

Result<FileItems> FileItems::create(const plan::Catalog& catalog,
                                    std::span<const ManifestFile> files) {
  FileItems out;
  for (const ManifestFile& file : files) {
    SHW_RETURN_IF_ERROR(check_file(file));
    out.ranks_.push_back(static_cast<uint32_t>(file.rank));
  }
  SHW_RETURN_IF_ERROR(check_room(catalog.chunk_count(), files));
  for (size_t number = 0; number < catalog.rank_maps.size(); ++number)
    SHW_RETURN_IF_ERROR(out.add_rank_map(catalog, number));
  SHW_RETURN_IF_ERROR(out.add_boxes(catalog));
  SHW_RETURN_IF_ERROR(out.add_objects(catalog));
  return out;
}

bool FileItems::add(uint32_t rank, uint64_t item, List* list) const {
  // Neighbours mostly lie in one file.
  uint32_t file = list->empty() ? 0 : list->back().file;
  if (file >= ranks_.size() || ranks_[file] != rank) {
    const auto found = std::ranges::lower_bound(ranks_, rank);
    if (found == ranks_.end() || *found != rank) return false;
    file = static_cast<uint32_t>(found - ranks_.begin());
  }
  list->push_back({file, item});
  return true;
}

Status FileItems::add_rank_map(const plan::Catalog& catalog, size_t number) {
  const plan::RankMap& map = catalog.rank_maps[number];
  List& list = rank_maps_.emplace_back();
  for (uint64_t c = 0; c < map.count(); ++c) {
    if (add(map[c], c, &list)) continue;
    const auto user = std::ranges::find(catalog.tensors, number, &plan::TensorRecord::rank_map);
    if (user == catalog.tensors.end()) break;  // of no tensor
    return no_file(catalog, user->chunk_begin + c, map[c]);
  }
  if (!std::ranges::is_sorted(list)) std::ranges::sort(list);
  return {};
}

Status FileItems::add_boxes(const plan::Catalog& catalog) {
  boxes_.reserve(catalog.boxes.size());
  for (const plan::TensorRecord& tensor : catalog.tensors) {
    if (tensor.is_grid()) continue;
    for (uint64_t c = 0; c < tensor.chunk_count; ++c) {
      const uint32_t rank = catalog.boxes[tensor.box_begin + c].place;
      if (!add(rank, tensor.chunk_begin + c, &boxes_))
        return no_file(catalog, tensor.chunk_begin + c, rank);
    }
  }
  if (!std::ranges::is_sorted(boxes_)) std::ranges::sort(boxes_);
  return {};
}

Status FileItems::add_objects(const plan::Catalog& catalog) {
  const uint64_t chunks = catalog.chunk_count();
  for (uint64_t i = 0; i < catalog.objects.size(); ++i) {
    const uint32_t rank = catalog.objects[i].place;
    if (!add(rank, chunks + i, &objects_)) return no_file(catalog, chunks + i, rank);
  }
  if (!std::ranges::is_sorted(objects_)) std::ranges::sort(objects_);
  return {};
}

std::span<const FileItems::Stored> FileItems::in_file(const List& list, uint32_t file) {
  const auto found = std::ranges::equal_range(list, file, {}, &Stored::file);
  return {found.begin(), found.end()};
}

std::vector<uint64_t> FileItems::of(const plan::Catalog& catalog, uint32_t file) const {
  std::vector<std::span<const Stored>> of_maps;
  of_maps.reserve(rank_maps_.size());
  for (const List& list : rank_maps_) of_maps.push_back(in_file(list, file));
  std::span<const Stored> boxes = in_file(boxes_, file);
  std::vector<uint64_t> items;
  for (const plan::TensorRecord& tensor : catalog.tensors) {
    if (tensor.is_grid()) {
      for (const Stored& each : of_maps[tensor.rank_map])
        items.push_back(tensor.chunk_begin + each.item);
      continue;
    }
    const uint64_t end = tensor.chunk_begin + tensor.chunk_count;
    for (; !boxes.empty() && boxes.front().item < end; boxes = boxes.subspan(1))
      items.push_back(boxes.front().item);
  }
  for (const Stored& each : in_file(objects_, file)) items.push_back(each.item);
  return items;
}

uint32_t FileItems::file(const plan::Catalog& catalog, uint64_t item) const {
  const uint64_t chunks = catalog.chunk_count();
  const uint32_t rank =
      item < chunks ? catalog.place_of(item) : catalog.objects[item - chunks].place;
  return static_cast<uint32_t>(std::ranges::lower_bound(ranks_, rank) - ranks_.begin());
}

}  // namespace shardwright::format::native::internal
