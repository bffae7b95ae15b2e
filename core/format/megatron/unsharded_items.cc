// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/unsharded_items.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/torch_dcp/byte_items.h"
#include "core/format/torch_dcp/item_archive.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/storage/storage.h"

namespace shardwright::format::megatron {
namespace {

using torch_dcp::IndexParts;
using torch_dcp::ItemPlace;
using torch_dcp::SidecarItem;

bool any_tensor(const plan::Catalog& catalog) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    if (is_common(catalog.tensor_name(t))) return true;
  }
  return false;
}

class CommonTaker {
 public:
  CommonTaker(const Location& location, IndexParts* parts)
      : location_(location), parts_(*parts), catalog_(*parts->catalog) {}

  Result<std::vector<CommonEntry>> run() {
    plan::Catalog kept;
    if (any_tensor(catalog_)) {
      SHW_RETURN_IF_ERROR(take_tensors(&kept));
    } else {
      kept = catalog_;
      kept.objects.clear();
    }
    SHW_RETURN_IF_ERROR(take_objects(&kept));
    parts_.own = std::move(kept);
    parts_.catalog = &parts_.own;
    return std::move(entries_);
  }

 private:
  Status take_tensors(plan::Catalog* kept) {
    plan::CatalogBuilder builder(kept);
    std::vector<ItemPlace> places;
    std::vector<SidecarItem> sidecar;
    size_t item = 0;
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      const plan::TensorRecord& record = catalog_.tensors[t];
      const bool common = is_common(catalog_.tensor_name(t));
      std::vector<plan::CatalogBuilder::Chunk> chunks;
      if (common) SHW_RETURN_IF_ERROR(begin_tensor(t));
      for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
        const bool has_item = catalog_.chunk_bytes(c) > 0;
        if (common && has_item) {
          const uint64_t skipped = parts_.sidecar.chunks[item].payload_offset;
          ItemPlace place = parts_.chunks[c];
          place.offset += skipped;
          place.size_bytes = catalog_.chunk_bytes(c);
          SHW_RETURN_IF_ERROR(read(place));
        } else if (!common) {
          chunks.push_back({catalog_.chunk_box(c), catalog_.place_of(t, c)});
          places.push_back(parts_.chunks[c]);
          if (has_item) sidecar.push_back(parts_.sidecar.chunks[item]);
        }
        item += has_item ? 1 : 0;
      }
      if (!common) SHW_RETURN_IF_ERROR(builder.add_tensor(described(t), chunks));
    }
    plan::find_grids(kept);
    parts_.chunks = std::move(places);
    parts_.sidecar.chunks = std::move(sidecar);
    return {};
  }

  plan::CatalogBuilder::Tensor described(size_t t) const {
    const plan::TensorRecord& record = catalog_.tensors[t];
    return {catalog_.tensor_name(t),
            catalog_.texts.at(record.path),
            record.dtype,
            record.kind,
            record.rank,
            catalog_.shape(t)};
  }

  Status begin_tensor(size_t t) {
    const plan::TensorRecord& record = catalog_.tensors[t];
    CommonEntry& entry = entries_.emplace_back();
    entry.name = catalog_.tensor_name(t);
    entry.path = catalog_.texts.at(record.path);
    entry.dtype = record.dtype;
    SHW_ASSIGN_OR_RETURN(const torch_dcp::TorchElements elements,
                         torch_dcp::torch_elements(record.dtype));
    SHW_ASSIGN_OR_RETURN(entry.sizes, torch_dcp::torch_extents(elements, catalog_.shape(t)));
    return {};
  }

  Status take_objects(plan::Catalog* kept) {
    plan::CatalogBuilder builder(kept);
    std::vector<ItemPlace> places;
    std::vector<SidecarItem> sidecar;
    for (size_t o = 0; o < catalog_.objects.size(); ++o) {
      const plan::ObjectRecord& record = catalog_.objects[o];
      const std::string_view name = catalog_.object_name(o);
      if (is_common(name)) {
        CommonEntry& entry = entries_.emplace_back();
        entry.name = name;
        entry.path = catalog_.texts.at(record.path);
        SHW_RETURN_IF_ERROR(read(parts_.objects[o]));
        continue;
      }
      SHW_RETURN_IF_ERROR(builder.add_object(record, name, catalog_.texts.at(record.path),
                                             catalog_.texts.at(record.content_type)));
      places.push_back(parts_.objects[o]);
      sidecar.push_back(parts_.sidecar.objects[o]);
    }
    parts_.objects = std::move(places);
    parts_.sidecar.objects = std::move(sidecar);
    return {};
  }

  // The bytes of the last entry.
  Status read(const ItemPlace& place) {
    CommonEntry& entry = entries_.back();
    bytes_ += place.size_bytes;
    if (bytes_ > kMaxCommonBytes) {
      return resource_exhausted(
                 "common", fmt::format("the common state has more than {} bytes", kMaxCommonBytes))
          .with_detail("object", entry.name);
    }
    const std::string& file = parts_.files.at(place.file);
    storage::StorageObject* object = nullptr;
    SHW_RETURN_IF_ERROR(open(place.file, file, &object));
    entry.bytes.resize(static_cast<size_t>(place.size_bytes));
    return object->read_at(place.offset, entry.bytes)
        .annotated(fmt::format("reading '{}' from {}", escape_text(entry.name), file));
  }

  // Entries of one file come one after the other.
  Status open(uint32_t number, std::string_view file, storage::StorageObject** object) {
    if (opened_ == nullptr || opened_file_ != number) {
      SHW_ASSIGN_OR_RETURN(opened_,
                           location_.storage->open(storage::join_key(location_.prefix, file), {}));
      opened_file_ = number;
    }
    *object = opened_.get();
    return {};
  }

  const Location& location_;
  IndexParts& parts_;
  const plan::Catalog& catalog_;
  std::vector<CommonEntry> entries_;
  std::unique_ptr<storage::StorageObject> opened_;
  uint32_t opened_file_ = 0;
  uint64_t bytes_ = 0;
};

