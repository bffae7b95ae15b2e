// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_save/value_entries.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/path.h"

namespace shardwright::format::torch_save {
namespace {

using archive::PickleCursor;
using archive::PickleData;
using archive::PickleKind;
using archive::PickleRef;
using archive::TorchGlobal;

constexpr size_t kMaxDepth = 256;  // parts of a path
// Entries, bytes of names and of objects that a pickle of so many bytes may have: shared containers
// are counted each time.
constexpr uint64_t kEntriesPerByte = 1;
constexpr uint64_t kTextPerByte = 64;
constexpr uint64_t kFreeEntries = 1024;
constexpr uint64_t kFreeTextBytes = uint64_t{1} << 20;
constexpr uint64_t kObjectBytesPerByte = 4;
constexpr uint64_t kFreeObjectBytes = uint64_t{1} << 20;
constexpr size_t kMaxAttributes = 16;  // of a dict, that are looked at
constexpr std::string_view kMetadataAttribute = "_metadata";

class EntryWalk {
 public:
  EntryWalk(const PickleData& data, std::string_view file, uint64_t pickle_bytes)
      : data_(data),
        file_(file),
        entries_left_(std::min(kMaxEntries, kFreeEntries + pickle_bytes * kEntriesPerByte)),
        text_left_(kFreeTextBytes + pickle_bytes * kTextPerByte),
        object_bytes_left_(kFreeObjectBytes + pickle_bytes * kObjectBytesPerByte) {}

  Result<ValueEntries> run() {
    SHW_RETURN_IF_ERROR(walk(data_.root()));
    return std::move(result_);
  }

 private:
  // Bounded by the depth of paths. NOLINTNEXTLINE(misc-no-recursion)
  Status walk(PickleRef value) {
    Result<std::optional<archive::TorchTensor>> tensor = archive::torch_tensor(data_, value, file_);
    if (!tensor.ok() && tensor.status().code() != StatusCode::kUnimplemented)
      return tensor.status().annotated(fmt::format("read entry '{}'", escape_text(name_, 256)));
    if (!tensor.ok()) return add_refused(value, tensor.status());
    if (tensor->has_value()) {
      SHW_RETURN_IF_ERROR(begin_entry());
      result_.entries.back().tensor = std::move(**tensor);
      return {};
    }
    const PickleKind kind = data_.kind(value);
    if (kind == PickleKind::kTuple && !data_.tuple(value).empty())
      return walk_tuple(data_.tuple(value));
    if (kind == PickleKind::kList && data_.part_count(value) > 0) return walk_list(value);
    if (is_mapping(value) && is_walkable(value)) return walk_mapping(value);
    return add_object(value);
  }

  bool is_mapping(PickleRef value) const {
    if (data_.kind(value) == PickleKind::kDict) return data_.part_count(value) > 0;
    if (data_.kind(value) != PickleKind::kObject) return false;
    // What stands in the arguments of the call, but for a factory, is no entry that would be seen
    // here: such a one stays whole.
    const size_t arguments = data_.tuple(data_.arguments(value)).size();
    PickleCursor parts = data_.parts(value);
    if (PickleRef part; parts.next(&part)) return false;
    const int32_t known = data_.known(value);
    return (known == static_cast<int32_t>(TorchGlobal::kOrderedDict) && arguments == 0) ||
           (known == static_cast<int32_t>(TorchGlobal::kDefaultDict) && arguments <= 1);
  }

  // Remembered: a mapping may stand in the value many times.
  bool is_walkable(PickleRef value) {
    const auto [known, added] = walkable_.try_emplace(value.bits, false);
    if (added) known->second = has_plain_keys(value);
    return known->second;
  }

