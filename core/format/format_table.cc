// SPDX-License-Identifier: Apache-2.0
//
// Recognition of what lies at a path. A format with a marker is known by it; others by the names
// and first bytes that they look for. Nothing but names and a few bytes is read before the format
// is known. Families that cannot be read are named.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "core/base/generation_id.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "core/format/megatron/marker_file.h"
#include "core/format/megatron/megatron_format.h"
#include "core/format/megatron/publication.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "core/format/other_formats.h"
#include "core/format/run_directory.h"
#include "core/format/safetensors/safetensors_format.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_dcp/torch_dcp_format.h"
#include "core/format/torch_save/torch_save_format.h"

namespace shardwright::format {
namespace {

constexpr size_t kMaxLookedAt = 4096;  // names that recognition reads of a directory
constexpr std::string_view kModelBeginning = "model";
constexpr size_t kMaxNamesShown = 5;

Status only_listed(std::string_view where, std::string_view family) {
  return unimplemented(fmt::format("'{}' holds {}, which this version recognises but cannot read; "
                                   "convert it with the "
                                   "tool that wrote it, or load it there and save it here",
                                   escape_text(where), family))
      .with_detail("format", family);
}

// Family of a single file by its first bytes, "" when unknown.
std::string_view file_family(std::span<const std::byte> head, std::string_view name) {
  const auto begins_with = [&](std::string_view magic, size_t offset) {
    return head.size() >= offset + magic.size() &&
           std::memcmp(head.data() + offset, magic.data(), magic.size()) == 0;
  };
  if (begins_with("PK\x03\x04", 0) && name.ends_with(".npz")) return "a numpy archive";
  for (const std::string_view record : {"sys_info", "pickle", "storages", "tensors"}) {
    if (begins_with(record, 0) && begins_with(std::string_view("\0", 1), record.size()))
      return "a tar archive of torch before 0.1.10";
  }
  if (begins_with("\x80\x02", 0) || begins_with("\x80\x04", 0))
    return "a pickle that is no file of torch.save";
  if (name.ends_with(".ckpt") && begins_with("\x0a", 0)) return "a MindSpore checkpoint";
  if (begins_with("\x89HDF\r\n\x1a\n", 0)) return "an HDF5 file";
  return "";
}

// Why no format opens the file.
Status explain_file(const Sight& sight) {
  const std::string where = shown_path(sight.location);
  if (sight.head.size() >= 12 && std::memcmp(sight.head.data() + 8, "SHWM", 4) == 0) {
    return invalid_argument(
               fmt::format("'{}' is the manifest of a checkpoint: open the directory that holds it",
                           escape_text(where)))
        .with_detail("file", where);
  }
  const std::string_view family = file_family(sight.head, where);
  if (!family.empty()) return only_listed(where, family);
  return invalid_argument(fmt::format("'{}' is a file of {} bytes that is no known checkpoint "
                                      "format (looked at its first "
                                      "{} bytes: {}); a checkpoint of ours is a directory with {}",
                                      escape_text(where), sight.size_bytes, sight.head.size(),
                                      to_hex(sight.head), native::kManifestName))
      .with_detail("file", where);
}

Result<std::vector<std::byte>> read_head(const Location& location, uint64_t size_bytes) {
  std::vector<std::byte> head(
      static_cast<size_t>(std::min<uint64_t>(size_bytes, Sight::kHeadBytes)));
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       location.storage->open(location.prefix, storage::OpenOptions{}));
  SHW_RETURN_IF_ERROR(object->read_at(0, head));
  SHW_RETURN_IF_ERROR(object->close());
  return head;
}

// Appends the names that begin so, relative to the location; at most kMaxLookedAt. Whether there
// are more.
Result<bool> append_names(const Location& location, std::string_view beginning,
                          std::vector<std::string>* names) {
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  size_t count = 0;
  Status listed = location.storage->list(
      prefix + std::string(beginning), storage::kNoDelimiter, [&](const storage::ListEntry& entry) {
        if (entry.key.size() > prefix.size()) names->push_back(entry.key.substr(prefix.size()));
        return ++count < kMaxLookedAt ? Status() : cancelled("enough names were seen");
      });
  const bool enough = count >= kMaxLookedAt;
  if (!listed.ok() && !enough) return listed;
  return enough;
}

// Names at and below the prefix, relative to it, each once, ascending. Of many only the first;
// those that models have, and Megatron's marker, are looked for again, because folders beside them
// (of git, of arrays) may hold more names than are read.
Result<std::vector<std::string>> look_around(const Location& location) {
  std::vector<std::string> names;
  SHW_ASSIGN_OR_RETURN(const bool more, append_names(location, "", &names));
  if (!more) return names;
  for (const std::string_view beginning : {megatron::kMarkerName, kModelBeginning})
    SHW_RETURN_IF_ERROR(append_names(location, beginning, &names).status());
  // Those that were among the first, too, are one name each.
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

bool is_unfinished_name(std::string_view name) {
  const std::string_view top = name.substr(0, name.find('/'));
  const std::string temporary = fmt::format("{}.", native::kManifestName);
  return is_generation_id(top) ||
         (top.starts_with(temporary) && is_generation_id(top.substr(temporary.size()))) ||
         !megatron::generation_of_file(top).empty();
}

// What cannot be read, where no format has been recognised.
constexpr Family kFamilies[] = {
    {"*.ckpt", "MindSpore checkpoint files"},
    {"*.distcp", "a torch DCP checkpoint without its .metadata"},
};
constexpr Family kFamiliesOfSingleFiles[] = {
    {"*.pt", "torch.save files"},
    {"*.pth", "torch.save files"},
    {"pytorch_model*.bin", "torch.save files"},
};

// Each of the files is a checkpoint.
Status one_by_one(std::string_view where, std::string_view family) {
  return unimplemented(fmt::format("'{}' holds {}, which are opened one by one: name one of them",
                                   escape_text(where), family))
      .with_detail("format", family);
}

// The first family with one of the names, null when there is none.
const Family* family_of(const Sight& sight, std::span<const Family> families) {
  const auto found = std::ranges::find_if(
      families, [&](const Family& family) { return sight.has_name(family.pattern); });
  return found == families.end() ? nullptr : &*found;
}

// Why no format opens the directory.
Status explain_directory(const Sight& sight) {
  const std::string where = shown_path(sight.location);
  const std::span<const std::string> names = sight.names;
  const auto is_lock = [](const std::string& name) { return name == kLockName; };
  if (std::ranges::all_of(names, is_lock)) {
    return not_found(
               fmt::format("there is no checkpoint at '{}': nothing is there", escape_text(where)))
        .with_detail("file", where);
  }
  const auto unfinished = std::ranges::count_if(names, is_unfinished_name);
  const auto locks = std::ranges::count_if(names, is_lock);
  if (static_cast<size_t>(unfinished + locks) == names.size()) {
    return not_found(fmt::format("there is no checkpoint at '{}': it holds {} files of saves that "
                                 "were not committed, and "
                                 "no {}",
                                 escape_text(where), unfinished, native::kManifestName))
        .with_detail("file", where)
        .with_detail(
            "hint",
            "a first save is running or was killed here; after the next save `shardwright gc` "
            "removes what it left");
  }
  const Family* const family = family_of(sight, kFamilies);
  if (family != nullptr) return only_listed(where, family->text);
  const Family* const single = family_of(sight, kFamiliesOfSingleFiles);
  if (single != nullptr) return one_by_one(where, single->text);
  SHW_RETURN_IF_ERROR(explain_run(sight.location));
  std::string seen;
  for (const std::string& name : names.first(std::min(names.size(), kMaxNamesShown))) {
    seen += fmt::format("{}'{}'", seen.empty() ? "" : ", ", escape_text(name, 64));
  }
  return invalid_argument(fmt::format("'{}' is no known checkpoint format: looked for {}, "
                                      ".metadata, metadata.json and the "
                                      "names of safetensors, torch and MindSpore files, found {}{}",
                                      escape_text(where), native::kManifestName, seen,
                                      names.size() > kMaxNamesShown ? ", ..." : ""))
      .with_detail("file", where);
}

// What Megatron-core leaves of a save that did not end: all but its marker, which comes last.
bool is_incomplete_megatron(const Sight& sight) {
  return !sight.is_file && sight.has_name(torch_dcp::kIndexName) &&
         sight.has_name(megatron::kCommonName) && !sight.has_name(megatron::kMarkerName) &&
         family_of(sight, kFamiliesOfFiles) == nullptr;
}

Status explain_incomplete(const Sight& sight) {
  const std::string where = shown_path(sight.location);
  return not_found(fmt::format("the checkpoint at '{}' is incomplete: it has {} and {} of Megatron "
                               "and no {}, which is written last",
                               escape_text(where), torch_dcp::kIndexName, megatron::kCommonName,
                               megatron::kMarkerName))
      .with_detail("file", where)
      .with_detail("hint",
                   "a save is running or was killed here; --as torch_dcp (option `format`) opens "
                   "it without the common state");
}

// A file with its first bytes, or the names of a directory.
Result<Sight> look(const Location& location) {
  Sight sight{location};
  const Result<storage::ObjectStat> file = location.storage->stat(location.prefix);
  if (file.ok()) {
    sight.is_file = true;
    sight.size_bytes = file->size_bytes;
    SHW_ASSIGN_OR_RETURN(sight.head, read_head(location, file->size_bytes));
    return sight;
  }
  SHW_ASSIGN_OR_RETURN(sight.names, look_around(location));
  return sight;
}

}  // namespace

bool Sight::has_name(std::string_view pattern) const {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return name.find('/') == std::string::npos && glob_matches(pattern, name);
  });
}

