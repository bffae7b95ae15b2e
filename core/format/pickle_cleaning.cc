// SPDX-License-Identifier: Apache-2.0
//
// An index is copied twice: once to read what it says without what is not known, and once more
// without the entries whose items are not clean either.
#include "core/format/pickle_cleaning.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_row.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_writer.h"
#include "core/format/pickle_survey.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/index_items.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_dcp/transformed_item.h"
#include "core/integrity/crc32.h"

namespace shardwright::format {
namespace {

using archive::ArchiveBytes;

constexpr uint64_t kCopyBytes = uint64_t{1} << 20;
constexpr uint64_t kMostPickleBytes = uint64_t{1} << 30;
constexpr size_t kHeadBytes = 4;
constexpr size_t kMostFiles = size_t{1} << 16;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// A new file, written from its beginning on.
class NewFile {
 public:
  static Result<NewFile> create(storage::Storage& storage, const std::string& key) {
    storage::OpenOptions options;
    options.mode = storage::OpenMode::kCreateVisible;
    SHW_ASSIGN_OR_RETURN(auto object, storage.open(key, options));
    return NewFile(std::move(object));
  }
  Status write(std::span<const std::byte> bytes) {
    if (bytes.empty()) return {};
    SHW_RETURN_IF_ERROR(object_->write_at(position_, bytes));
    position_ += bytes.size();
    return {};
  }
  uint64_t position() const { return position_; }
  Status finish() {
    SHW_RETURN_IF_ERROR(object_->sync());
    return object_->close();
  }

 private:
  explicit NewFile(std::unique_ptr<storage::StorageObject> object) : object_(std::move(object)) {}
  std::unique_ptr<storage::StorageObject> object_;
  uint64_t position_ = 0;
};

// The pickle without what is not known.
Result<archive::PickleCopy> clean(std::span<const std::byte> pickle, std::string_view file,
                                  archive::PickleProtocol protocol,
                                  const std::set<std::string, std::less<>>& left_out = {}) {
  archive::PickleOptions options;
  options.file = file;
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
  archive::PickleCopyRules rules;
  rules.protocol = protocol;
  rules.newer_names = false;
  rules.persistent_ids = true;
  rules.known = known_globals();
  const archive::PickleCopyRules::LeftOut everywhere[] = {{left_out}};
  rules.left_out = everywhere;
  archive::PickleCopy copy = archive::copy_pickle(data, data.root(), rules);
  if (copy.is_whole) return copy;
  return unimplemented(fmt::format("file '{}': its pickle holds itself in a way that cannot be "
                                   "written again",
                                   escape_text(file)))
      .with_detail("file", file);
}

class Cleaner {
 public:
  Cleaner(const Location& source, const Location& target, PickleCleaning* cleaning)
      : source_(source), target_(target), cleaning_(*cleaning) {}

  Status run() {
    const auto file = source_.storage->stat(source_.prefix);
    if (file.ok()) {
      const std::string path = shown_path(source_);
      SHW_ASSIGN_OR_RETURN(const bool is_one,
                           clean_file(source_.prefix, path.substr(path.rfind('/') + 1),
                                      file->size_bytes, target_.prefix));
      return is_one ? Status() : nothing();
    }
    SHW_ASSIGN_OR_RETURN(const auto names, list());
    if (names.empty())
      return not_found(fmt::format("there is nothing at '{}'", escape_text(shown_path(source_))))
          .with_detail("file", shown_path(source_));
    for (const auto& [name, size] : names) {
      if (name.ends_with(".distcp") || name.ends_with(".shw")) continue;
      const std::string from = storage::join_key(source_.prefix, name);
      const std::string to = storage::join_key(target_.prefix, name);
      SHW_RETURN_IF_ERROR(torch_dcp::is_index_name(name)
                              ? clean_index(from, name, to)
                              : clean_file(from, name, size, to).status());
    }
    return cleaning_.files.empty() ? nothing() : Status();
  }

 private:
  Status nothing() const {
    return unimplemented(fmt::format("'{}' holds no index of torch DCP, no file of torch.save and "
                                     "no pickle: there is nothing to clean",
                                     escape_text(shown_path(source_))))
        .with_detail("file", shown_path(source_));
  }

  Result<std::vector<std::pair<std::string, uint64_t>>> list() const {
    std::vector<std::pair<std::string, uint64_t>> names;
    const std::string prefix = source_.prefix.empty() ? "" : source_.prefix + "/";
    SHW_RETURN_IF_ERROR(
        source_.storage->list(prefix, storage::kNoDelimiter, [&](const storage::ListEntry& entry) {
          if (entry.key.size() > prefix.size() && entry.key.back() != '/')
            names.emplace_back(entry.key.substr(prefix.size()), entry.stat.size_bytes);
          return names.size() <= kMostFiles
                     ? Status()
                     : resource_exhausted("files", fmt::format("more than {} files", kMostFiles));
        }));
    return names;
  }

