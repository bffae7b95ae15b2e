// SPDX-License-Identifier: Apache-2.0
//
// A counting sort by file: items stay in the order of the catalog.
#include "core/format/native/file_items_internal.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native::internal {
namespace {

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

}  // namespace

std::string item_text(const plan::Catalog& catalog, size_t item) {
  if (item < catalog.chunks.size()) {
    const uint32_t tensor = catalog.chunks[item].tensor;
    return fmt::format("tensor '{}' {}", escape_text(catalog.tensor_name(tensor), 128),
                       box_text(catalog.chunk_box(item)));
  }
  return fmt::format("object '{}'",
                     escape_text(catalog.object_name(item - catalog.chunks.size()), 128));
}

Result<FileItems> FileItems::create(const plan::Catalog& catalog,
                                    std::span<const ManifestFile> files) {
  const size_t chunk_count = catalog.chunks.size();
  const size_t item_count = chunk_count + catalog.objects.size();
  if (item_count > std::numeric_limits<uint32_t>::max())
    return data_loss("more chunks and objects than can be numbered");
  for (const ManifestFile& file : files) SHW_RETURN_IF_ERROR(check_file(file));
  const auto place_of = [&](size_t item) {
    return item < chunk_count ? catalog.chunks[item].place
                              : catalog.objects[item - chunk_count].place;
  };

  FileItems out;
  out.begins_.assign(files.size() + 1, 0);
  out.files_.resize(item_count);
  uint32_t last = 0;  // neighbours mostly lie in one file or in that of the next rank
  for (size_t item = 0; item < item_count; ++item) {
    const auto rank = static_cast<int64_t>(place_of(item));
    if (last >= files.size() || files[last].rank != rank) {
      const auto found = std::ranges::lower_bound(
          files, rank, {}, [](const ManifestFile& file) { return int64_t{file.rank}; });
      if (found == files.end() || found->rank != rank) {
        return data_loss(
            fmt::format("{} lies in the file of rank {}, which the manifest does not "
                        "name",
                        item_text(catalog, item), rank));
      }
      last = static_cast<uint32_t>(found - files.begin());
    }
    out.files_[item] = last;
    ++out.begins_[last + 1];
  }
  for (size_t file = 0; file < files.size(); ++file) out.begins_[file + 1] += out.begins_[file];
  out.items_.resize(item_count);
  out.slots_.resize(item_count);
  std::vector<size_t> next(out.begins_.begin(), out.begins_.end() - 1);
  for (size_t item = 0; item < item_count; ++item) {
    const uint32_t file = out.files_[item];
    out.slots_[item] = static_cast<uint32_t>(next[file] - out.begins_[file]);
    out.items_[next[file]++] = static_cast<uint32_t>(item);
  }
  return out;
}

}  // namespace shardwright::format::native::internal