FormatTable::FormatTable(const Clock& clock) {
  add(native::make_format());
  add(megatron::make_format(clock));  // before the format of the data that it holds
  add(torch_dcp::make_format(clock));
  add(safetensors::make_format());
  add(torch_save::make_format());
}

void FormatTable::add(std::shared_ptr<const Format> format) {
  formats_.push_back(std::move(format));
}

const Format* FormatTable::find(std::string_view name) const {
  const auto found =
      std::ranges::find(formats_, name, [](const auto& format) { return format->name(); });
  return found == formats_.end() ? nullptr : found->get();
}

Result<const FormatWriter*> FormatTable::writer(std::string_view name) const {
  const Format* const format = find(name);
  if (format != nullptr && format->writer() != nullptr) return format->writer();
  std::string offered;
  for (const auto& each : formats_) {
    if (each->writer() == nullptr) continue;
    offered += fmt::format("{}'{}'", offered.empty() ? "" : " or ", each->name());
  }
  return unimplemented(fmt::format("saving in format '{}' is not offered; use {}",
                                   escape_text(name), offered))
      .with_detail("parameter", "format");
}

const Format* FormatTable::recognise(const Sight& sight) const {
  if (!sight.is_file && family_of(sight, kFamiliesOfFiles) != nullptr) return nullptr;
  const auto found =
      std::ranges::find_if(formats_, [&](const auto& format) { return format->recognises(sight); });
  return found == formats_.end() ? nullptr : found->get();
}

