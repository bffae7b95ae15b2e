// SPDX-License-Identifier: Apache-2.0
//
// An add has two phases: check every entry without touching the state, then append and index. Only
// a duplicate name is found in the second phase, which then takes back what it appended.
#include "core/state/state.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/path.h"

namespace shardwright {
namespace {

constexpr size_t kMaxEntries =
    std::numeric_limits<uint32_t>::max() - 1;  // what NameIndex can number

Status check_name(std::string_view name) {
  if (name.size() > kMaxNameBytes) {
    return invalid_argument(fmt::format("the name '{}' has {} bytes, the limit is {}",
                                        escape_text(name, 80), name.size(), kMaxNameBytes));
  }
  if (!is_valid_utf8(name)) {
    return invalid_argument(fmt::format("the name '{}' is not valid UTF-8", escape_text(name)));
  }
  return {};
}

// Checks the nested path of an entry and brings it into canonical form.
Status settle_path(std::string_view name, std::string* path) {
  if (path->empty()) return {};
  SHW_ASSIGN_OR_RETURN(const std::vector<PathPart> parts, parse_path(*path));
  const std::string joined = join_path(parts);
  if (joined != name) {
    return invalid_argument(fmt::format("the path {} joins to '{}', which is not the name '{}'",
                                        escape_text(*path), escape_text(joined),
                                        escape_text(name)));
  }
  *path = format_path(parts);
  return {};
}

Status check_kind(EntryKind kind) {
  if (static_cast<uint8_t>(kind) <= static_cast<uint8_t>(EntryKind::kRankLocal)) return {};
  return invalid_argument(fmt::format("the kind {} is unknown", static_cast<int32_t>(kind)));
}

// The memory of a piece is a run of the local tensor unless the piece is the whole local tensor.
bool is_whole_local(const TensorEntry& entry, const Piece& piece) {
  return entry.pieces.size() == 1 && piece.local_offset_elements == 0 &&
         piece.box.sizes == entry.local.shape;
}

Status check_subbyte_piece(const TensorEntry& entry, const Piece& piece) {
  const int64_t bits = dtype_bits(entry.local.dtype);
  const auto whole_bytes = [bits](int64_t elements) { return elements % 8 * bits % 8 == 0; };
  if (piece.box.sizes.empty()) {
    return unimplemented(
        fmt::format("a {} scalar does not fill whole bytes", dtype_name(entry.local.dtype)));
  }
  const size_t last = piece.box.sizes.size() - 1;
  if (whole_bytes(piece.box.offsets[last]) && whole_bytes(piece.box.sizes[last]) &&
      whole_bytes(piece.local_offset_elements)) {
    return {};
  }
  return unimplemented(
      fmt::format("the box {} of a {} tensor does not begin and end on whole bytes",
                  box_text(piece.box), dtype_name(entry.local.dtype)));
}

Status check_piece(const TensorEntry& entry, const Piece& piece) {
  if (Status status = check_box(piece.box, entry.global_shape); !status.ok()) {
    // Whatever is wrong with a box that the caller made, its argument is wrong.
    return invalid_argument(std::string(status.message()));
  }
  if (box_is_empty(piece.box)) return {};
  if (dtype_is_subbyte(entry.local.dtype)) SHW_RETURN_IF_ERROR(check_subbyte_piece(entry, piece));
  if (is_whole_local(entry, piece)) return {};
  if (!entry.local.is_contiguous()) {
    return invalid_argument(
        fmt::format("the box {} is not the whole local tensor, which then must be contiguous",
                    box_text(piece.box)));
  }
  const int64_t local_count = entry.local.element_count();
  const int64_t piece_count = box_element_count(piece.box);
  if (piece.local_offset_elements < 0 || piece.local_offset_elements > local_count ||
      piece_count > local_count - piece.local_offset_elements) {
    return invalid_argument(
        fmt::format("the box {} takes {} elements from element {} of a local tensor of {}",
                    box_text(piece.box), piece_count, piece.local_offset_elements, local_count));
  }
  return {};
}

Status check_memory(const TensorEntry& entry) {
  if (!dtype_is_valid(entry.local.dtype))
    return invalid_argument("the dtype is not one of the table");
  if (entry.local.data == nullptr && entry.local.element_count() > 0) {
    return invalid_argument("the local tensor has elements but no data");
  }
  if (entry.global_shape.size() > static_cast<size_t>(kMaxTensorRank)) {
    return invalid_argument(fmt::format("the global shape has {} dimensions, the limit is {}",
                                        entry.global_shape.size(), kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(entry.global_shape));
  return dtype_packed_bytes(entry.local.dtype, count).status();
}

Status settle_tensor(TensorEntry* entry) {
  SHW_RETURN_IF_ERROR(check_name(entry->name));
  const auto settle = [entry]() -> Status {
    SHW_RETURN_IF_ERROR(check_kind(entry->kind));
    SHW_RETURN_IF_ERROR(check_memory(*entry));
    for (const Piece& piece : entry->pieces) SHW_RETURN_IF_ERROR(check_piece(*entry, piece));
    return settle_path(entry->name, &entry->path);
  };
  Status status = settle();
  if (status.ok()) return status;
  return std::move(status)
      .annotated(fmt::format("tensor '{}' cannot be added", escape_text(entry->name)))
      .with_detail("tensor", entry->name);
}

Status check_object_bytes(const ObjectEntry& entry) {
  if (entry.content_type.empty() || !is_valid_utf8(entry.content_type)) {
    return invalid_argument("the content type of an object must be UTF-8 text that is not empty");
  }
  if (entry.bytes.size() <= kMaxObjectBytes) return {};
  return resource_exhausted("object_bytes",
                            fmt::format("an object of {} bytes is larger than the limit of {}",
                                        entry.bytes.size(), kMaxObjectBytes))
      .with_detail("limit", fmt::to_string(kMaxObjectBytes));
}

Status settle_object(ObjectEntry* entry) {
  SHW_RETURN_IF_ERROR(check_name(entry->name));
  const auto settle = [entry]() -> Status {
    SHW_RETURN_IF_ERROR(check_kind(entry->kind));
    SHW_RETURN_IF_ERROR(check_object_bytes(*entry));
    return settle_path(entry->name, &entry->path);
  };
  Status status = settle();
  if (status.ok()) return status;
  return std::move(status)
      .annotated(fmt::format("object '{}' cannot be added", escape_text(entry->name)))
      .with_detail("tensor", entry->name);
}

template <typename Entry>
auto names_of(const std::vector<Entry>& column) {
  return [&column](size_t position) -> std::string_view { return column[position].name; };
}

std::string_view path_text(std::string_view path) {
  return path.empty() ? "(flat)" : path;
}

Status duplicate_name(std::string_view name, std::string_view first_path,
                      std::string_view second_path) {
  return already_exists(fmt::format("two entries are called '{}': the paths are {} and {}",
                                    escape_text(name), escape_text(path_text(first_path)),
                                    escape_text(path_text(second_path))))
      .with_detail("tensor", name);
}

// Appends added to column; fails without change when one of its names is in column, in other, or
// twice in added.
template <typename Entry, typename Other>
struct Append {
  std::vector<Entry>* column;
  NameIndex* index;
  const std::vector<Other>& others;
  const NameIndex& other_index;

  Status operator()(std::vector<Entry> added) {
    const size_t old_count = column->size();
    if (added.size() > kMaxEntries - old_count) {
      return resource_exhausted("entries",
                                fmt::format("a state holds at most {} entries", kMaxEntries));
    }
    index->reserve(old_count + added.size(), names_of(*column));
    if (old_count == 0) {
      *column = std::move(added);
    } else {
      // Doubling: reserve of the exact count would make many small adds quadratic.
      const size_t needed = old_count + added.size();
      if (needed > column->capacity()) column->reserve(std::max(needed, 2 * column->capacity()));
      std::move(added.begin(), added.end(), std::back_inserter(*column));
    }
    for (size_t i = old_count; i < column->size(); ++i) {
      Status status = insert(i);
      if (!status.ok()) {
        take_back(old_count);
        return status;
      }
    }
    return {};
  }

 private:
  Status insert(size_t position) {
    const Entry& entry = (*column)[position];
    if (const auto found = index->find(entry.name, names_of(*column))) {
      return duplicate_name(entry.name, (*column)[*found].path, entry.path);
    }
    if (const auto found = other_index.find(entry.name, names_of(others))) {
      return duplicate_name(entry.name, others[*found].path, entry.path);
    }
    index->insert(entry.name, position);
    return {};
  }

  void take_back(size_t old_count) {
    column->erase(column->begin() + static_cast<std::ptrdiff_t>(old_count), column->end());
    index->clear();
    for (size_t i = 0; i < old_count; ++i) index->insert((*column)[i].name, i);
  }
};

}  // namespace

std::string_view entry_kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::kAuto:
      return "auto";
    case EntryKind::kReplicated:
      return "replicated";
    case EntryKind::kSharded:
      return "sharded";
    case EntryKind::kRankLocal:
      return "rank_local";
  }
  return "unknown";
}

Status State::add_tensors(std::vector<TensorEntry> entries) {
  for (TensorEntry& entry : entries) SHW_RETURN_IF_ERROR(settle_tensor(&entry));
  Append<TensorEntry, ObjectEntry> append{&tensors_, &tensor_index_, objects_, object_index_};
  return append(std::move(entries));
}

Status State::add_objects(std::vector<ObjectEntry> entries) {
  for (ObjectEntry& entry : entries) SHW_RETURN_IF_ERROR(settle_object(&entry));
  Append<ObjectEntry, TensorEntry> append{&objects_, &object_index_, tensors_, tensor_index_};
  return append(std::move(entries));
}

void State::add_keepalive(std::shared_ptr<void> owner) {
  keepalive_.push_back(std::move(owner));
}

std::optional<size_t> State::find_tensor(std::string_view name) const {
  return tensor_index_.find(name, names_of(tensors_));
}

std::optional<size_t> State::find_object(std::string_view name) const {
  return object_index_.find(name, names_of(objects_));
}

void State::replace_object(size_t index, std::string content_type, std::vector<std::byte> bytes) {
  ObjectEntry& entry = objects_.at(index);
  entry.content_type = std::move(content_type);
  entry.bytes = std::move(bytes);
}

Result<StridedWindow> State::piece_window(size_t tensor, size_t piece) const {
  if (tensor >= tensors_.size() || piece >= tensors_[tensor].pieces.size()) {
    return out_of_range(fmt::format("the state has no piece {} of tensor {}", piece, tensor));
  }
  const TensorEntry& entry = tensors_[tensor];
  const Piece& wanted = entry.pieces[piece];
  if (is_whole_local(entry, wanted)) {
    return window_of(entry.local, Dims(wanted.box.sizes.size(), 0), wanted.box.sizes);
  }
  // A run of the contiguous local tensor, seen as a tensor of the box's shape that begins at the
  // run.
  TensorView run = entry.local;
  run.shape = wanted.box.sizes;
  run.strides = Dims();
  if (!box_is_empty(wanted.box)) {
    SHW_ASSIGN_OR_RETURN(const uint64_t skipped,
                         dtype_packed_bytes(run.dtype, wanted.local_offset_elements));
    run.data += skipped;
  }
  return window_of(run, Dims(run.shape.size(), 0), run.shape);
}

TensorEntry plain_tensor_entry(std::string name, TensorView local) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.global_shape = local.shape;
  entry.pieces.push_back({whole_box(local.shape), 0});
  entry.local = std::move(local);
  return entry;
}

}  // namespace shardwright