  // Whether there are keys, and each can be a part of a path.
  bool has_plain_keys(PickleRef value) const {
    PickleCursor pairs = data_.pairs(value);
    bool any = false;
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part); any = true) {
      const PickleKind kind = data_.kind(key);
      const bool is_plain = kind == PickleKind::kInteger || kind == PickleKind::kBool ||
                            (kind == PickleKind::kText && is_valid_utf8(data_.text(key)) &&
                             data_.text(key).size() <= kMaxNameBytes);
      if (!is_plain) return false;
    }
    return any;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  Status walk_below(PathPart part, PickleRef value) {
    if (parts_.size() == kMaxDepth)
      return data_loss(fmt::format("file '{}': its value is nested deeper than {} levels, or holds "
                                   "itself",
                                   escape_text(file_), kMaxDepth))
          .with_detail("file", file_);
    const size_t size = name_.size();
    if (!parts_.empty()) name_ += '.';
    name_ += part.text;
    parts_.push_back(std::move(part));
    Status status = walk(value);
    parts_.pop_back();
    name_.resize(size);
    return status;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  Status walk_tuple(std::span<const PickleRef> values) {
    for (size_t i = 0; i < values.size(); ++i)
      SHW_RETURN_IF_ERROR(walk_below({PathPartKind::kPosition, fmt::to_string(i)}, values[i]));
    return {};
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  Status walk_list(PickleRef value) {
    PickleCursor parts = data_.parts(value);
    size_t i = 0;
    for (PickleRef part; parts.next(&part); ++i)
      SHW_RETURN_IF_ERROR(walk_below({PathPartKind::kPosition, fmt::to_string(i)}, part));
    return {};
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  Status walk_mapping(PickleRef value) {
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      PathPart path;
      if (data_.kind(key) == PickleKind::kInteger) {
        path = {PathPartKind::kInteger, fmt::to_string(data_.integer(key))};
      } else if (data_.kind(key) == PickleKind::kBool) {
        path.text = data_.boolean(key) ? "True" : "False";
      } else {
        path.text = std::string(data_.text(key));
      }
      SHW_RETURN_IF_ERROR(walk_below(std::move(path), part));
    }
    if (data_.kind(value) == PickleKind::kObject) take_attributes(data_.state(value));
    return {};
  }

  // What a module's state dict says of itself. No entry: a dict has no place for it.
  void take_attributes(PickleRef state) {
    if (data_.kind(state) == PickleKind::kAbsent || data_.kind(state) == PickleKind::kNone) return;
    bool all_taken = data_.kind(state) == PickleKind::kDict;
    if (all_taken) {
      PickleCursor pairs = data_.pairs(state);
      // The first few alone: a state may be that of many dicts.
      size_t seen = 0;
      for (PickleRef key, value; seen < kMaxAttributes && pairs.next(&key) && pairs.next(&value);
           ++seen) {
        const bool is_metadata =
            data_.kind(key) == PickleKind::kText && data_.text(key) == kMetadataAttribute;
        if (!is_metadata || !take_metadata(value)) all_taken = false;
      }
      all_taken = all_taken && seen == data_.part_count(state);
    }
    if (!all_taken)
      add_note(fmt::format("'{}' is a dict with attributes, which are not given",
                           escape_text(name_, 128)));
  }

  bool take_metadata(PickleRef value) {
    archive::ExportedValue text = archive::export_value(data_, value, &object_bytes_left_);
    if (text.content_type != archive::kJsonType) return false;
    const std::string name =
        fmt::format("{}{}{}", name_, parts_.empty() ? "" : ".", kMetadataAttribute);
    result_.metadata[name] = std::move(text.bytes);
    return true;
  }

  // Of a value that ends here.
  Status begin_entry() {
    const std::string path = parts_.empty() ? std::string() : format_path(parts_);
    const uint64_t text = name_.size() + path.size();
    if (entries_left_ == 0 || text_left_ < text)
      return resource_exhausted("pickle",
                                fmt::format("file '{}': its value has too many entries for a "
                                            "pickle of its size: containers stand in it again and "
                                            "again",
                                            escape_text(file_)))
          .with_detail("file", file_);
    if (name_.size() > kMaxNameBytes)
      return unimplemented(fmt::format("file '{}': the keys down to '{}' make a name of more than "
                                       "{} bytes",
                                       escape_text(file_), escape_text(name_, 64), kMaxNameBytes))
          .with_detail("file", file_);
    --entries_left_;
    text_left_ -= text;
    ValueEntry entry;
    entry.name = name_;
    entry.path = path;
    result_.entries.push_back(std::move(entry));
    return {};
  }

  Status add_object(PickleRef value) {
    SHW_RETURN_IF_ERROR(begin_entry());
    ValueEntry& entry = result_.entries.back();
    entry.object = archive::export_value(data_, value, &object_bytes_left_);
    if (entry.object.content_type == archive::kOpaqueType)
      add_note(
          fmt::format("'{}' is a {} whose content cannot be given; tensors inside of it are "
                      "not listed",
                      escape_text(name_, 128), archive::class_name(data_, value)));
    return {};
  }

  Status add_refused(PickleRef value, const Status& why) {
    SHW_RETURN_IF_ERROR(begin_entry());
    uint64_t nothing = 0;
    result_.entries.back().object = archive::export_value(data_, value, &nothing);
    add_note(
        fmt::format("'{}' is a tensor of the form {}, which is listed as an object and cannot "
                    "be read",
                    escape_text(name_, 128), why.detail("form")));
    return {};
  }

  void add_note(std::string note) {
    if (result_.notes.size() < kMaxEntryNotes) result_.notes.push_back(std::move(note));
  }

  const PickleData& data_;
  const std::string_view file_;
  uint64_t entries_left_;
  uint64_t text_left_;
  uint64_t object_bytes_left_;
  std::string name_;  // of the value that is looked at
  std::vector<PathPart> parts_;
  std::map<uint32_t, bool> walkable_;  // mappings by their references
  ValueEntries result_;
};

}  // namespace

Result<ValueEntries> entries_of(const PickleData& data, std::string_view file,
                                uint64_t pickle_bytes) {
  return EntryWalk(data, file, pickle_bytes).run();
}

}  // namespace shardwright::format::torch_save
