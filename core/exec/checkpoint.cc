// SPDX-License-Identifier: Apache-2.0
#include "core/exec/checkpoint.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/exec/checkpoint_reader_internal.h"

namespace shardwright::exec {
namespace {

// Name of an absent entry, and the nearest ones that are there.
Status absent(std::string_view what, std::string_view name,
              std::span<const std::string_view> stored) {
  const std::string nearest =
      escape_text(fmt::format("{}", fmt::join(nearest_names(name, stored, kNearestNames), ", ")));
  return not_found(fmt::format("the checkpoint holds no {} named {}; nearest: {}", what,
                               escape_text(name), nearest.empty() ? "it holds none" : nearest))
      .with_detail(what == "tensor" ? "tensor" : "object", name)
      .with_detail("hint", nearest);
}

Status damage_status(const DamageReport& first, size_t count) {
  Status status = data_loss(count == 1 ? first.message
                                       : fmt::format("{} (find_damage lists this and {} more)",
                                                     first.message, count - 1));
  const auto add = [&status](const char* key, const std::string& value) {
    if (!value.empty()) status = std::move(status).with_detail(key, value);
  };
  add("tensor", first.tensor);
  add("box", first.box);
  add("file", first.file);
  if (first.length > 0) {
    add("offset", std::to_string(first.offset));
    add("length", std::to_string(first.length));
  }
  return status;
}

std::string listed_name(std::string_view name, EntryKind kind, int32_t rank) {
  if (kind != EntryKind::kRankLocal) return std::string(name);
  return fmt::format("{}@rank-{}", name, rank);
}

}  // namespace

std::string listed_tensor_name(const plan::Catalog& catalog, size_t tensor) {
  const plan::TensorRecord& record = catalog.tensors[tensor];
  return listed_name(catalog.texts.at(record.name), record.kind, record.rank);
}

std::string listed_object_name(const plan::Catalog& catalog, size_t object) {
  const plan::ObjectRecord& record = catalog.objects[object];
  return listed_name(catalog.texts.at(record.name), record.kind, record.rank);
}

Result<Report> Checkpoint::verify(bool deep, const CallContext& call) const {
  SHW_ASSIGN_OR_RETURN(Report report, find_damage(deep, call));
  if (!report.damage.empty()) return damage_status(report.damage.front(), report.damage.size());
  return report;
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open(Runtime& runtime,
                                                           const format::Location& location,
                                                           std::string_view as) {
  SHW_ASSIGN_OR_RETURN(std::shared_ptr<const format::OpenedCheckpoint> opened,
                       runtime.formats().open(location, nullptr, as));
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<internal::CheckpointReader>(runtime, location, std::move(opened)));
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open_to_convert(
    Runtime& runtime, const format::Location& location) {
  SHW_ASSIGN_OR_RETURN(std::shared_ptr<const format::OpenedCheckpoint> opened,
                       runtime.formats().open_to_convert(location));
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<internal::CheckpointReader>(runtime, location, std::move(opened)));
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open_to_share(
    Runtime& runtime, const format::Location& location, format::StoredMetadata* metadata) {
  SHW_ASSIGN_OR_RETURN(std::shared_ptr<const format::OpenedCheckpoint> opened,
                       runtime.formats().open(location, metadata));
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<internal::CheckpointReader>(runtime, location, std::move(opened)));
}

Result<std::shared_ptr<const Checkpoint>> Checkpoint::open_shared(
    Runtime& runtime, const format::Location& location, const format::StoredMetadata& metadata) {
  SHW_ASSIGN_OR_RETURN(std::shared_ptr<const format::OpenedCheckpoint> opened,
                       runtime.formats().open_shared(location, metadata));
  return std::shared_ptr<const Checkpoint>(
      std::make_shared<internal::CheckpointReader>(runtime, location, std::move(opened)));
}

namespace internal {

CheckpointReader::CheckpointReader(Runtime& runtime, format::Location location,
                                   std::shared_ptr<const format::OpenedCheckpoint> opened)
    : runtime_(runtime),
      location_(std::move(location)),
      opened_(std::move(opened)),
      index_(opened_->catalog()),
      reader_(runtime, location_, *opened_) {}

Result<size_t> CheckpointReader::find_tensor(std::string_view name, int32_t rank) const {
  const plan::Catalog& catalog = opened_->catalog();
  const int64_t found = rank < 0 ? index_.find_tensor_of_any(name) : index_.find_tensor(name, rank);
  if (found >= 0) return static_cast<size_t>(found);
  std::vector<std::string_view> names;
  names.reserve(catalog.tensors.size());
  for (size_t i = 0; i < catalog.tensors.size(); ++i) names.push_back(catalog.tensor_name(i));
  return absent("tensor", name, names);
}

Result<size_t> CheckpointReader::find_object(std::string_view name, int32_t rank) const {
  const plan::Catalog& catalog = opened_->catalog();
  const int64_t found = rank < 0 ? index_.find_object_of_any(name) : index_.find_object(name, rank);
  if (found >= 0) return static_cast<size_t>(found);
  std::vector<std::string_view> names;
  names.reserve(catalog.objects.size());
  for (size_t i = 0; i < catalog.objects.size(); ++i) names.push_back(catalog.object_name(i));
  return absent("object", name, names);
}

Result<ReadOutcome> CheckpointReader::read_boxes(std::span<const BoxRead> reads, ReadRules rules,
                                                 const CallContext& call) const {
  SHW_ASSIGN_OR_RETURN(const BoxFragments fragments,
                       BoxFragments::create(runtime_.devices(), opened_->catalog(), index_, reads));
  FragmentRequest request;
  request.fragments = &fragments;
  request.rules = rules;
  return read_fragments(reader_, *opened_, request, call);
}

Result<std::vector<std::byte>> CheckpointReader::read_object(size_t object, ReadRules rules) const {
  const plan::Catalog& catalog = opened_->catalog();
  std::vector<std::byte> bytes;
  if (object < catalog.objects.size()) bytes.resize(catalog.objects[object].size_bytes);
  SHW_RETURN_IF_ERROR(read_object_part(object, 0, bytes, rules, CallContext()));
  return bytes;
}

Status CheckpointReader::read_object_part(size_t object, uint64_t begin,
                                          std::span<std::byte> target, ReadRules rules,
                                          const CallContext& call) const {
  const plan::Catalog& catalog = opened_->catalog();
  if (object >= catalog.objects.size()) {
    return out_of_range(fmt::format("there is no object number {}; the checkpoint has {}", object,
                                    catalog.objects.size()));
  }
  const uint64_t size = catalog.objects[object].size_bytes;
  if (begin > size || target.size() > size - begin) {
    return out_of_range(fmt::format("object '{}' has {} bytes; there are no {} from {} on",
                                    escape_text(catalog.object_name(object)), size, target.size(),
                                    begin))
        .with_detail("object", catalog.object_name(object));
  }
  const ObjectTarget wanted{object, begin, target};
  FragmentRequest request;
  request.objects = {&wanted, 1};
  request.rules = rules;
  return read_fragments(reader_, *opened_, request, call).status();
}

Result<Report> CheckpointReader::find_damage(bool deep, const CallContext& call) const {
  const auto note = [&](const auto& text) { log(runtime_.log(), LogLevel::kInfo, "exec", text); };
  note([&] {
    return fmt::format("verifying {} at '{}', {}", opened_text(*opened_),
                       escape_text(format::shown_path(location_)),
                       deep ? "every byte" : "its structure");
  });
  Result<Report> report = find_all_damage(reader_, *opened_, deep, call);
  if (report.ok()) report->path = format::shown_path(location_);
  note([&] {
    return report.ok()
               ? fmt::format("verified: {} findings, {} bytes read in {} us", report->damage.size(),
                             report->bytes_read, report->elapsed_ns / 1000)
               : "not verified: " + report.status().to_string();
  });
  return report;
}

std::string CheckpointReader::info_json(bool with_entries) const {
  return checkpoint_info_json(*opened_, with_entries);
}

std::string opened_text(const format::OpenedCheckpoint& opened) {
  return opened.generation().empty()
             ? fmt::format("a checkpoint of format {}", opened.format_name())
             : fmt::format("generation {}", opened.generation());
}

DamageReport damage_of(const Status& status) {
  const auto number = [&](std::string_view key) -> uint64_t {
    const std::string text(status.detail(key));
    return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10);
  };
  DamageReport damage;
  damage.message = std::string(status.message());
  for (const Status* cause = status.cause(); cause != nullptr; cause = cause->cause())
    damage.message.append(": ").append(cause->message());
  damage.tensor = std::string(status.detail("tensor"));
  damage.box = std::string(status.detail("box"));
  damage.file = std::string(status.detail("file"));
  damage.offset = number("offset");
  damage.length = number("length");
  return damage;
}

}  // namespace internal
}  // namespace shardwright::exec
