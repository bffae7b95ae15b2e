// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/dcp_generation.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/find_sidecar.h"
#include "core/format/torch_dcp/index_check.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr uint64_t kBytesPerItem = 1024;  // of archive, index and digests around one, estimated

std::string key_of(const Location& location, std::string_view name) {
  return storage::join_key(location.prefix, name);
}

// Takes the items of each rank as they come in the catalog.
class ItemCollector {
 public:
  ItemCollector(const plan::Catalog& catalog, std::string_view generation)
      : catalog_(catalog), generation_(generation) {
    all_.catalog = &catalog;
    all_.chunks.resize(static_cast<size_t>(catalog.chunk_count()));
    all_.objects.resize(catalog.objects.size());
    all_.sidecar.generation = generation;
  }

  Result<IndexParts> run(std::span<const plan::WriteResult> results) {
    for (const plan::WriteResult& result : results) SHW_RETURN_IF_ERROR(add_rank(result));
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) {
      const plan::TensorRecord& record = catalog_.tensors[t];
      for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
        const uint64_t bytes = catalog_.chunk_bytes(c);
        if (bytes == 0) continue;
        SHW_RETURN_IF_ERROR(take(catalog_.place_of(t, c), &bytes, &all_.chunks[c],
                                 &all_.sidecar.chunks.emplace_back()));
      }
    }
    for (size_t o = 0; o < catalog_.objects.size(); ++o) {
      SHW_RETURN_IF_ERROR(take(catalog_.objects[o].place, nullptr, &all_.objects[o],
                               &all_.sidecar.objects.emplace_back()));
    }
    return finish();
  }

 private:
  struct Rank {
    WrittenItems written;
    uint32_t file = ItemPlace::kNowhere;
    uint64_t file_bytes = 0;
    size_t next = 0;
    size_t next_digest = 0;
  };

  Status add_rank(const plan::WriteResult& result) {
    Rank& rank = ranks_.emplace_back();
    if (!result.has_file) return {};
    SHW_ASSIGN_OR_RETURN(rank.written, decode_details(result.details));
    rank.file = static_cast<uint32_t>(all_.files.size());
    rank.file_bytes = result.file_bytes;
    all_.files.push_back(data_file_name(result.rank, generation_));
    return {};
  }

  // payload_bytes: what the catalog says of it, or null.
  Status take(uint32_t number, const uint64_t* payload_bytes, ItemPlace* place, SidecarItem* item) {
    if (number >= ranks_.size()) return mismatch(number, "there is no such rank");
    Rank& rank = ranks_[number];
    if (rank.next >= rank.written.items.size()) return mismatch(number, "it has fewer items");
    const WrittenItem& written = rank.written.items[rank.next++];
    if (payload_bytes != nullptr && written.payload_bytes != *payload_bytes)
      return mismatch(number, "an item has another size");
    uint64_t end = 0;
    if (!checked_add(written.offset, written.size_bytes, &end) || end > rank.file_bytes ||
        written.payload_offset > written.size_bytes ||
        written.payload_bytes > written.size_bytes - written.payload_offset)
      return mismatch(number, "an item leaves its file");
    *place = {rank.file, 0, written.offset, written.size_bytes};
    item->payload_offset = written.payload_offset;
    if (rank.written.digests.empty()) return {};
    const auto blocks = static_cast<size_t>(integrity::block_count(written.payload_bytes));
    if (blocks > rank.written.digests.size() - rank.next_digest)
      return mismatch(number, "it has fewer digests");
    item->first_digest = all_.sidecar.digests.size();
    const auto from = rank.written.digests.begin() + static_cast<std::ptrdiff_t>(rank.next_digest);
    all_.sidecar.digests.insert(all_.sidecar.digests.end(), from,
                                from + static_cast<std::ptrdiff_t>(blocks));
    rank.next_digest += blocks;
    return {};
  }

  Result<IndexParts> finish() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.next != rank.written.items.size() || rank.next_digest != rank.written.digests.size())
        return mismatch(static_cast<uint32_t>(r), "it has more items");
    }
    return std::move(all_);
  }

  static Status mismatch(uint32_t rank, std::string_view what) {
    return internal_error(
               fmt::format("what rank {} says of its items does not fit the plan: {}", rank, what))
        .with_detail("rank", fmt::to_string(rank));
  }

  const plan::Catalog& catalog_;
  const std::string generation_;
  std::vector<Rank> ranks_;
  IndexParts all_;
};

