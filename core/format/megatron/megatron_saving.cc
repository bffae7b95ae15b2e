// SPDX-License-Identifier: Apache-2.0
//
// Steps of a save here, behind those of torch DCP: in encode the common state is read back from
// what ranks wrote, and becomes one archive; open_commit writes digests, index and common state
// under names of the generation, all durable, and gives the journal, whose commit is the commit.
// settle (publication.h) does the rest.
#include "core/format/megatron/megatron_saving.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/megatron/listed_digests.h"
#include "core/format/megatron/listed_removal.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/megatron_format.h"
#include "core/format/megatron/publication.h"
#include "core/format/megatron/unsharded_items.h"
#include "core/format/other_formats.h"
#include "core/format/torch_dcp/dcp_generation.h"
#include "core/format/torch_dcp/entry_removal.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_dcp/torch_dcp_saving.h"

namespace shardwright::format::megatron {
namespace {

// What is read before the index, or what the index would hide.
constexpr std::string_view kOthers[] = {"manifest.shw", torch_dcp::kRankIndexPattern,
                                        "*.safetensors", "*.safetensors.index.json"};

std::string key_of(const Location& location, std::string_view name) {
  return storage::join_key(location.prefix, name);
}

// Of the object of a common state, beside what rank 0 writes.
std::string common_file(std::string_view generation) {
  return torch_dcp::data_file_name(torch_dcp::DataFile{0, 1, generation});
}

class MegatronGeneration final : public GenerationWriter {
 public:
  MegatronGeneration(const Location& location, const plan::GlobalSavePlan& plan,
                     SaveSettings settings, std::vector<StoredParts> replaced)
      : location_(location),
        settings_(settings),
        has_own_object_(has_common_object(plan.catalog)),
        data_(location, plan, std::move(settings), std::move(replaced),
              [this](torch_dcp::IndexParts* parts) { return take(parts); }) {}

  Result<uint64_t> planned_bytes() const override { return data_.planned_bytes(); }
  Status make(std::string_view generation, Existing existing) override;
  const StoredParts& parts() const override { return data_.parts(); }
  Status check_written(const plan::WriteResult& result) const override {
    return data_.check_written(result);
  }
  Status encode(std::span<const plan::WriteResult> results, int64_t created_unix_ns) override;
  Result<std::unique_ptr<storage::StorageObject>> open_commit() override;
  uint64_t file_count() const override { return data_.file_count(); }
  uint64_t file_bytes() const override { return data_.file_bytes(); }
  std::vector<StoredParts> replaced_parts() const override { return data_.replaced_parts(); }
  std::vector<std::string> notes() const override { return data_.notes(); }

 private:
  Status take(torch_dcp::IndexParts* parts);
  Status write_pending(std::string_view name, std::span<const std::byte> bytes) const;
  void list(std::string_view name, std::span<const std::byte> bytes) {
    if (settings_.lists_digests) listed_[std::string(name)] = sha256_text(bytes);
  }
  std::string_view generation() const { return data_.parts().generation; }