Status refused(std::string_view name, std::string_view why) {
  return invalid_argument(fmt::format("'{}' is of the common state, {}", escape_text(name), why))
      .with_detail("object", name);
}

}  // namespace

bool has_common_object(const plan::Catalog& catalog) {
  for (size_t o = 0; o < catalog.objects.size(); ++o) {
    if (catalog.object_name(o) == kCommonObject) return true;
  }
  return false;
}

Status check_common(const plan::Catalog& catalog) {
  const bool has_object = has_common_object(catalog);
  constexpr std::string_view kOneRank =
      "which is the same on all ranks, and this entry is that of one rank alone";
  constexpr std::string_view kBoth =
      "and the state has the object common_state/shard_0_1 as well: give one of the two";
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const std::string_view name = catalog.tensor_name(t);
    if (!is_common(name)) continue;
    if (has_object) return refused(name, kBoth);
    if (catalog.tensors[t].rank >= 0) return refused(name, kOneRank);
    if (catalog.tensors[t].chunk_count > 1)
      return refused(name, fmt::format("whose tensors are whole, and this one is cut into {}",
                                       catalog.tensors[t].chunk_count));
  }
  for (size_t o = 0; o < catalog.objects.size(); ++o) {
    const std::string_view name = catalog.object_name(o);
    if (!is_common(name)) continue;
    if (has_object) return refused(name, kBoth);
    if (catalog.objects[o].rank >= 0) return refused(name, kOneRank);
  }
  return {};
}

Status add_common_object(std::span<const std::byte> archive, const CommonFile& file,
                         IndexParts* parts) {
  SidecarItem item;
  if (file.digests) {
    item.first_digest = parts->sidecar.digests.size();
    const Digest128 key = torch_dcp::object_item_key(parts->sidecar.generation, kCommonObject, -1);
    torch_dcp::append_item_digests(archive, key, &parts->sidecar.digests);
  }
  plan::ObjectRecord record;
  record.size_bytes = archive.size();
  SHW_RETURN_IF_ERROR(plan::CatalogBuilder(&parts->own, kMaxCommonBytes * 2)
                          .add_object(record, kCommonObject, "", torch_dcp::kTorchSaveType));
  parts->objects.push_back({static_cast<uint32_t>(parts->files.size()), 0, 0, archive.size()});
  parts->sidecar.objects.push_back(item);
  parts->files.push_back(file.name);
  return {};
}

Result<std::vector<CommonEntry>> take_common(const Location& location, IndexParts* parts) {
  return CommonTaker(location, parts).run();
}

}  // namespace shardwright::format::megatron
