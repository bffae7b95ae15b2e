// SPDX-License-Identifier: Apache-2.0
//
// Files are known by their first bytes, as unpicklers know them: torch takes what does not begin as
// a zip archive for a row of pickles. In archives the central directory counts, as it does there.
#include "core/format/pickle_survey.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/base/text.h"
#include "core/format/archive/harmless_globals.h"
#include "core/format/archive/pickle_row.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/format.h"
#include "core/format/native/native_format.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/index_classes.h"
#include "core/format/torch_dcp/index_items.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/format/torch_dcp/transformed_item.h"

namespace shardwright::format {
namespace {

using archive::ArchiveBytes;

constexpr uint64_t kMaxFiles = uint64_t{1} << 20;
constexpr uint64_t kMaxPickleBytes = uint64_t{1} << 30;
constexpr uint64_t kMostHeadBytes = 16;
constexpr std::string_view kScriptFolder = "code/";

bool is_zip(std::span<const std::byte> head) {
  return head.size() >= 4 && std::memcmp(head.data(), "PK\x03\x04", 4) == 0;
}

// Files that are unpickled for what they are called.
bool is_called_pickle(std::string_view name) {
  for (const std::string_view end :
       {".pkl", ".pickle", ".pt", ".pth", ".bin", ".metadata", ".p", ".dat"}) {
    if (name.ends_with(end)) return true;
  }
  return false;
}

// Gathers what pickles say.
class Findings {
 public:
  explicit Findings(PickleSurvey* survey) : survey_(*survey) {}

  // place: of the first byte. shift: whether offsets in it count in the file.
  archive::PickleScan add(std::span<const std::byte> pickle, SurveyPlace place) {
    archive::PickleScan scan = archive::scan_pickle(pickle, place.file, known_globals());
    ++survey_.pickles;
    for (archive::PickleImport& import : scan.imports) add_import(std::move(import), place);
    return scan;
  }
  void fail(SurveyPlace place, const Status& why) {
    ++survey_.failure_count;
    const std::string offset(why.detail("offset"));
    if (!offset.empty()) place.offset = std::strtoull(offset.c_str(), nullptr, 10);
    if (survey_.failures.size() < kMaxSurveyed)
      survey_.failures.push_back({std::move(place), std::string(why.message())});
  }
  void note(std::string text) { survey_.notes.push_back(std::move(text)); }
  PickleSurvey& survey() { return survey_; }

 private:
  void add_import(archive::PickleImport import, const SurveyPlace& pickle) {
    SurveyedGlobal global{pickle,          std::move(import.module), std::move(import.name),
                          false,           import.imports,           import.calls,
                          import.instances};
    global.place.offset += import.offset;
    global.is_known = is_known_import({global.module, global.name, 0, import.is_known,
                                       import.imports, import.calls, import.instances});
    if (!global.is_known) ++survey_.unknown_count;
    if (!global.is_known && survey_.globals.size() - known_.size() >= kMaxSurveyed) return;
    if (global.is_known) {
      const auto [seen, added] =
          known_.try_emplace({global.module, global.name}, survey_.globals.size());
      if (!added) {
        SurveyedGlobal& first = survey_.globals[seen->second];
        first.imports += global.imports;
        first.calls += global.calls;
        first.instances += global.instances;
        return;
      }
    }
    survey_.globals.push_back(std::move(global));
  }

  PickleSurvey& survey_;
  std::map<std::pair<std::string, std::string>, size_t> known_;  // numbers in the survey
};

class Surveyor {
 public:
  Surveyor(Location location, PickleSurvey* survey)
      : location_(std::move(location)), findings_(survey) {}

  Status run() {
    const auto file = location_.storage->stat(location_.prefix);
    if (file.ok()) {
      const std::string path = shown_path(location_);
      look_at_file(location_.prefix, path.substr(path.rfind('/') + 1), file->size_bytes);
      return {};
    }
    SHW_RETURN_IF_ERROR(list());
    if (names_.empty())
      return not_found(fmt::format("there is nothing at '{}'", escape_text(shown_path(location_))))
          .with_detail("file", shown_path(location_));
    look_at_indexes();
    look_at_native_objects();
    for (const auto& [name, size] : names_) {
      if (!torch_dcp::is_index_name(name) && !name.ends_with(".distcp") && !name.ends_with(".shw"))
        look_at_file(key_of(name), name, size);
    }
    return {};
  }

