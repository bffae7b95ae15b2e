// SPDX-License-Identifier: Apache-2.0
#include "core/format/torch_dcp/byte_items.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/torch_dcp/transformed_item.h"

namespace shardwright::format::torch_dcp {
namespace {

constexpr uint64_t kRunBytes = uint64_t{4} << 20;  // of neighbours that are read together
constexpr uint64_t kRunGapBytes = 4096;            // between them

ByteObject as_stored() {
  return {std::string(kTorchSaveType), "", true};
}

Result<ByteObject> try_object(std::span<const std::byte> item, std::string_view file,
                              uint64_t* budget) {
  const archive::ArchiveBytes bytes = archive::bytes_of(item, 0, std::string(file));
  SHW_ASSIGN_OR_RETURN(const archive::TorchArchive records,
                       archive::TorchArchive::open(bytes, item.size()));
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, records.read_pickle(bytes));
  archive::PickleOptions options;
  options.file = file;
  options.vocabulary = archive::torch_vocabulary();
  SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
  archive::ExportedValue value = archive::export_value(data, data.root(), budget);
  if (value.content_type == archive::kOpaqueType) return as_stored();
  return ByteObject{std::string(value.content_type), std::move(value.bytes), false};
}

class ObjectReader {
 public:
  ObjectReader(const Location& location, const DcpIndex& index, std::span<const FileInfo> files,
               const CheckItem& check, std::vector<std::string>* notes)
      : location_(location), index_(index), files_(files), check_(check), notes_(notes) {}

  std::vector<ByteObject> read() {
    objects_.assign(index_.objects.size(), as_stored());
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < index_.objects.size(); ++i) {
      if (place(i).transform != 0) objects_[i].content_type = kTransformedType;
      if (is_wanted(place(i))) order.push_back(i);
    }
    std::ranges::sort(order, {},
                      [&](uint32_t i) { return std::tuple(place(i).file, place(i).offset); });
    for (size_t begin = 0; begin < order.size();) {
      const size_t end = end_of_run(order, begin);
      const Status read = read_run(std::span(order).subspan(begin, end - begin));
      if (!read.ok()) unread_ += end - begin;
      begin = end;
    }
    if (unread_ > 0)
      notes_->push_back(
          fmt::format("{} objects could not be read and stay as they are stored", unread_));
    return std::move(objects_);
  }

 private:
  const ItemPlace& place(uint32_t object) const { return index_.objects[object].place; }

  bool can_be_undone(const ItemPlace& place) const {
    return place.transform == 0 ||
           check_transforms(index_.transforms[place.transform - 1], "", place.offset).ok();
  }

  bool is_wanted(const ItemPlace& place) {
    if (place.file == ItemPlace::kNowhere || !can_be_undone(place) ||
        place.size_bytes > kMaxReadObjectBytes ||
        place.offset + place.size_bytes > files_[place.file].size_bytes || left_ < place.size_bytes)
      return false;
    left_ -= place.size_bytes;
    return true;
  }

  size_t end_of_run(std::span<const uint32_t> order, size_t begin) const {
    const ItemPlace& first = place(order[begin]);
    uint64_t end = first.offset + first.size_bytes;
    size_t next = begin + 1;
    for (; next < order.size(); ++next) {
      const ItemPlace& item = place(order[next]);
      if (item.file != first.file || item.offset > end + kRunGapBytes ||
          item.offset + item.size_bytes > first.offset + kRunBytes)
        break;
      end = std::max(end, item.offset + item.size_bytes);
    }
    return next;
  }

  Status read_run(std::span<const uint32_t> run) {
    const ItemPlace& first = place(run[0]);
    uint64_t end = 0;
    for (const uint32_t i : run) end = std::max(end, place(i).offset + place(i).size_bytes);
    std::vector<std::byte> bytes(static_cast<size_t>(end - first.offset));
    SHW_ASSIGN_OR_RETURN(
        const std::unique_ptr<storage::StorageObject> object,
        location_.storage->open(stored_key(location_, files_[first.file]), storage::OpenOptions{}));
    SHW_RETURN_IF_ERROR(object->read_at(first.offset, bytes));
    SHW_RETURN_IF_ERROR(object->close());
    for (const uint32_t i : run) {
      const auto item =
          std::span(bytes).subspan(static_cast<size_t>(place(i).offset - first.offset),
                                   static_cast<size_t>(place(i).size_bytes));
      if (check_ && !check_(i, item)) continue;
      if (place(i).transform == 0) {
        objects_[i] = read_object(item, files_[first.file].key, &budget_);
      } else {
        take_transformed(i, item);
      }
    }
    return {};
  }

  // What an archive cannot be given as is given as the archive, which the transform was of.
  void take_transformed(uint32_t i, std::span<const std::byte> item) {
    const std::string& file = files_[place(i).file].key;
    auto whole = undo_transform(archive::bytes_of(item, place(i).offset, file),
                                std::min(kMaxReadObjectBytes, left_));
    if (!whole.ok()) {
      ++unread_;
      return;
    }
    left_ -= whole->size();
    objects_[i] = read_object(*whole, file, &budget_);
    if (!objects_[i].is_stored) return;
    objects_[i].bytes.assign(reinterpret_cast<const char*>(whole->data()), whole->size());
    objects_[i].is_stored = false;
  }

  const Location& location_;
  const DcpIndex& index_;
  std::span<const FileInfo> files_;
  const CheckItem& check_;
  std::vector<std::string>* notes_;
  std::vector<ByteObject> objects_;
  uint64_t left_ = kMaxReadObjects;
  uint64_t budget_ = kMaxReadObjects;
  size_t unread_ = 0;
};

}  // namespace

ByteObject read_object(std::span<const std::byte> item, std::string_view file, uint64_t* budget) {
  auto object = try_object(item, file, budget);
  return object.ok() ? std::move(*object) : as_stored();
}

std::vector<ByteObject> read_objects(const Location& location, const DcpIndex& index,
                                     std::span<const FileInfo> files, const CheckItem& check,
                                     std::vector<std::string>* notes) {
  return ObjectReader(location, index, files, check, notes).read();
}

}  // namespace shardwright::format::torch_dcp