  // Whether it holds pickles; one that does not is left alone.
  Result<bool> clean_file(const std::string& key, const std::string& name, uint64_t size,
                          const std::string& to) {
    SHW_ASSIGN_OR_RETURN(const auto object, source_.storage->open(key, storage::OpenOptions{}));
    const ArchiveBytes bytes = archive::bytes_of(*object, 0, size, name);
    std::vector<std::byte> head(static_cast<size_t>(std::min<uint64_t>(size, kHeadBytes)));
    SHW_RETURN_IF_ERROR(bytes.read_range(0, head, "its first bytes"));
    const std::string_view begins(reinterpret_cast<const char*>(head.data()), head.size());
    if (begins == "PK\x03\x04") {
      SHW_ASSIGN_OR_RETURN(const archive::ZipDirectory directory,
                           archive::ZipDirectory::read(bytes));
      return clean_archive(bytes, directory, to);
    }
    if (!archive::is_marked_pickle(head)) return false;
    SHW_RETURN_IF_ERROR(clean_row(bytes, to));
    return true;
  }

  // Pickles in which nothing is replaced stay as they are, and so does what follows them.
  Status clean_row(const ArchiveBytes& bytes, const std::string& to) {
    SHW_ASSIGN_OR_RETURN(const archive::PickleRow row, archive::read_pickle_row(bytes));
    CleanedFile cleaned{bytes.file, 0, {}};
    SHW_ASSIGN_OR_RETURN(NewFile file, NewFile::create(*target_.storage, to));
    for (size_t i = 0; i < row.size(); ++i) {
      SHW_ASSIGN_OR_RETURN(const archive::PickleCopy copy,
                           clean(row.pickle(i), bytes.file, archive::PickleProtocol::k2));
      cleaned.replaced += copy.replaced;
      SHW_RETURN_IF_ERROR(
          file.write(copy.replaced == 0 ? row.pickle(i) : bytes_of_text(copy.bytes)));
    }
    SHW_RETURN_IF_ERROR(
        copy_range(bytes, row.begins.back(), bytes.size_bytes - row.begins.back(), &file, nullptr));
    cleaning_.files.push_back(std::move(cleaned));
    return file.finish();
  }

  static Status copy_range(const ArchiveBytes& bytes, uint64_t begin, uint64_t size, NewFile* file,
                           uint32_t* crc) {
    std::vector<std::byte> step(static_cast<size_t>(std::min(size, kCopyBytes)));
    for (uint64_t done = 0; done < size;) {
      const auto part =
          std::span(step).first(static_cast<size_t>(std::min<uint64_t>(step.size(), size - done)));
      SHW_RETURN_IF_ERROR(bytes.read_range(begin + done, part, "a payload"));
      if (crc != nullptr) *crc = integrity::crc32(*crc, part);
      SHW_RETURN_IF_ERROR(file->write(part));
      done += part.size();
    }
    return {};
  }

  // The records in their order, as torch.save writes them.
  Result<bool> clean_archive(const ArchiveBytes& bytes, const archive::ZipDirectory& directory,
                             const std::string& to) {
    CleanedFile cleaned{bytes.file, 0, {}};
    std::vector<std::optional<std::string>> pickles(directory.size());
    archive::ZipWriter writer(archive::ZipFraming::kTorch);
    bool has_pickles = false;
    for (size_t i = 0; i < directory.size(); ++i) {
      const archive::ZipEntry entry = directory.entry(i);
      uint64_t size = entry.size_bytes;
      if (entry.name.ends_with(".pkl")) {
        SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle,
                             archive::read_payload(bytes, entry, kMostPickleBytes));
        SHW_ASSIGN_OR_RETURN(archive::PickleCopy copy,
                             clean(pickle, bytes.file, archive::PickleProtocol::k2));
        has_pickles = true;
        cleaned.replaced += copy.replaced;
        size = copy.bytes.size();
        pickles[i] = std::move(copy.bytes);
      }
      SHW_RETURN_IF_ERROR(writer.add(entry.name, size).status());
    }
    if (!has_pickles) return false;
    SHW_ASSIGN_OR_RETURN(NewFile file, NewFile::create(*target_.storage, to));
    for (size_t i = 0; i < directory.size(); ++i) {
      SHW_RETURN_IF_ERROR(file.write(writer.header(i)));
      uint32_t crc = 0;
      if (pickles[i].has_value()) {
        crc = integrity::crc32(0, bytes_of_text(*pickles[i]));
        SHW_RETURN_IF_ERROR(file.write(bytes_of_text(*pickles[i])));
      } else {
        SHW_ASSIGN_OR_RETURN(const uint64_t payload,
                             archive::locate_payload(bytes, directory.entry(i)));
        SHW_RETURN_IF_ERROR(copy_range(bytes, payload, directory.entry(i).size_bytes, &file, &crc));
      }
      writer.set_crc(i, crc);
      SHW_RETURN_IF_ERROR(file.write(writer.trailer(i)));
    }
    SHW_RETURN_IF_ERROR(file.write(writer.end()));
    cleaning_.files.push_back(std::move(cleaned));
    SHW_RETURN_IF_ERROR(file.finish());
    return true;
  }

