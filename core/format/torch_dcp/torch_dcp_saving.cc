// SPDX-License-Identifier: Apache-2.0
//
// Where items lie is each rank's own affair; it tells the coordinator by the details of its result
// (rank_items.h), who puts all of them into the index (dcp_generation.h).
#include "core/format/torch_dcp/torch_dcp_saving.h"

#include <memory>
#include <utility>

#include "core/format/other_formats.h"
#include "core/format/torch_dcp/dcp_generation.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/entry_removal.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/index_writer.h"
#include "core/format/torch_dcp/rank_items.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

namespace shardwright::format::torch_dcp {
namespace {

// What is read before the index, or what the index would hide.
constexpr std::string_view kOthers[] = {"manifest.shw", kRankIndexPattern, "*.safetensors",
                                        "*.safetensors.index.json"};

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

class TorchDcpWriter final : public FormatWriter {
 public:
  std::string_view name() const override { return kFormatName; }
  bool keeps_digests() const override { return true; }
  // A conversion has them in memory: values are put into archives.
  bool plans_object_bytes() const override { return true; }
  std::string commit_key(const Location& location) const override {
    return storage::join_key(location.prefix, kIndexName);
  }
  std::string journal_key(const Location& location, std::string_view generation) const override {
    return storage::join_key(location.prefix, journal_file_name(generation));
  }
  std::string fence_key(const Location& location) const override {
    return storage::join_key(location.prefix, kLockName);
  }
  Result<CurrentCheckpoint> read_current(const Location& location) const override;
  Result<std::vector<GenerationInfo>> list_generations(const Location& location) const override;
  Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes,
                                      bool apply) const override {
    return torch_dcp::remove_entries(location, goes, apply);
  }
  Status finish_removal(const Location& location) const override {
    return torch_dcp::finish_removal(location);
  }
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
  take_index(location, *index, &current);
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
  SHW_ASSIGN_OR_RETURN(std::vector<StoredParts> old,
                       parts_of_replaced(location, commit_key(location), replaced));
  return std::unique_ptr<GenerationWriter>(
      std::make_unique<DcpGeneration>(location, plan, std::move(settings), std::move(old)));
}

// A file that is written once from its beginning to its end has its checksums behind.
Result<std::vector<FileLayout>> TorchDcpWriter::lay_out(const Location& location,
                                                        const RankContents& contents) const {
  const bool in_order = is_written_in_order(*location.storage, contents);
  SHW_ASSIGN_OR_RETURN(FileLayout layout,
                       lay_out_items(contents, in_order ? Framing::kOrdered : Framing::kAligned));
  layout.key = storage::join_key(location.prefix,
                                 data_file_name({contents.list.rank, contents.file_number,
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
