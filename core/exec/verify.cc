// SPDX-License-Identifier: Apache-2.0
//
// Verification. Structure: the manifest, and every file's size, header, trailer and index, all read
// again whatever was read before. Deep: every block of every chunk and object against its digest,
// and every byte of padding against zero. Damage is collected, not returned: the check goes on
// after the first finding, up to kMaxFindings.
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/exec/checkpoint_reader_internal.h"
#include "core/exec/checksum_sink_internal.h"

namespace shardwright::exec::internal {
namespace {

// Findings of many threads.
class DamageList {
 public:
  // Once, however many blocks met it: one checksum can be that of many.
  void add(DamageReport damage) {
    const std::lock_guard lock(mutex_);
    const auto is_same = [&](const DamageReport& other) {
      return std::tie(other.message, other.tensor, other.box, other.file, other.offset) ==
             std::tie(damage.message, damage.tensor, damage.box, damage.file, damage.offset);
    };
    if (std::ranges::any_of(list_, is_same)) return;
    ++count_;
    if (list_.size() < static_cast<size_t>(kMaxFindings)) list_.push_back(std::move(damage));
  }
  // Sorted by file and offset, so that equal damage gives an equal report.
  std::vector<DamageReport> take() {
    std::sort(list_.begin(), list_.end(), [](const DamageReport& a, const DamageReport& b) {
      return std::tie(a.file, a.offset, a.message) < std::tie(b.file, b.offset, b.message);
    });
    return std::move(list_);
  }
  uint64_t count() const { return count_; }

 private:
  std::mutex mutex_;
  std::vector<DamageReport> list_;
  uint64_t count_ = 0;
};

// Blocks arrive checked; padding is looked at here.
class VerifySink final : public BlockSink {
 public:
  VerifySink(const format::OpenedCheckpoint& opened, DamageList* damage)
      : opened_(opened), damage_(damage) {}

  Status consume(std::span<const BlockNeed> needs, std::span<const std::byte> bytes,
                 bool) override {
    const BlockNeed& need = needs.front();
    if (need.kind != NeedKind::kPadding) return {};
    const auto dirty =
        std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
    if (dirty == bytes.end()) return {};
    const std::string& file = opened_.files()[need.file].key;
    DamageReport found;
    found.file = file;
    found.offset = need.offset + static_cast<uint64_t>(dirty - bytes.begin());
    found.length = need.offset + need.length - found.offset;
    found.message = fmt::format("file {} has {:#04x} at {} where padding must be zero", file,
                                std::to_integer<unsigned>(*dirty), found.offset);
    damage_->add(std::move(found));
    return {};
  }

  bool survives_failures() const override { return true; }

  Status failed(const BlockNeed& need, Status status) override {
    if (status.code() != StatusCode::kDataLoss) return status;
    DamageReport found = damage_of(status);
    if (found.file.empty() && need.file != opened_.derived_file())
      found.file = opened_.files()[need.file].key;
    if (found.length == 0) {
      found.offset = need.offset;
      found.length = need.length;
    }
    if (found.tensor.empty() && need.kind == NeedKind::kChunk) name_chunk(need.item, &found);
    damage_->add(std::move(found));
    return {};
  }

 private:
  void name_chunk(uint64_t chunk, DamageReport* found) const {
    const plan::Catalog& catalog = opened_.catalog();
    found->tensor = listed_tensor_name(catalog, catalog.tensor_of(chunk));
    found->box = box_text(catalog.chunk_box(chunk));
  }