// Generations by the names of files; an index of torch's has none. One of ours without files says
// its generation itself.
void take_generations(const DcpIndex& index, CurrentCheckpoint* current) {
  std::set<std::string_view> found;
  const auto saved = index.facts.find("save_id");
  if (index.files.empty() && saved != index.facts.end() && is_generation_id(saved->second)) {
    current->generation = saved->second;
    return;
  }
  for (const std::string& file : index.files) found.insert(generation_of_file(file));
  if (found.size() == 1) {
    current->generation = *found.begin();
    return;
  }
  for (const std::string_view generation : found) {
    if (!generation.empty()) current->kept_generations.emplace_back(generation);
  }
}

storage::OpenOptions options_of(const ObjectToWrite& object, const SaveSettings& settings,
                                storage::OpenMode mode) {
  storage::OpenOptions options;
  options.mode = mode;
  options.file_mode = settings.file_mode;
  options.durable = settings.durable;
  options.temporary_suffix = object.suffix;
  return options;
}

}  // namespace

Result<uint64_t> DcpGeneration::planned_bytes() const {
  uint64_t planned = 0;
  for (size_t rank = 0; rank < plan_.rank_count(); ++rank) {
    const uint64_t bytes = plan_.writes.bytes[rank];
    const uint64_t around = plan_.writes.item_counts[rank] * kBytesPerItem + kWriteBlockBytes / 16 +
                            bytes / kDigestBlockBytes * (sizeof(Digest128) + kExtentAlignmentBytes);
    if (!checked_add(planned, bytes, &planned) || !checked_add(planned, around, &planned))
      return invalid_argument("the planned bytes of all ranks cannot be counted");
  }
  return planned;
}

Status DcpGeneration::make(std::string_view generation, Existing existing) {
  const std::string sidecar = key_of(location_, digests_file_name(generation));
  if (existing == Existing::kRefuse && location_.storage->stat(sidecar).ok())
    return already_exists(fmt::format("generation {} has been used before", generation));
  parts_ = {std::string(generation), "", {sidecar}};
  for (size_t rank = 0; rank < plan_.rank_count(); ++rank) {
    if (plan_.writes.item_counts[rank] == 0) continue;
    const std::string name = data_file_name(static_cast<int32_t>(rank), generation);
    parts_.keys.push_back(key_of(location_, name));
  }
  if (existing == Existing::kGoOn) {
    SHW_RETURN_IF_ERROR(
        storage::remove_in_flight(*location_.storage, key_of(location_, kIndexName), generation));
    SHW_RETURN_IF_ERROR(location_.storage->remove(sidecar));
  }
  if (location_.prefix.empty()) return {};
  const Status made = location_.storage->create_prefix(location_.prefix);
  return made.code() == StatusCode::kAlreadyExists ? Status() : made;
}

Status DcpGeneration::check_written(const plan::WriteResult& result) const {
  const bool writes = plan_.writes.item_counts[static_cast<size_t>(result.rank)] != 0;
  if (result.has_file != writes) {
    return failed_precondition(fmt::format(
        "rank {} reports {} file, its plan has {} items", result.rank, result.has_file ? "a" : "no",
        plan_.writes.item_counts[static_cast<size_t>(result.rank)]));
  }
  if (!result.has_file) return {};
  const std::string key = key_of(location_, data_file_name(result.rank, parts_.generation));
  const Result<storage::ObjectStat> stat = location_.storage->stat(key);
  if (!stat.ok()) return Status(stat.status()).with_detail("file", key);
  if (stat->size_bytes == result.file_bytes) return {};
  return data_loss(fmt::format("{} has {} bytes, rank {} wrote {}", escape_text(key),
                               stat->size_bytes, result.rank, result.file_bytes))
      .with_detail("file", key)
      .with_detail("expected", fmt::to_string(result.file_bytes))
      .with_detail("found", fmt::to_string(stat->size_bytes));
}