  // What torch.load takes.
  void look_at_item(const ArchiveBytes& bytes, const SurveyPlace& place) {
    std::vector<std::byte> head(static_cast<size_t>(std::min(bytes.size_bytes, kMostHeadBytes)));
    const Status read = bytes.read_range(0, head, "its first bytes");
    if (!read.ok()) return findings_.fail(place, read);
    if (is_zip(head)) return look_at_archive(bytes, place);
    look_at_row(bytes, place, true);
  }

 private:
  std::string key_of(const std::string& name) const {
    return storage::join_key(location_.prefix, name);
  }

  Status list() {
    const std::string prefix = location_.prefix.empty() ? "" : location_.prefix + "/";
    bool more = false;
    Status listed = location_.storage->list(
        prefix, storage::kNoDelimiter, [&](const storage::ListEntry& entry) {
          if (entry.key.size() <= prefix.size() || entry.key.back() == '/') return Status();
          more = names_.size() == kMaxFiles;
          if (more) return cancelled("enough");
          names_.emplace(entry.key.substr(prefix.size()), entry.stat.size_bytes);
          return Status();
        });
    if (more) findings_.note(fmt::format("only the first {} files were looked at", kMaxFiles));
    return more ? Status() : listed;
  }

  void look_at_file(const std::string& key, const std::string& name, uint64_t size) {
    SurveyPlace place{name, "", 0};
    ++findings_.survey().files;
    auto object = location_.storage->open(key, storage::OpenOptions{});
    if (!object.ok()) return findings_.fail(place, object.status());
    const ArchiveBytes bytes = archive::bytes_of(**object, 0, size, name);
    std::vector<std::byte> head(static_cast<size_t>(std::min(size, kMostHeadBytes)));
    const Status read = bytes.read_range(0, head, "its first bytes");
    if (!read.ok()) return findings_.fail(place, read);
    if (is_zip(head)) return look_at_archive(bytes, place);
    if (archive::is_marked_pickle(head) || (is_called_pickle(name) && size > 0))
      look_at_row(bytes, place, archive::is_marked_pickle(head));
  }

  void look_at_archive(const ArchiveBytes& bytes, const SurveyPlace& place) {
    const auto directory = archive::ZipDirectory::read(bytes);
    if (!directory.ok()) return findings_.fail(place, directory.status());
    bool has_code = false;
    for (size_t i = 0; i < directory->size(); ++i) {
      const archive::ZipEntry entry = directory->entry(i);
      has_code = has_code || entry.name.find(kScriptFolder) != std::string_view::npos;
      if (!entry.name.ends_with(".pkl")) continue;
      SurveyPlace record = place;
      record.record = place.record.empty() ? std::string(entry.name)
                                           : fmt::format("{}, {}", place.record, entry.name);
      look_at_record(bytes, entry, std::move(record));
    }
    if (has_code)
      findings_.note(fmt::format("'{}' holds a model with its code, which torch.jit.load runs",
                                 escape_text(place.file)));
  }

  // Its checksum does not matter: torch unpickles what has a wrong one.
  void look_at_record(const ArchiveBytes& bytes, const archive::ZipEntry& entry,
                      SurveyPlace place) {
    const auto payload = archive::locate_payload(bytes, entry);
    if (!payload.ok()) return findings_.fail(std::move(place), payload.status());
    if (entry.size_bytes > kMaxPickleBytes)
      return findings_.fail(std::move(place), too_long(entry.size_bytes));
    std::vector<std::byte> pickle(static_cast<size_t>(entry.size_bytes));
    const Status read = bytes.read_range(*payload, pickle, "a pickle");
    if (!read.ok()) return findings_.fail(std::move(place), read);
    place.offset = bytes.file_offset + *payload;
    const archive::PickleScan scan = findings_.add(pickle, place);
    if (!scan.ended.ok()) fail_in_pickle(scan, place);
  }

  static Status too_long(uint64_t bytes) {
    return resource_exhausted("pickle", fmt::format("a pickle of {} bytes is more than the {} that "
                                                    "are looked at",
                                                    bytes, kMaxPickleBytes));
  }

  void fail_in_pickle(const archive::PickleScan& scan, SurveyPlace place) {
    const std::string offset(scan.ended.detail("offset"));
    place.offset += offset.empty() ? scan.end : std::strtoull(offset.c_str(), nullptr, 10);
    findings_.fail(std::move(place), data_loss(std::string(scan.ended.message())));
  }

