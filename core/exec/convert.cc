// SPDX-License-Identifier: Apache-2.0
//
// One save in this process whose ranks are units: what goes into one file, or belongs to one rank
// of the source. The generation id is a digest of source and options, so the same call finds what
// an earlier one left; a journal says which units are whole.
#include "core/exec/convert.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/exec/checkpoint.h"
#include "core/exec/checkpoint_source_internal.h"
#include "core/exec/path_fence_internal.h"
#include "core/exec/read_back_internal.h"
#include "core/exec/save_steps_internal.h"
#include "core/integrity/digest.h"

namespace shardwright::exec {
namespace {

using internal::CheckpointSource;
using internal::ContentSource;
using internal::SaveSteps;

constexpr uint64_t kDefaultUnitBytes = 5'000'000'000;
constexpr uint64_t kMaxJournalBytes = uint64_t{64} << 20;

// What one file gets.
struct Unit {
  std::shared_ptr<State> state = std::make_shared<State>();  // co-owned by its planner
  internal::SourceEntries entries;
  // What was read for it in this call; null when it was written by an earlier one.
  std::unique_ptr<internal::TakenParts> taken = nullptr;
  const plan::WriteList* list = nullptr;  // of its planner; set with taken
};

// Entries of the source as states without memory: nothing reads elements through them.
class UnitMaker {
 public:
  UnitMaker(const Checkpoint& source, const FilePlacement* placement, uint64_t unit_bytes,
            bool with_object_bytes)
      : source_(source),
        placement_(placement),
        catalog_(source.catalog()),
        unit_bytes_(unit_bytes),
        with_object_bytes_(with_object_bytes) {}

  Result<std::vector<Unit>> run() {
    for (size_t t = 0; t < catalog_.tensors.size(); ++t) SHW_RETURN_IF_ERROR(add_tensor(t));
    for (size_t o = 0; o < catalog_.objects.size(); ++o) SHW_RETURN_IF_ERROR(add_object(o));
    if (units_.empty()) units_.emplace_back();
    return std::move(units_);
  }

 private:
  Unit& unit(size_t number) {
    if (units_.size() <= number) units_.resize(number + 1);
    return units_[number];
  }

  // Of entries that belong to no rank.
  size_t next_unit(uint64_t bytes) {
    if (filled_ != 0 && filled_ + bytes > unit_bytes_) {
      ++current_;
      filled_ = 0;
    }
    filled_ += bytes;
    return current_;
  }

  TensorEntry entry_of(size_t number) {
    const plan::TensorRecord& record = catalog_.tensors[number];
    TensorEntry entry;
    entry.name = catalog_.texts.at(record.name);
    entry.path = catalog_.texts.at(record.path);
    entry.kind = record.kind;
    entry.global_shape = Dims(catalog_.shape(number));
    entry.local.data = &nothing_;
    entry.local.dtype = record.dtype;
    return entry;
  }

  Status add_tensor(size_t number) {
    const plan::TensorRecord& record = catalog_.tensors[number];
    if (placement_ != nullptr && record.rank < 0) return add_parts(number);
    TensorEntry entry = entry_of(number);
    entry.local.shape = entry.global_shape;
    entry.pieces.push_back({whole_box(entry.global_shape), 0});
    return add_entry(record.rank >= 0 ? static_cast<size_t>(record.rank)
                                      : next_unit(catalog_.tensor_bytes(number)),
                     number, std::move(entry));
  }

  // An entry in each file that gets boxes of it, in which they lie one after the other.
  Status add_parts(size_t number) {
    std::map<uint32_t, std::vector<Piece>> pieces;
    std::map<uint32_t, int64_t> elements;
    for (FilePlacement::Part& part : placement_->parts(catalog_, number)) {
      const int64_t begin = elements[part.file];
      elements[part.file] += box_element_count(part.box);
      pieces[part.file].push_back({std::move(part.box), begin});
    }
    for (auto& [file, list] : pieces) {
      TensorEntry entry = entry_of(number);
      entry.kind = EntryKind::kSharded;
      entry.local.shape = Dims{elements[file]};
      if (list.size() == 1) entry.local.shape = list[0].box.sizes;
      entry.pieces = std::move(list);
      SHW_RETURN_IF_ERROR(add_entry(file, number, std::move(entry)));
    }
    return {};
  }