  Status clean_index(const std::string& key, const std::string& name, const std::string& to) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                         storage::read_all(*source_.storage, key, kMostPickleBytes));
    SHW_ASSIGN_OR_RETURN(const archive::PickleCopy readable,
                         clean(bytes, name, archive::PickleProtocol::k4));
    SHW_ASSIGN_OR_RETURN(const torch_dcp::DcpIndex index,
                         torch_dcp::decode_index(bytes_of_text(readable.bytes), name));
    const std::set<std::string, std::less<>> left_out =
        unclean_entries(index, std::string_view(key).substr(0, key.size() - own_name(key).size()));
    SHW_ASSIGN_OR_RETURN(const archive::PickleCopy copy,
                         clean(bytes, name, archive::PickleProtocol::k4, left_out));
    SHW_ASSIGN_OR_RETURN(NewFile file, NewFile::create(*target_.storage, to));
    SHW_RETURN_IF_ERROR(file.write(bytes_of_text(copy.bytes)));
    cleaning_.files.push_back({name, copy.replaced, {left_out.begin(), left_out.end()}});
    return file.finish();
  }

  static std::string_view own_name(std::string_view key) { return key.substr(key.rfind('/') + 1); }

  // Names of entries whose items hold something that is not known, or cannot be read.
  std::set<std::string, std::less<>> unclean_entries(const torch_dcp::DcpIndex& index,
                                                     std::string_view folder) const {
    std::set<std::string, std::less<>> names;
    std::unique_ptr<storage::StorageObject> object;
    uint32_t open_file = torch_dcp::ItemPlace::kNowhere;
    for (const torch_dcp::IndexItem& item : torch_dcp::items_of(index)) {
      if (item.place.file == torch_dcp::ItemPlace::kNowhere) continue;  // of no elements
      if (item.place.file != open_file) {
        open_file = item.place.file;
        auto opened = source_.storage->open(std::string(folder) + index.files[open_file], {});
        object = opened.ok() ? std::move(*opened) : nullptr;
      }
      const Result<bool> is_clean =
          object == nullptr ? Result<bool>(false) : has_clean_item(index, item, *object);
      if (!is_clean.ok() || !*is_clean) names.insert(std::string(item.entry));
    }
    return names;
  }

  static Result<bool> has_clean_item(const torch_dcp::DcpIndex& index,
                                     const torch_dcp::IndexItem& item,
                                     storage::StorageObject& object) {
    const torch_dcp::ItemPlace& place = item.place;
    const std::string& file = index.files[place.file];
    SHW_ASSIGN_OR_RETURN(const storage::ObjectStat stat, object.stat());
    if (place.offset > stat.size_bytes || place.size_bytes > stat.size_bytes - place.offset)
      return false;
    const ArchiveBytes bytes = archive::bytes_of(object, place.offset, place.size_bytes, file);
    if (place.transform == 0) return is_clean(survey_item(bytes, ""));
    SHW_RETURN_IF_ERROR(
        torch_dcp::check_transforms(index.transforms[place.transform - 1], file, place.offset));
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> unpacked,
                         torch_dcp::unpack_item(bytes, item.most_bytes));
    return is_clean(survey_item(archive::bytes_of(unpacked, place.offset, file), ""));
  }
  static bool is_clean(const PickleSurvey& survey) {
    return survey.unknown_count == 0 && survey.failure_count == 0;
  }

  const Location& source_;
  const Location& target_;
  PickleCleaning& cleaning_;
};

}  // namespace

Result<PickleCleaning> clean_pickles(const Location& source, const Location& target) {
  PickleCleaning cleaning;
  cleaning.path = shown_path(source);
  cleaning.target = shown_path(target);
  SHW_RETURN_IF_ERROR(Cleaner(source, target, &cleaning).run());
  return cleaning;
}

std::string PickleCleaning::to_json() const {
  JsonWriter json;
  json.begin_object();
  json.key("schema").number(1);
  json.key("operation").text("clean");
  json.key("path").text(path);
  json.key("target").text(target);
  json.key("files").begin_array();
  for (const CleanedFile& file : files) {
    json.begin_object();
    json.key("file").text(file.file);
    json.key("replaced").number_unsigned(file.replaced);
    json.key("left_out").begin_array();
    for (const std::string& name : file.left_out) json.text(name);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("notes").begin_array();
  for (const std::string& note : notes) json.text(note);
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace shardwright::format
