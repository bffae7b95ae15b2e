// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/zarr_contents.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/format/json_events.h"
#include "core/format/megatron/shard_file.h"
#include "core/format/megatron/zarr_files.h"
#include "core/format/torch_dcp/byte_items.h"
#include "core/format/zarr/chunk_grid.h"

namespace shardwright::format::megatron {
namespace {

Dims row_major_strides(const Dims& sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

class ContentsMaker {
 public:
  ContentsMaker(const Location& location, ZarrFiles found)
      : location_(location), found_(std::move(found)), filled_left_(kFreeFilledBytes) {
    uint64_t stored = 0;
    for (const ZarrFile& file : found_.files) stored += file.size_bytes;
    uint64_t shared = 0;
    if (!checked_multiply(stored, kFilledPerStoredByte, &shared) ||
        !checked_add(filled_left_, shared, &filled_left_))
      filled_left_ = ~uint64_t{0};
  }

  Result<ZarrContents> run() {
    contents_.digest = found_.digest;
    contents_.files.reserve(found_.files.size());
    for (const ZarrFile& file : found_.files) {
      contents_.files.push_back({file.name, file.size_bytes});
      contents_.versions.push_back(file.version);
    }
    for (const auto& [key, array] : found_.arrays) SHW_RETURN_IF_ERROR(add_array(key, array));
    SHW_RETURN_IF_ERROR(add_objects());
    if (found_.unknown_count > 0)
      contents_.notes.push_back(
          fmt::format("{} files are no chunk and no object and are left out, the first is '{}'",
                      found_.unknown_count, shown(found_.unknown.front())));
    plan::find_grids(&contents_.catalog);
    SHW_RETURN_IF_ERROR(plan::check_catalog(contents_.catalog));
    SHW_RETURN_IF_ERROR(plan::prove_all_covers(contents_.catalog, plan::Copies::kRefused, "file"));
    return std::move(contents_);
  }

 private:
  Status add_array(const std::string& key, const ZarrArray& array) {
    const zarr::ChunkGrid grid(array.header);
    SHW_RETURN_IF_ERROR(check_missing(key, array, grid));
    std::vector<plan::CatalogBuilder::Chunk> chunks;
    chunks.reserve(static_cast<size_t>(grid.count()));
    auto stored = array.chunks.begin();
    for (uint64_t number = 0; number < grid.count(); ++number) {
      const Box box = grid.box_of(number);
      const bool has_file = stored != array.chunks.end() && stored->number == number;
      has_file ? place_chunk(array.header, box, (stored++)->file) : place_fill(array.header, box);
      chunks.push_back({box, 0});
    }
    plan::CatalogBuilder::Tensor tensor;
    tensor.name = key;
    tensor.dtype = array.header.dtype;
    tensor.kind = chunks.size() > 1 ? EntryKind::kSharded : EntryKind::kReplicated;
    tensor.shape = array.header.shape.span();
    const Status added = plan::CatalogBuilder(&contents_.catalog).add_tensor(tensor, chunks);
    if (added.ok()) return {};
    return data_loss(fmt::format("array '{}': {}", shown(key), added.message()))
        .with_detail("tensor", key);
  }

  // Before anything is made of the chunks: their number is bounded by files from here on.
  Status check_missing(const std::string& key, const ZarrArray& array,
                       const zarr::ChunkGrid& grid) {
    const uint64_t missing = grid.count() - array.chunks.size();
    if (missing == 0) return {};
    if (array.header.fill.empty()) {
      uint64_t first = 0;
      while (first < array.chunks.size() && array.chunks[first].number == first) ++first;
      const std::string file = fmt::format("{}/{}", key, grid.name_of(first));
      return data_loss(fmt::format("array '{}': the file '{}' of a chunk is not there ({} of {} "
                                   "are missing), and the array has no fill_value",
                                   shown(key), shown(file), missing, grid.count()))
          .with_detail("tensor", key)
          .with_detail("file", file);
    }
    uint64_t bytes = 0;
    if (missing > kMaxFilledChunks - filled_chunks_ ||
        !checked_multiply(missing, grid.file_bytes(), &bytes) || bytes > filled_left_) {
      return resource_exhausted(
                 "chunks", fmt::format("array '{}': {} of its {} chunks of {} bytes have no file, "
                                       "more than is filled",
                                       shown(key), missing, grid.count(), grid.file_bytes()))
          .with_detail("tensor", key);
    }
    filled_chunks_ += missing;
    filled_left_ -= bytes;
    contents_.notes.push_back(
        fmt::format("{} of {} chunks of tensor '{}' have no file: their elements are its "
                    "fill_value",
                    missing, grid.count(), shown(key)));
    return {};
  }

  void place_chunk(const zarr::ArrayHeader& header, const Box& box, uint32_t file) {
    StridedSource source;
    source.file = file;
    source.element_bytes = static_cast<uint64_t>(dtype_bits(header.dtype) / 8);
    source.shape = box.sizes;
    source.strides = row_major_strides(header.chunks);
    const uint64_t bytes = static_cast<uint64_t>(box_element_count(box)) * source.element_bytes;
    contents_.chunk_files.push_back(file);
    if (is_packed(source.shape, source.strides)) {
      contents_.chunks.push_back({file, 0, bytes});
      return;
    }
    contents_.chunks.push_back({derived_file(), contents_.derived.add_strided(source), bytes});
  }

  void place_fill(const zarr::ArrayHeader& header, const Box& box) {
    StridedSource source;
    source.file = kFillElements;
    source.offset = contents_.fills.size();
    source.element_bytes = header.fill.size();
    source.shape = Dims{box_element_count(box)};
    source.strides = Dims{0};
    contents_.fills.insert(contents_.fills.end(), header.fill.begin(), header.fill.end());
    const uint64_t bytes = static_cast<uint64_t>(source.shape[0]) * source.element_bytes;
    contents_.chunk_files.push_back(0);
    contents_.chunks.push_back({derived_file(), contents_.derived.add_strided(source), bytes});
  }

  Status add_objects() {
    SHW_ASSIGN_OR_RETURN(const std::vector<ObjectKey> objects, whole_objects());
    std::set<std::string> names;
    for (size_t i = 0; i < objects.size(); ++i) {
      const uint32_t file = found_.objects[i];
      SHW_ASSIGN_OR_RETURN(const std::string object,
                           format_object_key(objects[i].key, objects[i].offsets, objects[i].shape));
      if (!names.insert(object).second)
        return data_loss(fmt::format("file '{}' and another one are both the object '{}'",
                                     shown(found_.files[file].name), shown(object)))
            .with_detail("file", found_.files[file].name)
            .with_detail("object", object);
      Status added = add_object(file, object);
      if (!added.ok())
        return std::move(added).annotated(
            fmt::format("reading the object of '{}'", shown(found_.files[file].name)));
    }
    return {};
  }

  // Extents that old names do not say are the largest offset of their key, and one.
  Result<std::vector<ObjectKey>> whole_objects() const {
    std::vector<ObjectKey> objects;
    std::map<std::string, int64_t, std::less<>> extents;
    for (const uint32_t file : found_.objects) {
      SHW_ASSIGN_OR_RETURN(std::optional<ObjectKey> name, object_of_file(found_.files[file].name));
      if (!name.has_value()) return internal_error("a file of an object has lost its name");
      int64_t& extent = extents.try_emplace(name->key, 0).first->second;
      extent = std::max(extent, name->offsets[name->offsets.size() - 1] + 1);
      objects.push_back(*std::move(name));
    }
    for (ObjectKey& object : objects) {
      int64_t& last = object.shape[object.shape.size() - 1];
      if (last == -1) last = extents.find(object.key)->second;
    }
    return objects;
  }

  Status add_object(uint32_t number, const std::string& name) {
    const ZarrFile& file = found_.files[number];
    SHW_ASSIGN_OR_RETURN(
        const std::unique_ptr<storage::StorageObject> object,
        location_.storage->open(storage::join_key(location_.prefix, file.name), {}));
    const archive::ArchiveBytes value = archive::bytes_of(*object, 0, file.size_bytes, file.name);
    SHW_ASSIGN_OR_RETURN(const ListedArchive listed, listed_archive(value));
    const uint64_t offset = contents_.derived.size_bytes();
    plan::ObjectRecord record;
    torch_dcp::ByteObject described{std::string(torch_dcp::kTorchSaveType), "", true};
    if (listed.size_bytes <= torch_dcp::kMaxReadObjectBytes) {
      SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, all_of(listed, value));
      described = torch_dcp::read_object(bytes, file.name, &budget_);
    }
    if (described.is_stored) {
      add_parts(listed, number);
    } else {
      contents_.derived.add_bytes(std::as_bytes(std::span(described.bytes)));
    }
    record.size_bytes = contents_.derived.size_bytes() - offset;
    contents_.objects.push_back({derived_file(), offset, record.size_bytes});
    contents_.object_files.push_back(number);
    SHW_RETURN_IF_ERROR(object->close());
    return plan::CatalogBuilder(&contents_.catalog, kMaxDescribedObjectBytes)
        .add_object(record, name, "", described.content_type);
  }

  static Result<std::vector<std::byte>> all_of(const ListedArchive& listed,
                                               const archive::ArchiveBytes& value) {
    std::vector<std::byte> bytes(static_cast<size_t>(listed.size_bytes));
    auto rest = std::span(bytes);
    for (const ListedArchive::Part& part : listed.parts) {
      const auto to = rest.first(static_cast<size_t>(part.size_bytes));
      rest = rest.subspan(to.size());
      if (part.bytes.empty()) {
        SHW_RETURN_IF_ERROR(value.read_range(part.offset, to, "a record"));
      } else {
        std::ranges::copy(part.bytes, to.begin());
      }
    }
    return bytes;
  }

  void add_parts(const ListedArchive& listed, uint32_t file) {
    for (const ListedArchive::Part& part : listed.parts) {
      if (!part.bytes.empty()) {
        contents_.derived.add_bytes(part.bytes);
        continue;
      }
      StridedSource source;
      source.file = file;
      source.offset = part.offset;
      source.shape = Dims{static_cast<int64_t>(part.size_bytes)};
      source.strides = Dims{1};
      contents_.derived.add_strided(std::move(source));
    }
  }

  uint32_t derived_file() const { return static_cast<uint32_t>(found_.files.size()); }

  const Location& location_;
  const ZarrFiles found_;
  ZarrContents contents_;
  uint64_t filled_left_;
  uint64_t filled_chunks_ = 0;
  uint64_t budget_ = torch_dcp::kMaxReadObjects;
};

}  // namespace

Result<ZarrContents> read_zarr_contents(const Location& location) {
  SHW_ASSIGN_OR_RETURN(ZarrFiles found, find_zarr_files(location));
  return ContentsMaker(location, std::move(found)).run();
}

}  // namespace shardwright::format::megatron