  Status add_entry(size_t file, size_t number, TensorEntry entry) {
    Unit& into = unit(file);
    into.entries.tensors.push_back(number);
    std::vector<TensorEntry> entries;
    entries.push_back(std::move(entry));
    return into.state->add_tensors(entries);
  }

  Status add_object(size_t number) {
    const plan::ObjectRecord& record = catalog_.objects[number];
    ObjectEntry entry;
    entry.name = catalog_.texts.at(record.name);
    entry.path = catalog_.texts.at(record.path);
    entry.kind = record.kind;
    entry.content_type = catalog_.texts.at(record.content_type);
    if (with_object_bytes_) {
      SHW_ASSIGN_OR_RETURN(entry.bytes, source_.read_object(number, ReadRules()));
    } else {
      entry.bytes_elsewhere = record.size_bytes;
    }
    std::vector<ObjectEntry> entries;
    entries.push_back(std::move(entry));
    // Objects that belong to no rank come first: formats that keep text look for it there.
    Unit& into = unit(record.rank >= 0 ? static_cast<size_t>(record.rank) : 0);
    into.entries.objects.push_back(number);
    return into.state->add_objects(std::move(entries));
  }

  const Checkpoint& source_;
  const FilePlacement* const placement_;
  const plan::Catalog& catalog_;
  const uint64_t unit_bytes_;
  const bool with_object_bytes_;
  std::vector<Unit> units_;
  size_t current_ = 0;
  uint64_t filled_ = 0;
  alignas(16) std::byte nothing_{};
};

// Results of the units that are whole: {unit, bytes of its result, result} one after the other,
// then the digest of all. What cannot be read counts as nothing.
class Journal {
 public:
  Journal(storage::Storage& storage, std::string key) : storage_(storage), key_(std::move(key)) {}

  void read() {
    if (key_.empty()) return;
    remove_in_flight();  // where an earlier call was killed
    const Result<std::vector<std::byte>> bytes =
        storage::read_all(storage_, key_, kMaxJournalBytes);
    if (!bytes.ok() || bytes->size() < sizeof(Digest128)) return;
    std::span<const std::byte> rest(*bytes);
    const auto digest = rest.last(sizeof(Digest128));
    rest = rest.first(rest.size() - sizeof(Digest128));
    const Digest128 found = integrity::xxh3_128(rest);
    if (!std::ranges::equal(std::as_bytes(std::span(found)), digest)) return;
    while (rest.size() >= sizeof(Head)) {
      Head head;
      std::memcpy(&head, rest.data(), sizeof(head));
      rest = rest.subspan(sizeof(head));
      if (head.size > rest.size()) return;
      results_[head.unit].assign(rest.begin(), rest.begin() + head.size);
      rest = rest.subspan(head.size);
    }
  }
  const Bytes* find(uint32_t unit) const {
    const auto found = results_.find(unit);
    return found == results_.end() ? nullptr : &found->second;
  }
  size_t size() const { return results_.size(); }

  Status add(uint32_t unit, Bytes result, bool durable) {
    if (key_.empty()) return {};
    results_[unit] = std::move(result);
    std::vector<std::byte> bytes;
    for (const auto& [number, each] : results_) {
      const Head head{number, static_cast<uint32_t>(each.size())};
      const auto front = std::as_bytes(std::span(&head, 1));
      bytes.insert(bytes.end(), front.begin(), front.end());
      bytes.insert(bytes.end(), each.begin(), each.end());
    }
    const Digest128 digest = integrity::xxh3_128(bytes);
    const auto end = std::as_bytes(std::span(digest));
    bytes.insert(bytes.end(), end.begin(), end.end());
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreate;
    options.durable = durable;
    options.temporary_suffix = kInFlight;
    return storage::write_all(storage_, key_, bytes, std::move(options));
  }
  void remove() {
    if (key_.empty()) return;
    static_cast<void>(storage_.remove(key_));
    remove_in_flight();
  }

