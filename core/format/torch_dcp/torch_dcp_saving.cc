// SPDX-License-Identifier: Apache-2.0
//
// Where items lie is each rank's own affair; it tells the coordinator by the details of its result
// (rank_items.h), who puts all of them into the index.
#include "core/format/torch_dcp/torch_dcp_saving.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/format/other_formats.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/digest_sidecar.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/find_sidecar.h"
#include "core/format/torch_dcp/index_check.h"
#include "core/format/torch_dcp/index_writer.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/integrity/digest.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr uint64_t kBytesPerItem = 1024;  // of archive, index and digests around one, estimated
// What is read before the index, or what the index would hide.
constexpr std::string_view kOthers[] = {"manifest.shw", kRankIndexPattern, "*.safetensors",
                                        "*.safetensors.index.json"};

std::string key_of(const Location& location, std::string_view name) {
  return storage::join_key(location.prefix, name);
}

std::string name_prefix(const Location& location) {
  return location.prefix.empty() ? "" : location.prefix + "/";
}

// Names directly in the directory that begin so.
Status list_names(const Location& location, std::string_view beginning,
                  const std::function<void(std::string_view, const storage::ListEntry&)>& sink) {
  const std::string prefix = name_prefix(location);
  return location.storage->list(prefix + std::string(beginning), storage::kDelimiter,
                                [&](const storage::ListEntry& entry) {
                                  sink(std::string_view(entry.key).substr(prefix.size()), entry);
                                  return Status();
                                });
}

// All items of a save, by chunk and object of its catalog.
struct AllItems {
  std::vector<std::string> files;
  std::vector<ItemPlace> chunks;
  std::vector<ItemPlace> objects;
  DigestSidecar sidecar;
};

// Takes the items of each rank as they come in the catalog.
class ItemCollector {
 public:
  ItemCollector(const plan::Catalog& catalog, std::string_view generation)
      : catalog_(catalog), generation_(generation) {
    all_.chunks.resize(static_cast<size_t>(catalog.chunk_count()));
    all_.objects.resize(catalog.objects.size());
    all_.sidecar.generation = generation;
  }