// The format whose marker lies there, or null. A path through a file is INVALID_ARGUMENT; what the
// file is can be told by looking at it.
Result<const Format*> FormatTable::marked(const Location& location) const {
  for (const auto& format : formats_) {
    for (const std::string_view marker : format->markers()) {
      const Status there =
          location.storage->stat(storage::join_key(location.prefix, marker)).status();
      if (there.ok()) return format.get();
      if (there.code() != StatusCode::kNotFound) return there;
    }
  }
  return nullptr;
}

const Format* FormatTable::wanted(std::string_view as, const Sight& sight) const {
  const Format* const format = find(as);
  return format != nullptr && format->recognises(sight) ? format : nullptr;
}

Result<std::shared_ptr<const OpenedCheckpoint>> FormatTable::open(const Location& location,
                                                                  StoredMetadata* metadata,
                                                                  std::string_view as) const {
  return open_by(location, as, [&](const Format& format, const Sight& sight) {
    if (metadata != nullptr) metadata->format_name = format.name();
    return format.open(sight, metadata == nullptr ? nullptr : &metadata->bytes);
  });
}

Result<std::shared_ptr<const OpenedCheckpoint>> FormatTable::open_to_convert(
    const Location& location) const {
  return open_by(location, "", [](const Format& format, const Sight& sight) {
    return format.open_to_convert(sight);
  });
}

Result<std::shared_ptr<const OpenedCheckpoint>> FormatTable::open_by(const Location& location,
                                                                     std::string_view as,
                                                                     const Opener& open_as) const {
  if (!location.prefix.empty()) SHW_RETURN_IF_ERROR(storage::check_key(location.prefix));
  const Result<const Format*> marked_format = marked(location);
  const bool is_marked = marked_format.ok() && *marked_format != nullptr;
  if (is_marked && (as.empty() || as == (*marked_format)->name()))
    return open_as(**marked_format, Sight{location});
  if (!marked_format.ok() && marked_format.status().code() != StatusCode::kInvalidArgument)
    return marked_format.status();
  SHW_ASSIGN_OR_RETURN(const Sight sight, look(location));
  if (const Format* const chosen = wanted(as, sight); chosen != nullptr)
    return open_as(*chosen, sight);
  if (is_marked) return open_as(**marked_format, sight);
  if (!marked_format.ok() && !sight.is_file) return marked_format.status();
  if (is_incomplete_megatron(sight)) return explain_incomplete(sight);
  const Format* const format = recognise(sight);
  if (format != nullptr) return open_as(*format, sight);
  if (sight.is_file) return explain_file(sight);
  const Family* const family = family_of(sight, kFamiliesOfFiles);
  if (family != nullptr) {
    SHW_RETURN_IF_ERROR(explain_run(location));
    return only_listed(shown_path(location), family->text);
  }
  return explain_directory(sight);
}

Result<std::shared_ptr<const OpenedCheckpoint>> FormatTable::open_shared(
    const Location& location, const StoredMetadata& metadata) const {
  const Format* const format = find(metadata.format_name);
  if (format != nullptr) return format->open_shared(location, metadata.bytes);
  return unimplemented(
      fmt::format("another rank opened a checkpoint of format '{}', which this "
                  "one does not know",
                  escape_text(metadata.format_name, 64)));
}

Result<const Format*> FormatTable::format_at(const Location& location) const {
  SHW_ASSIGN_OR_RETURN(const Format* const by_marker, marked(location));
  if (by_marker != nullptr) return by_marker;
  SHW_ASSIGN_OR_RETURN(const Sight sight, look(location));
  const Format* const recognised = recognise(sight);
  return recognised != nullptr ? recognised : formats_.front().get();
}

}  // namespace shardwright::format