  // Pickles one behind the other. must_be: whoever reads this takes it for that, whatever it is.
  void look_at_row(const ArchiveBytes& bytes, const SurveyPlace& place, bool must_be) {
    const auto row = archive::read_pickle_row(bytes);
    if (!row.ok()) return findings_.fail(place, row.status());
    // A file that is only called so, and is none.
    if (!must_be && !row->names_something && !row->is_whole && row->size() == 1) return;
    for (size_t i = 0; i < row->size(); ++i) {
      SurveyPlace pickle = place;
      pickle.offset = bytes.file_offset + row->begins[i];
      const archive::PickleScan scan =
          findings_.add(std::span<const std::byte>(row->head).subspan(row->begins[i]), pickle);
      if (!scan.ended.ok()) fail_in_pickle(scan, pickle);
    }
  }

  // Indexes of torch DCP, and the items that they name.
  void look_at_indexes() {
    std::vector<std::string> reached;
    for (const auto& [name, size] : names_) {
      if (!torch_dcp::is_index_name(name)) continue;
      ++findings_.survey().files;
      look_at_index(name, &reached);
    }
    uint64_t left = 0;
    std::string first;
    for (const auto& [name, size] : names_) {
      if (!name.ends_with(".distcp") || std::ranges::find(reached, name) != reached.end()) continue;
      if (left++ == 0) first = name;
    }
    if (left > 0)
      findings_.note(
          fmt::format("{} data files ('{}' first) are named by no index that can be read "
                      "and were not looked at",
                      left, escape_text(first)));
  }

  void look_at_index(const std::string& name, std::vector<std::string>* reached) {
    const SurveyPlace place{name, "", 0};
    const auto bytes = storage::read_all(*location_.storage, key_of(name), kMaxPickleBytes);
    if (!bytes.ok()) return findings_.fail(place, bytes.status());
    const archive::PickleScan scan = findings_.add(*bytes, place);
    if (!scan.ended.ok()) return fail_in_pickle(scan, place);
    const auto index = torch_dcp::decode_index(*bytes, name);
    if (!index.ok()) {
      // What is not known in it is listed; the rest is damage.
      if (index.status().detail("unsafe").empty()) findings_.fail(place, index.status());
      return;
    }
    look_at_items(name, *index, reached);
  }

  void look_at_items(const std::string& index_name, const torch_dcp::DcpIndex& index,
                     std::vector<std::string>* reached) {
    const size_t cut = index_name.rfind('/');
    const std::string folder = cut == std::string::npos ? "" : index_name.substr(0, cut + 1);
    std::unique_ptr<storage::StorageObject> object;
    uint32_t open_file = torch_dcp::ItemPlace::kNowhere;
    uint64_t file_bytes = 0;
    for (const torch_dcp::IndexItem& item : torch_dcp::items_of(index)) {
      if (item.place.file == torch_dcp::ItemPlace::kNowhere) continue;
      const std::string name = folder + index.files[item.place.file];
      SurveyPlace place{name, std::string(item.entry), item.place.offset};
      if (item.place.file != open_file) {
        open_file = item.place.file;
        reached->push_back(name);
        ++findings_.survey().files;
        object = open_data(name, &file_bytes);
      }
      if (object == nullptr) continue;
      if (item.place.offset > file_bytes ||
          item.place.size_bytes > file_bytes - item.place.offset) {
        findings_.fail(std::move(place), data_loss("an item of the index ends behind its file"));
        continue;
      }
      const ArchiveBytes bytes =
          archive::bytes_of(*object, item.place.offset, item.place.size_bytes, name);
      if (item.place.transform == 0) {
        look_at_item(bytes, place);
      } else {
        look_at_transformed(bytes, index.transforms[item.place.transform - 1], item, place);
      }
    }
  }

  std::unique_ptr<storage::StorageObject> open_data(const std::string& name, uint64_t* bytes) {
    auto object = location_.storage->open(key_of(name), storage::OpenOptions{});
    auto stat = object.ok() ? (*object)->stat() : Result<storage::ObjectStat>(object.status());
    if (!stat.ok()) {
      findings_.fail({name, "", 0}, stat.status());
      return nullptr;
    }
    *bytes = stat->size_bytes;
    return std::move(*object);
  }

  void look_at_transformed(const ArchiveBytes& bytes, std::string_view transforms,
                           const torch_dcp::IndexItem& item, const SurveyPlace& place) {
    const Status known = torch_dcp::check_transforms(transforms, place.file, item.place.offset);
    if (!known.ok()) return findings_.fail(place, known);
    const auto unpacked = torch_dcp::unpack_item(bytes, item.most_bytes);
    if (!unpacked.ok()) return findings_.fail(place, unpacked.status());
    // Places in it are none of the file, so the item's own counts.
    look_at_item(archive::bytes_of(*unpacked, item.place.offset, place.file), place);
  }

