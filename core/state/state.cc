// SPDX-License-Identifier: Apache-2.0
//
// An add checks and appends entry by entry; at its end the names go into the index, where a double
// one is found. Whatever fails, the columns are cut back to their old length.
#include "core/state/state.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/entry_check_internal.h"
#include "core/state/piece_place.h"

namespace shardwright {
namespace {

constexpr size_t kMaxEntries =
    std::numeric_limits<uint32_t>::max() - 1;  // what HashIndex can number
constexpr size_t kPrefetchDistance = 16;       // names hashed ahead of the one that is entered

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

Status check_count(size_t count) {
  if (count <= kMaxEntries) return {};
  return resource_exhausted("entries",
                            fmt::format("a state holds at most {} entries", kMaxEntries));
}

// Enters the names of [first, end) into the index, hashing a few ahead so that their slots are
// there when they are needed. Stops at a name that the index or `others` has; then the index is as
// it was. Returns the position of that name, or end.
template <typename NameAt, typename InOthers>
size_t enter_names(size_t first, size_t end, const NameAt& name_at, const InOthers& in_others,
                   HashIndex* index) {
  const auto hash_at = [&](size_t i) { return hash_text(name_at(i)); };
  index->reserve(end, hash_at);
  std::array<uint64_t, kPrefetchDistance> ahead;
  const auto look_ahead = [&](size_t position) {
    if (position >= end) return;
    ahead[position % kPrefetchDistance] = hash_at(position);
    index->prefetch(ahead[position % kPrefetchDistance]);
  };
  for (size_t i = first; i < first + kPrefetchDistance; ++i) look_ahead(i);
  for (size_t i = first; i < end; ++i) {
    const uint64_t hash = ahead[i % kPrefetchDistance];
    const std::string_view name = name_at(i);
    if (index->find(hash, [&](size_t other) { return name_at(other) == name; }).has_value() ||
        in_others(name)) {
      index->clear();
      for (size_t kept = 0; kept < first; ++kept) index->insert(hash_at(kept), kept);
      return i;
    }
    index->insert(hash, i);
    look_ahead(i + kPrefetchDistance);
  }
  return end;
}

// Entries are TensorColumns or a vector of ObjectEntry.
template <typename Entries>
std::string_view path_of_first(const Entries& entries, std::string_view name) {
  for (const auto& entry : entries) {
    if (entry.name == name) return entry.path;
  }
  return "";
}

// A PieceList knows one rank only, so boxes of another rank are refused before.
Status check_ranks(const TensorEntry& entry) {
  const size_t rank = entry.global_shape.size();
  for (const Piece& piece : entry.pieces) {
    if (piece.box.offsets.size() == rank && piece.box.sizes.size() == rank) continue;
    return check_box(piece.box, entry.global_shape).with_detail("tensor", entry.name);
  }
  return {};
}

// The whole of a local tensor, with as many extents of 1 before its own as `rank` asks for.
Result<StridedWindow> window_of_whole(const TensorSpan& local, size_t rank) {
  const Dims origin(local.shape.size(), 0);
  SHW_ASSIGN_OR_RETURN(StridedWindow window, window_of(local, origin, local.shape));
  if (rank == local.shape.size()) return window;
  Dims shape(rank, 1);
  Dims strides(rank, 0);
  std::copy_backward(window.shape.begin(), window.shape.end(), shape.end());
  std::copy_backward(window.strides.begin(), window.strides.end(), strides.end());
  window.shape = std::move(shape);
  window.strides = std::move(strides);
  return window;
}

// A run of the contiguous local tensor, seen as a tensor of the box's shape that begins at the run.
Result<StridedWindow> window_of_run(const TensorRef& entry, size_t piece) {
  TensorSpan run = entry.local;
  run.shape = entry.pieces.sizes(piece);
  run.strides = {};
  if (run.element_count() != 0) {
    SHW_ASSIGN_OR_RETURN(const uint64_t skipped,
                         dtype_packed_bytes(run.dtype, entry.pieces.local_offset(piece)));
    run.data += skipped;
  }
  return window_of_whole(run, run.shape.size());
}

}  // namespace

Status State::add_tensors(const std::vector<TensorEntry>& entries) {
  size_t name_bytes = 0;
  for (const TensorEntry& entry : entries) name_bytes += entry.name.size();
  TensorAdd batch(this, entries.size(), name_bytes);
  PieceBuffer buffer;
  for (const TensorEntry& entry : entries) {
    SHW_RETURN_IF_ERROR(check_ranks(entry));
    const PieceList pieces = buffer.assign(entry.global_shape.size(), entry.pieces);
    SHW_RETURN_IF_ERROR(batch.add({entry.name,
                                   entry.path,
                                   entry.kind,
                                   entry.local,
                                   entry.global_shape,
                                   pieces,
                                   &entry.layout,
                                   {},
                                   entry.replica,
                                   entry.fragments}));
  }
  return batch.commit();
}

Status State::add_objects(std::vector<ObjectEntry> entries) {
  for (ObjectEntry& entry : entries) SHW_RETURN_IF_ERROR(internal::settle_object(&entry));
  const size_t first = objects_.size();
  SHW_RETURN_IF_ERROR(check_count(first + entries.size()));
  // First what may run out of memory.
  object_index_.reserve(first + entries.size(),
                        [this](size_t i) { return hash_text(objects_[i].name); });
  objects_.insert(objects_.end(), std::make_move_iterator(entries.begin()),
                  std::make_move_iterator(entries.end()));
  Status status = index_objects(first);
  if (!status.ok()) objects_.resize(first);
  return status;
}

Status State::reserve(size_t tensors, size_t name_bytes) {
  if (tensors > kMaxEntries) return check_count(tensors);
  SHW_RETURN_IF_ERROR(check_count(tensors_.size() + tensors));
  tensors_.reserve_more(tensors, std::min(name_bytes, tensors * kMaxNameBytes));
  tensor_index_.reserve(tensors_.size() + tensors,
                        [this](size_t i) { return hash_text(tensors_.name(i)); });
  return {};
}

Status State::index_tensors(size_t first) {
  const size_t stopped = enter_names(
      first, tensors_.size(), [this](size_t i) { return tensors_.name(i); },
      [this](std::string_view name) { return !objects_.empty() && find_object(name).has_value(); },
      &tensor_index_);
  if (stopped == tensors_.size()) return {};
  const TensorRef doubled = tensors_[stopped];
  const auto object = find_object(doubled.name);
  return duplicate_name(doubled.name,
                        object.has_value() ? std::string_view(objects_[*object].path)
                                           : path_of_first(tensors_, doubled.name),
                        doubled.path);
}

Status State::index_objects(size_t first) {
  const size_t stopped = enter_names(
      first, objects_.size(), [this](size_t i) -> std::string_view { return objects_[i].name; },
      [this](std::string_view name) { return find_tensor(name).has_value(); }, &object_index_);
  if (stopped == objects_.size()) return {};
  const ObjectEntry& doubled = objects_[stopped];
  const auto tensor = find_tensor(doubled.name);
  return duplicate_name(
      doubled.name,
      tensor.has_value() ? tensors_[*tensor].path : path_of_first(objects_, doubled.name),
      doubled.path);
}

void State::add_keepalive(std::shared_ptr<void> owner) {
  keepalive_.push_back(std::move(owner));
}

void State::add_access(DeviceAccess access) {
  TensorSpan there;
  there.device_type = access.device_type;
  there.device_id = access.device_id;
  if (access_to(there) == nullptr) accesses_.push_back(std::move(access));
}

WindowAccess* State::access_to(const TensorSpan& tensor) const {
  for (const DeviceAccess& each : accesses_)
    if (each.device_type == tensor.device_type && each.device_id == tensor.device_id)
      return each.access.get();
  return nullptr;
}

std::optional<size_t> State::find_tensor(std::string_view name) const {
  return tensor_index_.find(hash_text(name), [&](size_t i) { return tensors_.name(i) == name; });
}

std::optional<size_t> State::find_object(std::string_view name) const {
  return object_index_.find(hash_text(name), [&](size_t i) { return objects_[i].name == name; });
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
  const TensorRef entry = tensors_[tensor];
  const std::span<const int64_t> sizes = entry.pieces.sizes(piece);
  if (element_count_of(sizes) == 0) return window_of_run(entry, piece);
  if (entry.memory.exists()) return window_of_whole(memory_of_piece(entry, piece), sizes.size());
  switch (place_of_pieces(entry)) {
    case PiecePlace::kWhole:
      return window_of_whole(entry.local, sizes.size());
    case PiecePlace::kWindow:
      return window_of(entry.local, local_window(entry, piece).offsets, sizes);
    default:
      return window_of_run(entry, piece);
  }
}

TensorAdd::TensorAdd(State* state, size_t tensors, size_t name_bytes)
    : state_(state), begin_(state->tensors_.mark()) {
  state->tensors_.reserve_more(std::min(tensors, kMaxEntries), name_bytes);
}

TensorAdd::~TensorAdd() {
  if (!committed_) state_->tensors_.take_back(begin_);
}

Status TensorAdd::add(const TensorRef& tensor) {
  std::string canonical;  // stays empty when the path is canonical already
  SHW_RETURN_IF_ERROR(internal::check_tensor(tensor, &canonical));
  SHW_RETURN_IF_ERROR(check_count(state_->tensors_.size() + 1));
  state_->tensors_.append(tensor, canonical.empty() ? tensor.path : canonical);
  return {};
}

Status TensorAdd::commit() {
  SHW_RETURN_IF_ERROR(state_->index_tensors(begin_.records));
  committed_ = true;
  return {};
}

}  // namespace shardwright