 private:
  struct Head {
    uint32_t unit = 0;
    uint32_t size = 0;
  };
  static constexpr const char* kInFlight = "next";
  void remove_in_flight() {
    static_cast<void>(storage::remove_in_flight(storage_, key_, kInFlight));
  }

  storage::Storage& storage_;
  const std::string key_;
  std::map<uint32_t, Bytes> results_;
};

std::string real_path(const format::Location& location) {
  if (location.path.empty()) return location.prefix;
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::weakly_canonical(location.path, failed);
  return failed ? location.path : real.string();
}

bool lies_in(std::string_view inner, std::string_view outer) {
  return inner == outer || outer.empty() ||
         (inner.starts_with(outer) && inner.substr(outer.size(), 1) == "/");
}

Status check_places(const format::Location& source, const format::Location& target) {
  const bool on_files = !source.path.empty() && !target.path.empty();
  if (!on_files && source.storage != target.storage) return {};
  const std::string from = real_path(source);
  const std::string to = real_path(target);
  if (!lies_in(to, from) && !lies_in(from, to)) return {};
  return invalid_argument(fmt::format("'{}' and '{}' are one place or lie in one another; nothing "
                                      "is written into a source: give another target",
                                      escape_text(format::shown_path(source)),
                                      escape_text(format::shown_path(target))))
      .with_detail("parameter", "target");
}

class Conversion {
 public:
  Conversion(Runtime& writing, std::shared_ptr<const Checkpoint> source,
             const FilePlacement* placement, const format::Location& target,
             const ConvertOptions& options, const CallContext& call)
      : writing_(writing),
        source_(std::move(source)),
        source_place_(source_->location()),
        placement_(placement),
        target_(target),
        options_(options),
        call_(call) {}

  Result<Report> run() {
    SHW_RETURN_IF_ERROR(check_places(source_place_, target_));
    SHW_ASSIGN_OR_RETURN(format_, writing_.formats().writer(options_.format));
    SHW_RETURN_IF_ERROR(check_source());
    generation_ = generation();
    Report report;
    SHW_ASSIGN_OR_RETURN(const bool is_done, look_at_target());
    if (is_done) {
      SHW_RETURN_IF_ERROR(settle());
      report.notes.emplace_back("the target was converted before; nothing was written");
    } else {
      SHW_ASSIGN_OR_RETURN(report, save());
    }
    // It says nothing any more; what is left of it goes with its generation.
    Journal(*target_.storage, format_->journal_key(target_, generation_)).remove();
    SHW_RETURN_IF_ERROR(compare(&report));
    report.operation = "convert";
    report.path = format::shown_path(target_);
    return report;
  }

 private:
  // What would fail in the middle of a copy fails before it.
  Status check_source() const {
    if (!source_->opened().is_partial()) return {};
    const Status whole = plan::prove_all_covers(source_->catalog(), plan::Copies::kAllowed, "file");
    if (whole.ok()) return {};
    return data_loss(
               fmt::format("'{}' does not hold all of a tensor, so it cannot be converted: {}",
                           escape_text(format::shown_path(source_place_)), whole.message()))
        .with_detail("tensor", whole.detail("tensor"));
  }

  uint64_t unit_bytes() const {
    return options_.max_shard_bytes == 0 ? kDefaultUnitBytes : options_.max_shard_bytes;
  }

  std::string generation() const {
    std::string text = fmt::format("{}\n{}\n{}\n{}\n{}\n", source_->opened().format_name(),
                                   source_->opened().identity(), source_->catalog().payload_bytes(),
                                   options_.format, unit_bytes());
    if (options_.common_as_object) text += "common=object\n";
    if (options_.lists_digests) text += "integrity=sha256\n";
    return to_hex(integrity::xxh3_128(std::as_bytes(std::span(text))));
  }