  // Byte objects of ours that are pickles.
  void look_at_native_objects() {
    if (!names_.contains(std::string(native::kManifestName))) return;
    ++findings_.survey().files;
    const auto opened = FormatTable().open(location_);
    if (!opened.ok())
      return findings_.fail({std::string(native::kManifestName), "", 0}, opened.status());
    const plan::Catalog& catalog = (*opened)->catalog();
    for (size_t i = 0; i < catalog.objects.size(); ++i) {
      const std::string_view type = catalog.texts.at(catalog.objects[i].content_type);
      if (type.find("pickle") == std::string_view::npos &&
          type.find("torch-save") == std::string_view::npos)
        continue;
      look_at_native_object(**opened, i);
    }
  }

  void look_at_native_object(const OpenedCheckpoint& opened, size_t number) {
    const std::string entry(opened.catalog().object_name(number));
    const auto extent = opened.object_extent(number);
    if (!extent.ok()) return findings_.fail({"", entry, 0}, extent.status());
    const FileInfo& file = opened.files()[extent->file];
    SurveyPlace place{file.key, entry, extent->offset};
    const auto object = location_.storage->open(stored_key(location_, file), {});
    if (!object.ok()) return findings_.fail(std::move(place), object.status());
    look_at_item(archive::bytes_of(**object, extent->offset, extent->size_bytes, file.key), place);
  }

  const Location location_;
  Findings findings_;
  std::map<std::string, uint64_t> names_;  // below the directory, with sizes
};

void add_place(const SurveyPlace& place, JsonWriter* json) {
  json->key("file").text(place.file);
  json->key("record").text(place.record);
  json->key("offset").number_unsigned(place.offset);
}

}  // namespace

std::span<const archive::PickleClass> known_globals() {
  static const std::vector<archive::PickleClass> kAll = [] {
    std::vector<archive::PickleClass> all;
    for (const auto vocabulary : {archive::torch_vocabulary(), archive::harmless_vocabulary(),
                                  torch_dcp::index_vocabulary()})
      all.insert(all.end(), vocabulary.begin(), vocabulary.end());
    return all;
  }();
  return kAll;
}

bool is_known_import(const archive::PickleImport& import) {
  return import.is_known || (import.calls == 0 && import.instances == 0 &&
                             archive::is_torch_value(import.module, import.name));
}

Result<PickleSurvey> survey_pickles(const Location& location) {
  PickleSurvey survey;
  survey.path = shown_path(location);
  SHW_RETURN_IF_ERROR(Surveyor(location, &survey).run());
  std::ranges::stable_sort(survey.globals, {}, [](const SurveyedGlobal& global) {
    return std::tuple(global.is_known, global.place.file, global.place.offset);
  });
  return survey;
}

PickleSurvey survey_item(const archive::ArchiveBytes& item, std::string entry) {
  PickleSurvey survey;
  Surveyor(Location(), &survey).look_at_item(item, {item.file, std::move(entry), item.file_offset});
  return survey;
}

std::string PickleSurvey::to_json() const {
  JsonWriter json;
  json.begin_object();
  json.key("schema").number(1);
  json.key("operation").text("scan");
  json.key("path").text(path);
  json.key("files").number_unsigned(files);
  json.key("pickles").number_unsigned(pickles);
  json.key("unknown").number_unsigned(unknown_count);
  json.key("unread").number_unsigned(failure_count);
  json.key("globals").begin_array();
  for (const SurveyedGlobal& global : globals) {
    json.begin_object();
    json.key("module").text(escape_text(global.module));
    json.key("name").text(escape_text(global.name));
    json.key("known").boolean(global.is_known);
    json.key("imports").number_unsigned(global.imports);
    json.key("calls").number_unsigned(global.calls);
    json.key("instances").number_unsigned(global.instances);
    add_place(global.place, &json);
    json.end_object();
  }
  json.end_array();
  json.key("failures").begin_array();
  for (const SurveyFailure& failure : failures) {
    json.begin_object();
    json.key("message").text(failure.message);
    add_place(failure.place, &json);
    json.end_object();
  }
  json.end_array();
  json.key("notes").begin_array();
  for (const std::string& text : notes) json.text(text);
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace shardwright::format
