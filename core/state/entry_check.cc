// SPDX-License-Identifier: Apache-2.0
#include "core/state/entry_check_internal.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/state/path.h"
#include "core/state/piece_place.h"

namespace shardwright::internal {
namespace {

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

// The canonical text of a nested path that joins to name.
Result<std::string> canonical_path(std::string_view name, std::string_view path) {
  SHW_ASSIGN_OR_RETURN(const std::vector<PathPart> parts, parse_path(path));
  const std::string joined = join_path(parts);
  if (joined != name) {
    return invalid_argument(fmt::format("the path {} joins to '{}', which is not the name '{}'",
                                        escape_text(path), escape_text(joined), escape_text(name)));
  }
  return format_path(parts);
}

Status check_kind(EntryKind kind) {
  if (static_cast<uint8_t>(kind) <= static_cast<uint8_t>(EntryKind::kRankLocal)) return {};
  return invalid_argument(fmt::format("the kind {} is unknown", static_cast<int32_t>(kind)));
}

Status check_subbyte_piece(const TensorRef& tensor, size_t piece, PiecePlace place) {
  const auto whole_bytes = [&tensor](int64_t elements) {
    return dtype_fills_bytes(tensor.local.dtype, elements);
  };
  const std::span<const int64_t> sizes = tensor.pieces.sizes(piece);
  if (sizes.empty()) {
    return unimplemented(
        fmt::format("a {} scalar does not fill whole bytes", dtype_name(tensor.local.dtype)));
  }
  // Rows of a window begin on whole bytes when each row of the local tensor fills some.
  const std::span<const int64_t> local = tensor.local.shape;
  const bool rows = place != PiecePlace::kWindow || whole_bytes(local.back()) ||
                    local.back() == tensor.local.element_count();
  if (rows && whole_bytes(tensor.pieces.offsets(piece).back()) && whole_bytes(sizes.back()) &&
      whole_bytes(tensor.pieces.local_offset(piece))) {
    return {};
  }
  return unimplemented(
      fmt::format("the box {} of a {} tensor does not begin and end on whole bytes",
                  box_text(tensor.pieces[piece].box), dtype_name(tensor.local.dtype)));
}

Status leaves_local(const TensorRef& tensor, size_t piece, std::string_view form) {
  return invalid_argument(fmt::format("the box {} at element {} is no {} of the local tensor [{}]",
                                      box_text(tensor.pieces[piece].box),
                                      tensor.pieces.local_offset(piece), form,
                                      fmt::join(tensor.local.shape, ", ")));
}

Status check_run_in_local(const TensorRef& tensor, size_t piece, int64_t piece_count) {
  if (!tensor.local.is_contiguous()) {
    return invalid_argument(
        fmt::format("the box {} is a run of elements of the local tensor, which then must be "
                    "contiguous",
                    box_text(tensor.pieces[piece].box)));
  }
  const int64_t local_count = tensor.local.element_count();
  const int64_t begin = tensor.pieces.local_offset(piece);
  if (begin >= 0 && begin <= local_count && piece_count <= local_count - begin) return {};
  return leaves_local(tensor, piece, "run of elements");
}

Status check_window_in_local(const TensorRef& tensor, size_t piece) {
  const int64_t begin = tensor.pieces.local_offset(piece);
  if (begin < 0 || begin >= tensor.local.element_count() ||
      !check_box(local_window(tensor, piece), tensor.local.shape).ok()) {
    return leaves_local(tensor, piece, "window");
  }
  return {};
}

Status check_piece(const TensorRef& tensor, size_t piece, PiecePlace place) {
  const auto offsets = tensor.pieces.offsets(piece);
  const auto sizes = tensor.pieces.sizes(piece);
  SHW_RETURN_IF_ERROR(check_box(offsets, sizes, tensor.global_shape));
  const int64_t count = element_count_of(sizes);
  if (count == 0) return {};
  if (dtype_is_subbyte(tensor.local.dtype)) {
    SHW_RETURN_IF_ERROR(check_subbyte_piece(tensor, piece, place));
  }
  switch (place) {
    case PiecePlace::kWindow:
      return check_window_in_local(tensor, piece);
    case PiecePlace::kRun:
      return check_run_in_local(tensor, piece, count);
    default:
      return {};
  }
}

Status check_pieces(const TensorRef& tensor) {
  if (tensor.pieces.size() > std::numeric_limits<uint32_t>::max()) {
    return invalid_argument(fmt::format("an entry of {} boxes is too large", tensor.pieces.size()));
  }
  const bool apart = tensor.memory.exists();  // in a local tensor that is not there
  const PiecePlace place = apart ? PiecePlace::kRun : place_of_pieces(tensor);
  for (size_t p = 0; p < tensor.pieces.size(); ++p) {
    SHW_RETURN_IF_ERROR(check_piece(tensor, p, place));
  }
  return {};
}

Status check_memory(const TensorRef& tensor) {
  if (!dtype_is_valid(tensor.local.dtype))
    return invalid_argument("the dtype is not one of the table");
  if (tensor.local.data == nullptr && tensor.local.element_count() > 0) {
    return invalid_argument("the local tensor has elements but no data");
  }
  for (const size_t rank : {tensor.local.shape.size(), tensor.global_shape.size()}) {
    if (rank <= static_cast<size_t>(kMaxTensorRank)) continue;
    return invalid_argument(
        fmt::format("a shape has {} dimensions, the limit is {}", rank, kMaxTensorRank));
  }
  SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(tensor.global_shape));
  return dtype_packed_bytes(tensor.local.dtype, count).status();
}

Status check_described(const TensorRef& tensor, std::string* canonical) {
  SHW_RETURN_IF_ERROR(check_kind(tensor.kind));
  SHW_RETURN_IF_ERROR(check_memory(tensor));
  SHW_RETURN_IF_ERROR(check_pieces(tensor));
  if (!tensor.fragments.empty())
    SHW_RETURN_IF_ERROR(check_fragments(tensor.fragments, tensor.global_shape));
  if (tensor.path.empty() || is_canonical_path_of(tensor.path, tensor.name)) return {};
  SHW_ASSIGN_OR_RETURN(*canonical, canonical_path(tensor.name, tensor.path));
  return {};
}

Status check_object_bytes(const ObjectEntry& entry) {
  if (entry.content_type.empty() || !is_valid_utf8(entry.content_type)) {
    return invalid_argument("the content type of an object must be UTF-8 text that is not empty");
  }
  if (entry.size_bytes() <= kMaxObjectBytes) return {};
  return resource_exhausted("object_bytes",
                            fmt::format("an object of {} bytes is larger than the limit of {}",
                                        entry.size_bytes(), kMaxObjectBytes))
      .with_detail("limit", fmt::to_string(kMaxObjectBytes));
}

Status check_object(ObjectEntry* entry) {
  SHW_RETURN_IF_ERROR(check_kind(entry->kind));
  SHW_RETURN_IF_ERROR(check_object_bytes(*entry));
  if (entry->path.empty()) return {};
  SHW_ASSIGN_OR_RETURN(entry->path, canonical_path(entry->name, entry->path));
  return {};
}

Status refused(Status why, std::string_view noun, std::string_view name) {
  return std::move(why)
      .annotated(fmt::format("{} '{}' cannot be added", noun, escape_text(name)))
      .with_detail("tensor", name);
}

}  // namespace

Status check_tensor(const TensorRef& tensor, std::string* canonical) {
  SHW_RETURN_IF_ERROR(check_name(tensor.name));
  Status status = check_described(tensor, canonical);
  return status.ok() ? status : refused(std::move(status), "tensor", tensor.name);
}

Status check_fragments(std::span<const int64_t> fragments, std::span<const int64_t> shape) {
  if (fragments.size() != shape.size()) {
    return invalid_argument(
        fmt::format("{} fragments for {} axes", fragments.size(), shape.size()));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t parts = fragments[d];
    if (parts == 0 || (parts > 0 && shape[d] % parts == 0)) continue;
    return invalid_argument(
        fmt::format("axis {} of {} elements is not cut into {} equal parts", d, shape[d], parts));
  }
  return {};
}

Status settle_object(ObjectEntry* object) {
  SHW_RETURN_IF_ERROR(check_name(object->name));
  Status status = check_object(object);
  return status.ok() ? status : refused(std::move(status), "object", object->name);
}

}  // namespace shardwright::internal