  // Whether the target is what this call would make.
  Result<bool> look_at_target() const {
    SHW_ASSIGN_OR_RETURN(const format::CurrentCheckpoint current, format_->read_current(target_));
    if (!current.exists) return false;
    if (current.generation == generation_) return true;
    if (options_.overwrite == Overwrite::kReplace) return false;
    return already_exists(fmt::format("there is a checkpoint at '{}' already; convert with "
                                      "overwrite 'replace' or choose another path",
                                      escape_text(format::shown_path(target_))))
        .with_detail("file", format_->commit_key(target_));
  }

  // An earlier call may have been killed behind its commit.
  Status settle() const {
    if (!format_->saves_alone()) return {};
    SHW_ASSIGN_OR_RETURN(
        const internal::FenceLock fence,
        internal::lock_path_to_save(writing_, {target_, format_->fence_key(target_)},
                                    storage::LockMode::kExclusive, call_.control));
    return format_->settle(target_);
  }

  SaveOptions save_options() const {
    SaveOptions save;
    save.format = options_.format;
    save.durability = options_.durability;
    save.file_mode = options_.file_mode;
    save.common_as_object = options_.common_as_object;
    save.lists_digests = options_.lists_digests;
    save.max_shard_bytes = options_.max_shard_bytes;
    save.metadata = source_->opened().metadata();
    save.rules.verify_replicas = plan::VerifyReplicas::kOff;  // each entry is held once
    return save;
  }

  Result<Report> save() {
    SHW_ASSIGN_OR_RETURN(
        units_, UnitMaker(*source_, placement_, unit_bytes(), format_->plans_object_bytes()).run());
    Journal journal(*target_.storage, format_->journal_key(target_, generation_));
    journal.read();
    SHW_RETURN_IF_ERROR(make_steps(journal.size() > 0));
    std::vector<Bytes> locals;
    for (const auto& steps : steps_) {
      SHW_ASSIGN_OR_RETURN(Bytes local, steps->local_plan(call_));
      locals.push_back(std::move(local));
    }
    SHW_ASSIGN_OR_RETURN(const std::vector<Bytes> lists,
                         steps_[0]->global_plan(locals, target_, call_));
    std::vector<Bytes> results;
    size_t found = 0;
    for (uint32_t u = 0; u < steps_.size(); ++u) {
      if (const Bytes* const known = journal.find(u); known != nullptr) {
        results.push_back(*known);
        ++found;
        continue;
      }
      SHW_RETURN_IF_ERROR(steps_[u]->finish(lists[u]));
      SHW_ASSIGN_OR_RETURN(Bytes result, steps_[u]->execute(target_, call_));
      SHW_RETURN_IF_ERROR(journal.add(u, result, options_.durability == Durability::kFull));
      results.push_back(std::move(result));
    }
    SHW_ASSIGN_OR_RETURN(Report report, steps_[0]->commit(results, target_, call_));
    if (found > 0) {
      report.notes.push_back(
          fmt::format("{} of {} parts were there from an earlier call", found, steps_.size()));
    }
    return report;
  }

  Status make_steps(bool goes_on) {
    const auto count = static_cast<int32_t>(units_.size());
    for (int32_t u = 0; u < count; ++u) {
      Unit& unit = units_[static_cast<size_t>(u)];
      SHW_ASSIGN_OR_RETURN(
          std::unique_ptr<SaveSteps> steps,
          internal::make_save_steps(writing_, unit.state, save_options(), {u, count}));
      internal::SaveSource bytes;
      bytes.generation = generation_;
      bytes.goes_on = goes_on;
      bytes.open = [this, &unit](const plan::WriteList& list) -> std::unique_ptr<ContentSource> {
        unit.taken = std::make_unique<internal::TakenParts>();
        unit.list = &list;
        return std::make_unique<CheckpointSource>(*source_, *unit.state, unit.entries, list,
                                                  call_.control, unit.taken.get());
      };
      steps->set_source(std::move(bytes));
      steps_.push_back(std::move(steps));
    }
    return {};
  }

