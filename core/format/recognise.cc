// SPDX-License-Identifier: Apache-2.0
//
// Recognition of what lies at a path. Native checkpoints are known by manifest.shw; other families
// by the names and first bytes that their own readers look for. Nothing but names and a few bytes
// is read before the format is known. Families that cannot be read are named.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "core/base/generation_id.h"
#include "core/base/text.h"
#include "core/format/format.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "core/format/safetensors/safetensors_checkpoint.h"

namespace shardwright::format {
namespace {

constexpr size_t kMaxLookedAt = 4096;  // names that recognition reads of a directory
constexpr std::string_view kModelBeginning = "model";
constexpr size_t kMaxNamesShown = 5;
constexpr size_t kSniffBytes = 16;

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
  if (begins_with("PK\x03\x04", 0))
    return name.ends_with(".npz") ? "a numpy archive" : "a torch.save archive";
  if (begins_with("\x80\x02", 0) || begins_with("\x80\x04", 0))
    return "a pickle (an old torch.save file)";
  if (name.ends_with(".ckpt") && begins_with("\x0a", 0)) return "a MindSpore checkpoint";
  if (begins_with("\x89HDF\r\n\x1a\n", 0)) return "an HDF5 file";
  return "";
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_file(const Location& location,
                                                          uint64_t size_bytes,
                                                          StoredMetadata* metadata) {
  const std::string where = shown_path(location);
  std::array<std::byte, kSniffBytes> buffer{};
  const auto head =
      std::span(buffer).first(static_cast<size_t>(std::min<uint64_t>(size_bytes, kSniffBytes)));
  SHW_ASSIGN_OR_RETURN(const std::unique_ptr<storage::StorageObject> object,
                       location.storage->open(location.prefix, storage::OpenOptions{}));
  SHW_RETURN_IF_ERROR(object->read_at(0, head));
  SHW_RETURN_IF_ERROR(object->close());
  if (head.size() >= 12 && std::memcmp(head.data() + 8, "SHWM", 4) == 0) {
    return invalid_argument(
               fmt::format("'{}' is the manifest of a checkpoint: open the directory that holds it",
                           escape_text(where)))
        .with_detail("file", where);
  }
  if (safetensors::is_safetensors_file(head, size_bytes, where)) {
    if (metadata != nullptr) metadata->format_name = safetensors::kFileFormat;
    return safetensors::open_file(location, metadata == nullptr ? nullptr : &metadata->bytes);
  }
  const std::string_view family = file_family(head, where);
  if (!family.empty()) return only_listed(where, family);
  return invalid_argument(fmt::format("'{}' is a file of {} bytes that is no known checkpoint "
                                      "format (looked at its first "
                                      "{} bytes: {}); a checkpoint of ours is a directory with {}",
                                      escape_text(where), size_bytes, head.size(), to_hex(head),
                                      native::kManifestName))
      .with_detail("file", where);
}

// Appends the names that begin so, relative to the location; at most kMaxLookedAt. Whether there
// are more.
Result<bool> append_names(const Location& location, std::string_view beginning,
                          std::vector<std::string>* names) {
  const std::string prefix = location.prefix.empty() ? "" : location.prefix + "/";
  size_t count = 0;
  Status listed =
      location.storage->list(prefix + std::string(beginning), [&](const storage::ListEntry& entry) {
        if (entry.key.size() > prefix.size()) names->push_back(entry.key.substr(prefix.size()));
        return ++count < kMaxLookedAt ? Status() : cancelled("enough names were seen");
      });
  const bool enough = count >= kMaxLookedAt;
  if (!listed.ok() && !enough) return listed;
  return enough;
}

// Names at and below the prefix, relative to it. Of many only the first; those that models have
// are looked for again, because folders beside them (of git) may hold more names than are read.
Result<std::vector<std::string>> look_around(const Location& location) {
  std::vector<std::string> names;
  SHW_ASSIGN_OR_RETURN(const bool more, append_names(location, "", &names));
  if (more) SHW_RETURN_IF_ERROR(append_names(location, kModelBeginning, &names).status());
  return names;
}

bool is_unfinished_name(std::string_view name) {
  const std::string_view top = name.substr(0, name.find('/'));
  const std::string temporary = fmt::format("{}.", native::kManifestName);
  return is_generation_id(top) ||
         (top.starts_with(temporary) && is_generation_id(top.substr(temporary.size())));
}

struct Family {
  std::string_view pattern;  // glob over a name relative to the prefix
  std::string_view text;     // "" = the files of safetensors, which can be read
};
constexpr Family kFamilies[] = {
    {"metadata.json", "a Megatron dist_checkpointing checkpoint"},
    {"latest_checkpointed_iteration.txt", "a Megatron run of checkpoints"},
    {".metadata", "a torch DCP checkpoint"},
    {"*.safetensors.index.json", ""},
    {"*.safetensors", ""},
    {"*.ckpt", "MindSpore checkpoint files"},
    {"*.distcp", "a torch DCP checkpoint without its .metadata"},
    {"*.pt", "torch.save files"},
    {"*.pth", "torch.save files"},
    {"pytorch_model*.bin", "torch.save files"},
};

// The first family with one of these names, null when there is none.
const Family* directory_family(std::span<const std::string> names) {
  for (const Family& family : kFamilies) {
    for (const std::string& name : names) {
      if (name.find('/') == std::string::npos && glob_matches(family.pattern, name)) return &family;
    }
  }
  return nullptr;
}

Status explain_directory(const Location& location, std::span<const std::string> names) {
  const std::string where = shown_path(location);
  const auto is_lock = [](const std::string& name) { return name == native::kLockName; };
  if (std::ranges::all_of(names, is_lock)) {
    return not_found(
               fmt::format("there is no checkpoint at '{}': nothing is there", escape_text(where)))
        .with_detail("file", where);
  }
  const Family* const family = directory_family(names);
  if (family != nullptr) return only_listed(where, family->text);
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
  if (std::ranges::any_of(names,
                          [](const std::string& name) { return glob_matches("step-*/*", name); })) {
    return invalid_argument(
               fmt::format(
                   "'{}' holds the checkpoints of a run, one per step: open one of its directories",
                   escape_text(where)))
        .with_detail("file", where)
        .with_detail("hint", "`shardwright info` lists the steps of a run");
  }
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

}  // namespace

const std::vector<std::string>& OpenedCheckpoint::notes() const {
  static const std::vector<std::string> kNone;
  return kNone;
}

std::string shown_path(const Location& location) {
  if (!location.display.empty()) return location.display;
  return location.prefix.empty() ? "." : location.prefix;
}

std::string stored_key(const Location& location, const FileInfo& file) {
  return file.is_location ? location.prefix : storage::join_key(location.prefix, file.key);
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_checkpoint(const Location& location,
                                                                StoredMetadata* metadata) {
  if (!location.prefix.empty()) SHW_RETURN_IF_ERROR(storage::check_key(location.prefix));
  const Result<bool> native = native::is_native(location);
  if (native.ok() && *native) {
    if (metadata != nullptr) metadata->format_name = native::kFormatName;
    return native::open_native(location, metadata == nullptr ? nullptr : &metadata->bytes);
  }
  // A path through a file is INVALID_ARGUMENT; what the file is can be told below. Other failures
  // are the caller's.
  if (!native.ok() && native.status().code() != StatusCode::kInvalidArgument)
    return native.status();
  const Result<storage::ObjectStat> file = location.storage->stat(location.prefix);
  if (file.ok()) return open_file(location, file->size_bytes, metadata);
  if (!native.ok()) return native.status();
  SHW_ASSIGN_OR_RETURN(const std::vector<std::string> names, look_around(location));
  const Family* const family = directory_family(names);
  if (family == nullptr || !family->text.empty()) return explain_directory(location, names);
  if (metadata != nullptr) metadata->format_name = safetensors::kDirectoryFormat;
  return safetensors::open_directory(location, names,
                                     metadata == nullptr ? nullptr : &metadata->bytes);
}

Result<std::shared_ptr<const OpenedCheckpoint>> open_shared(const Location& location,
                                                            const StoredMetadata& metadata) {
  if (metadata.format_name == native::kFormatName)
    return native::open_shared(location, metadata.bytes);
  if (metadata.format_name == safetensors::kFileFormat ||
      metadata.format_name == safetensors::kDirectoryFormat)
    return safetensors::open_shared(location, metadata.bytes);
  return unimplemented(
      fmt::format("another rank opened a checkpoint of format '{}', which this "
                  "one does not know",
                  escape_text(metadata.format_name, 64)));
}

}  // namespace shardwright::format