Status DcpGeneration::encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) {
  SHW_ASSIGN_OR_RETURN(IndexParts items,
                       ItemCollector(plan_.catalog, parts_.generation).run(results));
  for (const plan::WriteResult& result : results) file_bytes_ += result.file_bytes;
  if (edit_) SHW_RETURN_IF_ERROR(edit_(&items));
  file_count_ = items.files.size();
  const std::string place = shown_path(location_);
  const IndexContents contents{*items.catalog, items.chunks,      items.objects,     items.files,
                               place,          parts_.generation, settings_.metadata};
  SHW_ASSIGN_OR_RETURN(index_, encode_index(contents));
  SHW_RETURN_IF_ERROR(check_encoded(index_.bytes, contents));
  items.sidecar.created_unix_ns = created_unix_ns;
  sidecar_ = encode_sidecar(items.sidecar, std::as_bytes(std::span(index_.bytes)));
  return {};
}

Status DcpGeneration::write_sidecar() const {
  return write_beside(
      location_,
      {key_of(location_, digests_file_name(parts_.generation)), sidecar_, parts_.generation},
      settings_);
}

// Nobody looks at the digests before there is the index that they are of.
Result<std::unique_ptr<storage::StorageObject>> DcpGeneration::open_commit() {
  SHW_RETURN_IF_ERROR(write_sidecar());
  return write_invisible(*location_.storage,
                         {key_of(location_, kIndexName), index_bytes(), parts_.generation},
                         settings_);
}

Result<std::unique_ptr<storage::StorageObject>> write_invisible(storage::Storage& storage,
                                                                const ObjectToWrite& object,
                                                                const SaveSettings& settings) {
  return storage::write_uncommitted(storage, object.key, object.bytes,
                                    options_of(object, settings, storage::OpenMode::kCreate));
}

Status write_beside(const Location& location, const ObjectToWrite& object,
                    const SaveSettings& settings) {
  const bool visible = storage::offers(*location.storage, storage::kPositionalWrite);
  const auto mode = visible ? storage::OpenMode::kCreateVisible : storage::OpenMode::kCreate;
  SHW_RETURN_IF_ERROR(storage::write_all(*location.storage, object.key, object.bytes,
                                         options_of(object, settings, mode)));
  bool supported = false;
  const bool names = visible && settings.durable && !location.prefix.empty();
  return names ? location.storage->sync_prefix(location.prefix, &supported) : Status();
}

void take_index(const Location& location, const DcpIndex& index, CurrentCheckpoint* current) {
  take_generations(index, current);
  for (const std::string& file : index.files) {
    if (is_data_file(file)) current->named_keys.push_back(key_of(location, file));
  }
}

Result<std::vector<StoredParts>> parts_of_replaced(const Location& location,
                                                   std::string_view index_key,
                                                   const CurrentCheckpoint& replaced) {
  std::vector<StoredParts> old;
  if (!replaced.exists || replaced.damaged) return old;
  old.push_back({replaced.generation, "", replaced.named_keys});
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> index,
                       storage::read_all(*location.storage, index_key, kMaxIndexBytes));
  SHW_ASSIGN_OR_RETURN(const auto sidecar, find_sidecar(location, index, nullptr));
  if (sidecar.has_value()) old.back().keys.push_back(sidecar->key);
  return old;
}

}  // namespace shardwright::format::torch_dcp