  // What was written is what was read. Of units that this call wrote the source is not read again.
  Status compare(Report* report) {
    if (!options_.compare) {
      report->notes.emplace_back("tensor digests were not compared");
      return {};
    }
    SHW_ASSIGN_OR_RETURN(const std::shared_ptr<const Checkpoint> made,
                         Checkpoint::open(writing_, target_));
    report->tensors = source_->catalog().tensors.size();
    if (units_.empty()) {
      for (size_t t = 0; t < report->tensors; ++t) SHW_RETURN_IF_ERROR(compare_tensor(*made, t));
    }
    for (const Unit& unit : units_) {
      if (unit.taken == nullptr) {
        for (const size_t t : unit.entries.tensors) SHW_RETURN_IF_ERROR(compare_tensor(*made, t));
        continue;
      }
      Status same =
          internal::read_back(writing_, *made, *unit.state, *unit.list, unit.taken->take(), call_);
      if (!same.ok()) {
        return std::move(same).annotated(
            fmt::format("what was written to '{}' could not be confirmed",
                        escape_text(format::shown_path(target_))));
      }
    }
    return {};
  }

  Status compare_tensor(const Checkpoint& made, size_t number) const {
    const plan::TensorRecord& record = source_->catalog().tensors[number];
    const std::string_view name = source_->catalog().texts.at(record.name);
    SHW_ASSIGN_OR_RETURN(const size_t other, made.find_tensor(name, record.rank));
    constexpr auto kAlgorithm = integrity::TensorDigestAlgorithm::kXxh3;
    SHW_ASSIGN_OR_RETURN(const auto wanted, source_->tensor_digest(number, kAlgorithm, call_));
    SHW_ASSIGN_OR_RETURN(const auto found, made.tensor_digest(other, kAlgorithm, call_));
    if (wanted == found) return {};
    return data_loss(fmt::format("tensor '{}' differs between '{}' and what was written to '{}'",
                                 escape_text(name), escape_text(format::shown_path(source_place_)),
                                 escape_text(format::shown_path(target_))))
        .with_detail("tensor", name)
        .with_detail("expected", to_hex(wanted))
        .with_detail("found", to_hex(found));
  }

  Runtime& writing_;
  const std::shared_ptr<const Checkpoint> source_;  // co-owned with who opened it
  const format::Location& source_place_;
  const FilePlacement* const placement_;
  const format::Location& target_;
  const ConvertOptions& options_;
  const CallContext& call_;
  const format::FormatWriter* format_ = nullptr;
  std::string generation_;
  std::vector<Unit> units_;
  std::vector<std::unique_ptr<SaveSteps>> steps_;
};

}  // namespace

Result<Report> convert(Runtime& reading, Runtime& writing, const format::Location& source,
                       const format::Location& target, const ConvertOptions& options,
                       const CallContext& call) {
  const int64_t begin = writing.clock().monotonic_ns();
  SHW_RETURN_IF_ERROR(check_places(source, target));
  SHW_RETURN_IF_ERROR(writing.formats().writer(options.format).status());
  SHW_ASSIGN_OR_RETURN(const auto opened, Checkpoint::open_to_convert(reading, source));
  Result<Report> report = convert(writing, opened, nullptr, target, options, call);
  if (report.ok()) report->elapsed_ns = writing.clock().monotonic_ns() - begin;
  return report;
}

Result<Report> convert(Runtime& writing, const std::shared_ptr<const Checkpoint>& source,
                       const FilePlacement* placement, const format::Location& target,
                       const ConvertOptions& options, const CallContext& call) {
  const int64_t begin = writing.clock().monotonic_ns();
  Result<Report> report = Conversion(writing, source, placement, target, options, call).run();
  if (report.ok()) report->elapsed_ns = writing.clock().monotonic_ns() - begin;
  return report;
}

}  // namespace shardwright::exec