  const Location location_;
  const SaveSettings settings_;
  const bool has_own_object_;  // of the common state
  torch_dcp::DcpGeneration data_;
  std::optional<std::vector<std::byte>> common_;  // of common.pt
  std::map<std::string, std::string> listed_;     // in integrity.json: names and SHA-256
};

Status MegatronGeneration::make(std::string_view generation, Existing existing) {
  const std::string copies[] = {pending_name(torch_dcp::kIndexName, generation),
                                pending_name(kCommonName, generation), common_file(generation),
                                pending_name(kIntegrityName, generation),
                                pending_name(kJournalName, generation)};
  SHW_RETURN_IF_ERROR(data_.make(generation, existing));
  for (const std::string& name : copies) {
    if (existing == Existing::kGoOn)
      SHW_RETURN_IF_ERROR(location_.storage->remove(key_of(location_, name)));
    data_.add_part(key_of(location_, name));
  }
  return {};
}

Status MegatronGeneration::take(torch_dcp::IndexParts* parts) {
  if (has_own_object_) return {};
  SHW_ASSIGN_OR_RETURN(const std::vector<CommonEntry> entries, take_common(location_, parts));
  const bool as_object = settings_.common_as_object;
  SHW_ASSIGN_OR_RETURN(
      std::vector<std::byte> common,
      encode_common(entries, as_object ? CommonForm::kListOfOne : CommonForm::kDict));
  if (!as_object) {
    common_ = std::move(common);
    return {};
  }
  const std::string file = common_file(generation());
  list(file, common);
  SHW_RETURN_IF_ERROR(torch_dcp::write_beside(
      location_, {key_of(location_, file), common, generation()}, settings_));
  return add_common_object(common, {file, settings_.digests}, parts);
}

// Files of ranks were hashed while they were written, all others are in memory here.
Status MegatronGeneration::encode(std::span<const plan::WriteResult> results,
                                  int64_t created_unix_ns) {
  SHW_RETURN_IF_ERROR(data_.encode(results, created_unix_ns));
  if (!settings_.lists_digests) return {};
  for (const plan::WriteResult& result : results) {
    if (!result.has_file) continue;
    if (result.file_sha256.empty())
      return internal_error(fmt::format("rank {} has not hashed its file", result.rank))
          .with_detail("rank", fmt::to_string(result.rank));
    listed_[torch_dcp::data_file_name(result.rank, generation())] = to_hex(result.file_sha256);
  }
  const std::string_view marker = marker_text({common_.has_value()});
  list(kMarkerName, std::as_bytes(std::span(marker)));
  list(torch_dcp::kIndexName, data_.index_bytes());
  list(torch_dcp::digests_file_name(generation()), data_.sidecar_bytes());
  if (common_.has_value()) list(kCommonName, *common_);
  return {};
}

Status MegatronGeneration::write_pending(std::string_view name,
                                         std::span<const std::byte> bytes) const {
  const std::string key = key_of(location_, pending_name(name, generation()));
  return torch_dcp::write_beside(location_, {key, bytes, generation()}, settings_);
}

Result<std::unique_ptr<storage::StorageObject>> MegatronGeneration::open_commit() {
  Publication publication;
  publication.generation = generation();
  publication.durable = settings_.durable;
  publication.file_mode = settings_.file_mode;
  publication.index = pending_file(data_.index_bytes());
  SHW_RETURN_IF_ERROR(data_.write_sidecar());
  if (common_.has_value()) {
    publication.has_common_file = true;
    publication.common = pending_file(*common_);
    SHW_RETURN_IF_ERROR(write_pending(kCommonName, *common_));
  }
  if (settings_.lists_digests) {
    const std::string text = encode_integrity(listed_);
    const auto bytes = std::as_bytes(std::span(text));
    publication.has_integrity = true;
    publication.integrity = pending_file(bytes);
    SHW_RETURN_IF_ERROR(write_pending(kIntegrityName, bytes));
  }
  SHW_RETURN_IF_ERROR(write_pending(torch_dcp::kIndexName, data_.index_bytes()));
  const std::vector<std::byte> journal = encode_publication(publication);
  return torch_dcp::write_invisible(
      *location_.storage, {key_of(location_, kJournalName), journal, generation()}, settings_);
}

class MegatronWriter final : public FormatWriter {
 public:
  std::string_view name() const override { return kFormatName; }
  bool keeps_digests() const override { return data().keeps_digests(); }
  bool plans_object_bytes() const override { return data().plans_object_bytes(); }
  bool lists_digests() const override { return true; }
  std::string commit_key(const Location& location) const override {
    return key_of(location, kJournalName);
  }
  std::string journal_key(const Location& location, std::string_view generation) const override {
    return data().journal_key(location, generation);
  }
  std::string fence_key(const Location& location) const override {
    return data().fence_key(location);
  }
  bool saves_alone() const override { return true; }
  Status settle(const Location& location) const override { return megatron::settle(location); }
  Result<CurrentCheckpoint> read_current(const Location& location) const override;
  Result<std::vector<GenerationInfo>> list_generations(const Location& location) const override;
  Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes,
                                      bool apply) const override;
  Status finish_removal(const Location& location) const override {
    return torch_dcp::finish_removal(location, listed_digests_of_removal(location));
  }
  Result<std::unique_ptr<GenerationWriter>> begin(const Location& location,
                                                  const plan::GlobalSavePlan& plan,
                                                  const State& state, SaveSettings settings,
                                                  const CurrentCheckpoint& replaced) const override;
  Result<std::vector<FileLayout>> lay_out(const Location& location,
                                          const RankContents& contents) const override {
    return data().lay_out(location, contents);
  }
  Result<std::vector<std::byte>> encode_tail(const RankContents& contents, const FileLayout& layout,
                                             uint64_t position, std::span<const Digest128> digests,
                                             plan::WriteResult* result) const override {
    return data().encode_tail(contents, layout, position, digests, result);
  }