  Result<AllItems> run(std::span<const plan::WriteResult> results) {
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

  Result<AllItems> finish() {
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
  AllItems all_;
};

class TorchDcpGeneration final : public GenerationWriter {
 public:
  TorchDcpGeneration(const Location& location, const plan::GlobalSavePlan& plan,
                     SaveSettings settings, std::vector<StoredParts> replaced)
      : location_(location),
        plan_(plan),
        settings_(std::move(settings)),
        replaced_(std::move(replaced)) {}

  Result<uint64_t> planned_bytes() const override;
  Status make(std::string_view generation, Existing existing) override;
  const StoredParts& parts() const override { return parts_; }
  Status check_written(const plan::WriteResult& result) const override;
  Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) override;
  Result<std::unique_ptr<storage::StorageObject>> open_commit() override;
  uint64_t file_count() const override { return file_count_; }
  uint64_t file_bytes() const override { return file_bytes_; }
  std::vector<StoredParts> replaced_parts() const override { return replaced_; }
  std::vector<std::string> notes() const override { return index_.notes; }

 private:
  Status write_sidecar() const;
  Result<std::unique_ptr<storage::StorageObject>> write_object(const std::string& key,
                                                               std::span<const std::byte> bytes,
                                                               storage::OpenMode mode) const;

  const Location location_;
  const plan::GlobalSavePlan& plan_;
  const SaveSettings settings_;
  const std::vector<StoredParts> replaced_;
  StoredParts parts_;
  EncodedIndex index_;
  std::vector<std::byte> sidecar_;
  uint64_t file_count_ = 0;
  uint64_t file_bytes_ = 0;
};

Result<uint64_t> TorchDcpGeneration::planned_bytes() const {
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

Status TorchDcpGeneration::make(std::string_view generation, Existing existing) {
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
    SHW_RETURN_IF_ERROR(remove_in_flight(location_, key_of(location_, kIndexName), generation));
    SHW_RETURN_IF_ERROR(location_.storage->remove(sidecar));
  }
  if (location_.prefix.empty()) return {};
  const Status made = location_.storage->create_prefix(location_.prefix);
  return made.code() == StatusCode::kAlreadyExists ? Status() : made;
}

Status TorchDcpGeneration::check_written(const plan::WriteResult& result) const {
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

Status TorchDcpGeneration::encode(std::span<const plan::WriteResult> results,
                                  int64_t created_unix_ns) {
  SHW_ASSIGN_OR_RETURN(AllItems items,
                       ItemCollector(plan_.catalog, parts_.generation).run(results));
  for (const plan::WriteResult& result : results) file_bytes_ += result.file_bytes;
  file_count_ = items.files.size();
  const std::string place = shown_path(location_);
  const IndexContents contents{plan_.catalog, items.chunks,      items.objects,     items.files,
                               place,         parts_.generation, settings_.metadata};
  SHW_ASSIGN_OR_RETURN(index_, encode_index(contents));
  SHW_RETURN_IF_ERROR(check_encoded(index_.bytes, contents));
  items.sidecar.created_unix_ns = created_unix_ns;
  sidecar_ = encode_sidecar(items.sidecar, std::as_bytes(std::span(index_.bytes)));
  return {};
}

Result<std::unique_ptr<storage::StorageObject>> TorchDcpGeneration::write_object(
    const std::string& key, std::span<const std::byte> bytes, storage::OpenMode mode) const {
  storage::OpenOptions options;
  options.mode = mode;
  options.file_mode = settings_.file_mode;
  options.durable = settings_.durable;
  options.expected_bytes = bytes.size();
  options.temporary_suffix = parts_.generation;
  SHW_ASSIGN_OR_RETURN(std::unique_ptr<storage::StorageObject> object,
                       location_.storage->open(key, options));
  SHW_RETURN_IF_ERROR(object->write_at(0, bytes));
  if (settings_.durable) SHW_RETURN_IF_ERROR(object->sync());
  return object;
}

// Nobody looks at it before there is the index that it is of.
Status TorchDcpGeneration::write_sidecar() const {
  const bool visible = storage::offers(*location_.storage, storage::kPositionalWrite);
  SHW_ASSIGN_OR_RETURN(
      const std::unique_ptr<storage::StorageObject> object,
      write_object(key_of(location_, digests_file_name(parts_.generation)), sidecar_,
                   visible ? storage::OpenMode::kCreateVisible : storage::OpenMode::kCreate));
  if (!visible) SHW_RETURN_IF_ERROR(object->commit(storage::CommitCondition::kNone, {}));
  SHW_RETURN_IF_ERROR(object->close());
  bool supported = false;
  const bool names = visible && settings_.durable && !location_.prefix.empty();
  return names ? location_.storage->sync_prefix(location_.prefix, &supported) : Status();
}

Result<std::unique_ptr<storage::StorageObject>> TorchDcpGeneration::open_commit() {
  SHW_RETURN_IF_ERROR(write_sidecar());
  return write_object(key_of(location_, kIndexName), std::as_bytes(std::span(index_.bytes)),
                      storage::OpenMode::kCreate);
}

class TorchDcpWriter final : public FormatWriter {
 public:
  std::string_view name() const override { return kFormatName; }
  bool keeps_digests() const override { return true; }
  // A conversion has them in memory: values are put into archives.
  bool plans_object_bytes() const override { return true; }
  std::string commit_key(const Location& location) const override {
    return key_of(location, kIndexName);
  }
  std::string journal_key(const Location& location, std::string_view generation) const override {
    return key_of(location, journal_file_name(generation));
  }
  std::string fence_key(const Location& location) const override {
    return key_of(location, kLockName);
  }
  Result<CurrentCheckpoint> read_current(const Location& location) const override;
  Result<std::vector<GenerationInfo>> list_generations(const Location& location) const override;
  Result<std::unique_ptr<GenerationWriter>> begin(const Location& location,
                                                  const plan::GlobalSavePlan& plan,
                                                  const State& state, SaveSettings settings,
                                                  const CurrentCheckpoint& replaced) const override;
  Result<std::vector<FileLayout>> lay_out(const Location& location,
                                          const RankContents& contents) const override;
  Result<std::vector<std::byte>> encode_tail(const RankContents& contents, const FileLayout& layout,
                                             uint64_t position, std::span<const Digest128> digests,
                                             plan::WriteResult* result) const override;

 private:
  static Status check_place(const Location& location, const SaveSettings& settings);
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

Result<CurrentCheckpoint> TorchDcpWriter::read_current(const Location& location) const {
  const std::string key = commit_key(location);
  const Result<storage::ObjectStat> stat = location.storage->stat(key);
  if (stat.status().code() == StatusCode::kNotFound) return CurrentCheckpoint{};
  SHW_RETURN_IF_ERROR(stat.status());
  CurrentCheckpoint current;
  current.exists = true;
  current.version = stat->version;
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                       storage::read_all(*location.storage, key, kMaxIndexBytes));
  const auto index = decode_index(bytes, kIndexName);
  current.damaged = !index.ok();
  if (current.damaged) return current;
  take_generations(*index, &current);
  for (const std::string& file : index->files) {
    if (is_data_file(file)) current.named_keys.push_back(key_of(location, file));
  }
  return current;
}

Result<std::vector<GenerationInfo>> TorchDcpWriter::list_generations(
    const Location& location) const {
  SHW_ASSIGN_OR_RETURN(const CurrentCheckpoint current, read_current(location));
  SHW_RETURN_IF_ERROR(check_names_generation(current, commit_key(location)));
  GenerationList found(current);
  SHW_RETURN_IF_ERROR(
      list_names(location, "", [&](std::string_view name, const storage::ListEntry& entry) {
        const std::string_view generation = generation_of_file(name);
        if (generation.empty()) return;
        found.add(generation, entry);
      }));
  return found.take();
}

// What would be at the place besides.
Status TorchDcpWriter::check_place(const Location& location, const SaveSettings& settings) {
  SHW_RETURN_IF_ERROR(check_keeps_none(settings, "torch's index"));
  return refuse_beside(location, kOthers);
}

Result<std::unique_ptr<GenerationWriter>> TorchDcpWriter::begin(
    const Location& location, const plan::GlobalSavePlan& plan, const State&, SaveSettings settings,
    const CurrentCheckpoint& replaced) const {
  SHW_RETURN_IF_ERROR(check_place(location, settings));
  SHW_RETURN_IF_ERROR(check_indexable(plan.catalog));
  std::vector<StoredParts> old;
  if (replaced.exists && !replaced.damaged) {
    old.push_back({replaced.generation, "", replaced.named_keys});
    SHW_ASSIGN_OR_RETURN(
        const std::vector<std::byte> index,
        storage::read_all(*location.storage, commit_key(location), kMaxIndexBytes));
    SHW_ASSIGN_OR_RETURN(const auto sidecar, find_sidecar(location, index, nullptr));
    if (sidecar.has_value()) old.back().keys.push_back(sidecar->key);
  }
  return std::unique_ptr<GenerationWriter>(
      std::make_unique<TorchDcpGeneration>(location, plan, std::move(settings), std::move(old)));
}

// A file that is written once from its beginning to its end has its checksums behind.
Result<std::vector<FileLayout>> TorchDcpWriter::lay_out(const Location& location,
                                                        const RankContents& contents) const {
  const bool in_order = !storage::offers(*location.storage, storage::kPositionalWrite);
  SHW_ASSIGN_OR_RETURN(FileLayout layout,
                       lay_out_items(contents, in_order ? Framing::kOrdered : Framing::kAligned));
  layout.key = key_of(location, data_file_name({contents.list.rank, contents.file_number,
                                                contents.list.generation, contents.file_hint}));
  layout.names_prefix = location.prefix;
  std::vector<FileLayout> files;
  files.push_back(std::move(layout));
  return files;
}

Result<std::vector<std::byte>> TorchDcpWriter::encode_tail(const RankContents& contents,
                                                           const FileLayout& layout,
                                                           uint64_t position,
                                                           std::span<const Digest128> digests,
                                                           plan::WriteResult* result) const {
  result->has_file = true;
  result->file_bytes = position;
  result->details = encode_details(written_items(contents, layout, digests));
  return std::vector<std::byte>();
}

}  // namespace

const FormatWriter& torch_dcp_writer() {
  static const TorchDcpWriter kWriter;
  return kWriter;
}

}  // namespace shardwright::format::torch_dcp