  const format::OpenedCheckpoint& opened_;
  DamageList* damage_;
};

// Structure of manifest and files; sound[i] tells whether file i may be read further.
Status check_structure(const format::OpenedCheckpoint& opened, const CallContext& call,
                       DamageList* damage, std::vector<bool>* sound) {
  const Status manifest = opened.check_manifest();
  if (!manifest.ok() && manifest.code() != StatusCode::kDataLoss) return manifest;
  if (!manifest.ok()) damage->add(damage_of(manifest));
  for (uint32_t file = 0; file < opened.files().size(); ++file) {
    SHW_RETURN_IF_ERROR(call.control.check("verify"));
    Status status = opened.check_file(file);
    (*sound)[file] = status.ok();
    if (status.ok()) continue;
    if (status.code() != StatusCode::kDataLoss) return status;
    DamageReport found = damage_of(status);
    if (found.file.empty()) found.file = opened.files()[file].key;
    damage->add(std::move(found));
  }
  return {};
}

// Of the sound files; one that fails is not read any further.
Status check_checksums(const format::OpenedCheckpoint& opened, const CallContext& call,
                       DamageList* damage, std::vector<bool>* sound) {
  if (!opened.has_checksums()) return {};
  for (uint32_t file = 0; file < sound->size(); ++file) {
    if (!(*sound)[file]) continue;
    SHW_RETURN_IF_ERROR(call.control.check("verify"));
    const Status status = opened.check_checksums(file);
    if (status.ok()) continue;
    if (status.code() != StatusCode::kDataLoss) return status;
    (*sound)[file] = false;
    damage->add(damage_of(status));
  }
  return {};
}

Status append_padding(const format::OpenedCheckpoint& opened, uint32_t file,
                      std::vector<BlockNeed>* needs) {
  SHW_ASSIGN_OR_RETURN(const std::vector<format::Extent> gaps, opened.padding(file));
  for (const format::Extent& gap : gaps) {
    for (uint64_t begin = 0; begin < gap.size_bytes; begin += kDigestBlockBytes) {
      BlockNeed need;
      need.offset = gap.offset + begin;
      need.file = file;
      need.length = static_cast<uint32_t>(std::min(kDigestBlockBytes, gap.size_bytes - begin));
      need.kind = NeedKind::kPadding;
      needs->push_back(need);
    }
  }
  return {};
}

// Chunks and objects of the sound files.
std::vector<format::StoredItem> items_in(const format::OpenedCheckpoint& opened,
                                         const std::vector<bool>& sound) {
  using Kind = format::StoredItem::Kind;
  std::vector<format::StoredItem> items;
  const plan::Catalog& catalog = opened.catalog();
  for (uint64_t chunk = 0; chunk < catalog.chunk_count(); ++chunk) {
    if (sound[opened.chunk_file(chunk)]) items.push_back({Kind::kChunk, chunk});
  }
  for (size_t object = 0; object < catalog.objects.size(); ++object) {
    if (sound[opened.object_file(object)]) items.push_back({Kind::kObject, object});
  }
  return items;
}

// Everything in the sound files: chunks, objects, padding.
Result<std::vector<BlockNeed>> all_needs(Runtime& runtime, const format::OpenedCheckpoint& opened,
                                         const std::vector<bool>& sound, const CallContext& call,
                                         DamageList* damage) {
  const std::vector<format::StoredItem> items = items_in(opened, sound);
  // Many at once where all is well; whose place cannot be found fails again below, by itself.
  const Status prepared = prepare_items(
      runtime, opened, items.size(), [&items](size_t i) { return items[i]; }, call.control);
  if (!prepared.ok() && prepared.code() != StatusCode::kDataLoss) return prepared;
  std::vector<BlockNeed> needs;
  for (const format::StoredItem& item : items) {
    const Status status = append_whole_item(opened, item, 0, &needs);
    if (!status.ok() && status.code() != StatusCode::kDataLoss) return status;
    if (!status.ok()) damage->add(damage_of(status));
  }
  for (uint32_t file = 0; file < sound.size(); ++file) {
    if (sound[file]) SHW_RETURN_IF_ERROR(append_padding(opened, file, &needs));
  }
  return needs;
}

void describe(const format::OpenedCheckpoint& opened, bool deep, Report* report) {
  const plan::Catalog& catalog = opened.catalog();
  report->operation = "verify";
  report->format = std::string(opened.format_name());
  report->generation = std::string(opened.generation());
  report->world_size = opened.world_size();
  report->verify = deep ? "deep" : "structure";
  report->digests = opened.digest_block_bytes() > 0;
  report->checksums = deep && opened.has_checksums();
  report->tensors = catalog.tensors.size();
  report->objects = catalog.objects.size();
  report->chunks = catalog.chunk_count();
  report->bytes_total = catalog.payload_bytes();
  report->files = opened.files().size();
  for (const format::FileInfo& file : opened.files()) report->bytes_files += file.size_bytes;
  if (!deep && report->digests)
    report->notes.emplace_back("payload not read; a deep verification reads and checks every byte");
  if (!report->digests && opened.has_checksums() && !deep) {
    report->notes.emplace_back(
        "payload not read; a deep verification compares the checksums of all records");
  }
  if (!report->digests && !opened.has_checksums()) {
    report->notes.emplace_back(
        "the checkpoint has no digests: its structure was checked, its payload cannot be");
  }
  if (opened.is_partial()) {
    report->notes.emplace_back(
        "the format does not promise that every element is stored: info lists what lacks some");
  }
  for (const std::string& note : opened.notes()) report->notes.push_back(note);
}

}  // namespace

Result<Report> find_all_damage(const BlockReader& reader, const format::OpenedCheckpoint& opened,
                               bool deep, const CallContext& call) {
  const Clock& clock = call.control.clock != nullptr ? *call.control.clock : real_clock();
  const int64_t begin = clock.monotonic_ns();
  Report report;
  describe(opened, deep, &report);
  DamageList damage;
  std::vector<bool> sound(opened.files().size(), false);
  SHW_RETURN_IF_ERROR(check_structure(opened, call, &damage, &sound));
  if (deep) {
    SHW_ASSIGN_OR_RETURN(const std::vector<Status> listed, opened.check_listed_files());
    for (const Status& status : listed) damage.add(damage_of(status));
    SHW_RETURN_IF_ERROR(check_checksums(opened, call, &damage, &sound));
    SHW_ASSIGN_OR_RETURN(std::vector<BlockNeed> needs,
                         all_needs(reader.runtime(), opened, sound, call, &damage));
    if (call.progress != nullptr) call.progress->enter(Stage::kReading);
    VerifySink found(opened, &damage);
    std::optional<ItemChecksums> checksums;
    std::optional<ChecksumSink> summing;
    if (expect_whole_items(opened, kFromDevice, needs, &checksums) != nullptr)
      summing.emplace(*checksums, found);
    BlockSink& sink = summing.has_value() ? static_cast<BlockSink&>(*summing) : found;
    SHW_ASSIGN_OR_RETURN(const BlockReadTotals totals,
                         reader.run(std::move(needs), kFromDevice, call, sink));
    report.bytes_read = totals.bytes_read;
    report.io_engine = totals.io_engine;
  }
  if (damage.count() > static_cast<uint64_t>(kMaxFindings)) {
    report.notes.push_back(
        fmt::format("{} findings in all, the first {} are listed", damage.count(), kMaxFindings));
  }
  report.damage = damage.take();
  report.elapsed_ns = clock.monotonic_ns() - begin;
  report.times.push_back({"verify", report.elapsed_ns});
  return report;
}

}  // namespace shardwright::exec::internal