 private:
  static const FormatWriter& data() { return torch_dcp::torch_dcp_writer(); }
};

// What the index says that lies there, whether there is a marker or not: a save replaces it.
Result<CurrentCheckpoint> MegatronWriter::read_current(const Location& location) const {
  Result<std::optional<Publication>> publication = read_publication(location);
  const bool damaged = publication.status().code() == StatusCode::kDataLoss;
  if (!damaged) SHW_RETURN_IF_ERROR(publication.status());
  SHW_ASSIGN_OR_RETURN(CurrentCheckpoint current, data().read_current(location));
  if (damaged) {
    current.exists = true;
    current.damaged = true;
    return current;
  }
  if (!publication->has_value()) {
    current.commits_anew = true;
    return current;
  }
  // Both are needed until it is settled.
  if (!current.generation.empty()) current.kept_generations.push_back(current.generation);
  current.exists = true;
  current.damaged = false;
  current.version.clear();
  current.named_keys.clear();
  current.generation = (*publication)->generation;
  return current;
}

Result<std::vector<GenerationInfo>> MegatronWriter::list_generations(
    const Location& location) const {
  SHW_ASSIGN_OR_RETURN(const CurrentCheckpoint current, read_current(location));
  SHW_RETURN_IF_ERROR(check_names_generation(current, key_of(location, torch_dcp::kIndexName)));
  GenerationList found(current);
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  SHW_RETURN_IF_ERROR(
      location.storage->list(prefix, storage::kDelimiter, [&](const storage::ListEntry& entry) {
        const std::string_view name = std::string_view(entry.key).substr(prefix.size());
        const std::string_view generation = generation_of_file(name);
        if (!generation.empty()) found.add(generation, entry);
        return Status();
      }));
  return found.take();
}

Result<EntryRemoval> MegatronWriter::remove_entries(const Location& location,
                                                    const EntryNameRule& goes, bool apply) const {
  SHW_ASSIGN_OR_RETURN(const auto publication, read_publication(location));
  if (publication.has_value()) {
    return failed_precondition(
               "a save was killed here before all of it was in place; gc, or a "
               "removal that is applied, finishes it first")
        .with_detail("file", kJournalName);
  }
  return torch_dcp::remove_entries(location, goes, apply, listed_digests_of_removal(location));
}

Result<std::unique_ptr<GenerationWriter>> MegatronWriter::begin(
    const Location& location, const plan::GlobalSavePlan& plan, const State&, SaveSettings settings,
    const CurrentCheckpoint& replaced) const {
  SHW_RETURN_IF_ERROR(check_keeps_none(settings, "Megatron's index"));
  SHW_RETURN_IF_ERROR(refuse_beside_megatron(location, kOthers));
  SHW_RETURN_IF_ERROR(torch_dcp::check_indexable(plan.catalog));
  SHW_RETURN_IF_ERROR(check_common(plan.catalog));
  std::vector<StoredParts> old;
  if (replaced.commits_anew) {
    SHW_ASSIGN_OR_RETURN(old, torch_dcp::parts_of_replaced(
                                  location, key_of(location, torch_dcp::kIndexName), replaced));
  }
  if (!old.empty() && !replaced.generation.empty()) {
    for (const std::string_view name : {torch_dcp::kIndexName, kCommonName, kIntegrityName})
      old.back().keys.push_back(key_of(location, pending_name(name, replaced.generation)));
  }
  return std::unique_ptr<GenerationWriter>(
      std::make_unique<MegatronGeneration>(location, plan, std::move(settings), std::move(old)));
}

}  // namespace

const FormatWriter& megatron_writer() {
  static const MegatronWriter kWriter;
  return kWriter;
}

}  // namespace shardwright::format::megatron
