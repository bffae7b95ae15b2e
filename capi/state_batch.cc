// SPDX-License-Identifier: Apache-2.0
//
// The one place of capi/ that loops over entries: it turns columns into entries and leaves every
// question of meaning (names, covers, paths) to State.
#include "capi/state_batch.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/tensor_argument.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/layout/grid.h"
#include "core/layout/split.h"
#include "core/state/object_key.h"

namespace shardwright::capi {
namespace {

Result<EntryKind> read_kind(const int32_t* kinds, uint64_t index) {
  if (kinds == nullptr) return EntryKind::kAuto;
  SHW_RETURN_IF_ERROR(option_in_range(kinds[index], SHW_KIND_RANK_LOCAL, "kinds"));
  return static_cast<EntryKind>(kinds[index]);
}

bool is_replica(const int32_t* replica_ids, uint64_t index) {
  return replica_ids != nullptr && replica_ids[index] != 0;
}

// Values of entry `index` in columns that `offsets` cuts; none without offsets.
struct ColumnRange {
  uint64_t begin = 0;
  size_t count = 0;
};
Result<ColumnRange> grid_range(const uint64_t* offsets, uint64_t index) {
  if (offsets == nullptr) return ColumnRange();
  const uint64_t begin = offsets[index];
  const uint64_t end = offsets[index + 1];
  if (end >= begin && end - begin <= static_cast<uint64_t>(kMaxTensorRank))
    return ColumnRange{begin, end - begin};
  return bad_argument("grid_offsets", fmt::format("from {} to {} is no grid of 0 to {} axes", begin,
                                                  end, kMaxTensorRank));
}

Result<TextArray> optional_texts(const char* blob, const uint64_t* offsets, uint64_t count,
                                 const char* parameter) {
  if (offsets != nullptr) return text_list_argument(blob, offsets, count, parameter);
  if (blob != nullptr) return bad_argument(parameter, "the texts have no offsets");
  return TextArray();
}

// Walks a tensor batch once, entry by entry. Memory that the host cannot touch is taken where the
// state has an access to it.
class TensorBatchReader {
 public:
  TensorBatchReader(const shw_tensor_batch& batch, const State& state)
      : batch_(batch), state_(state) {}

  Status open() {
    SHW_ASSIGN_OR_RETURN(
        names_, text_list_argument(batch_.names, batch_.name_offsets, batch_.count, "names"));
    SHW_ASSIGN_OR_RETURN(paths_,
                         optional_texts(batch_.paths, batch_.path_offsets, batch_.count, "paths"));
    if (batch_.global_shapes != nullptr && batch_.global_shape_offsets == nullptr) {
      return bad_argument("global_shapes", "the shapes have no offsets");
    }
    const bool boxes = batch_.box_ranges != nullptr;
    const bool layouts = batch_.layouts != nullptr;
    if (batch_.grid_offsets != nullptr && batch_.grid_indices != nullptr &&
        (boxes || layouts || batch_.global_shape_offsets != nullptr)) {
      return bad_argument("grid_offsets", "a batch has grids or shapes, boxes and layouts");
    }
    if ((boxes || layouts) && batch_.global_shape_offsets == nullptr) {
      return null_argument("global_shape_offsets");
    }
    if (layouts && batch_.layout_count == 0) return bad_argument("layout_count", "it is 0");
    if (boxes && batch_.count != 0 && batch_.box_ranges[0] != 0) {
      return bad_argument("box_ranges", "the first value is not 0");
    }
    return batch_.count == 0 ? Status() : check_struct_array();
  }

  // Bytes of all names.
  size_t name_bytes() const {
    return batch_.count == 0 ? 0 : batch_.name_offsets[batch_.count] - batch_.name_offsets[0];
  }
  std::string_view name(uint64_t index) const { return names_.at(index); }

  // Sets all of *entry. Entries come in order; *entry borrows from the batch and from this reader,
  // until the next.
  Status read(uint64_t index, TensorRef* entry) {
    entry->name = names_.at(index);
    entry->path = paths_.at(index);
    SHW_ASSIGN_OR_RETURN(entry->kind, read_kind(batch_.kinds, index));
    shw_tensor tensor;
    SHW_RETURN_IF_ERROR(read_element(batch_.tensors, index, "tensors", &tensor));
    SHW_ASSIGN_OR_RETURN(entry->local, span_of_tensor(tensor));
    if (!device_is_host_accessible(entry->local.device_type) &&
        state_.access_to(entry->local) == nullptr)
      return not_reached(entry->local);
    entry->replica = is_replica(batch_.replica_ids, index);
    SHW_ASSIGN_OR_RETURN(const ColumnRange grid, grid_range(batch_.grid_offsets, index));
    entry->fragments = {};
    if (grid.count != 0) SHW_RETURN_IF_ERROR(need_pointer(batch_.grid_fragments, "grid_fragments"));
    if (grid.count != 0 && batch_.grid_indices != nullptr) return read_grid(grid, entry);
    SHW_RETURN_IF_ERROR(read_global_shape(index, entry));
    SHW_RETURN_IF_ERROR(read_pieces(index, entry));
    if (grid.count != 0) entry->fragments = {batch_.grid_fragments + grid.begin, grid.count};
    return {};
  }

 private:
  // Axes that the local tensor lacks come first.
  Status read_grid(ColumnRange range, TensorRef* entry) {
    const std::span<const int64_t> local = entry->local.shape;
    if (range.count < local.size()) {
      return bad_argument("grid_offsets", fmt::format("a grid of {} axes for a tensor of {}",
                                                      range.count, local.size()));
    }
    std::vector<RankOffset> places(range.count);
    for (size_t axis = 0; axis < range.count; ++axis) {
      places[axis] = {static_cast<int32_t>(axis), batch_.grid_indices[range.begin + axis],
                      batch_.grid_fragments[range.begin + axis]};
    }
    const auto prepended = static_cast<int32_t>(range.count - local.size());
    auto shard = grid_shard_at(Dims(local), prepended, places);
    if (!shard.ok()) return shard.status().with_detail("parameter", "grid_indices");
    grid_shape_ = shard->global_shape;
    held_.assign(1, Piece{grid_box(*shard), 0});
    entry->global_shape = grid_shape_;
    entry->pieces = pieces_.assign(grid_shape_.size(), held_);
    entry->layout = nullptr;
    return {};
  }

  Status check_struct_array() const {
    return check_struct_size(batch_.tensors->struct_size, rules_of<shw_tensor>(), "tensors");
  }

  Status read_global_shape(uint64_t index, TensorRef* entry) const {
    if (batch_.global_shape_offsets == nullptr) {
      entry->global_shape = entry->local.shape;
      return {};
    }
    const uint64_t begin = batch_.global_shape_offsets[index];
    const uint64_t end = batch_.global_shape_offsets[index + 1];
    if (end < begin || end - begin > static_cast<uint64_t>(kMaxTensorRank)) {
      return bad_argument("global_shape_offsets",
                          fmt::format("from {} to {} is no shape of 0 to {} dimensions", begin, end,
                                      kMaxTensorRank));
    }
    entry->global_shape = {};
    if (end == begin) return {};
    SHW_RETURN_IF_ERROR(need_pointer(batch_.global_shapes, "global_shapes"));
    entry->global_shape = {batch_.global_shapes + begin, end - begin};
    return {};
  }

  Status read_pieces(uint64_t index, TensorRef* entry) {
    entry->pieces = PieceList::whole(entry->global_shape);
    entry->layout = nullptr;
    if (batch_.box_ranges != nullptr) SHW_RETURN_IF_ERROR(read_boxes(index, entry));
    return batch_.layouts == nullptr ? Status() : read_layout(index, entry);
  }

  Status read_boxes(uint64_t index, TensorRef* entry) {
    const uint64_t begin = batch_.box_ranges[index];
    const uint64_t end = batch_.box_ranges[index + 1];
    const size_t rank = entry->global_shape.size();
    if (end < begin || (end != begin && rank != 0 && end - begin > INT64_MAX / 8 / rank)) {
      return bad_argument("box_ranges", fmt::format("{} to {} is no range", begin, end));
    }
    if (end != begin && rank != 0) {
      SHW_RETURN_IF_ERROR(need_pointer(batch_.box_offsets, "box_offsets"));
      SHW_RETURN_IF_ERROR(need_pointer(batch_.box_sizes, "box_sizes"));
    }
    const auto from = [](const int64_t* values, uint64_t first) {
      return values == nullptr ? nullptr : values + first;
    };
    entry->pieces =
        PieceList(rank, end - begin, from(batch_.box_offsets, box_value_),
                  from(batch_.box_sizes, box_value_), from(batch_.local_offsets, begin));
    box_value_ += (end - begin) * rank;
    return {};
  }

  Status read_layout(uint64_t index, TensorRef* entry) {
    const uint64_t number = batch_.layout_indices == nullptr ? 1 : batch_.layout_indices[index];
    if (number == 0) return {};
    if (number > batch_.layout_count) {
      return bad_argument("layout_indices", fmt::format("there is no layout {}, only {}", number,
                                                        batch_.layout_count));
    }
    SHW_ASSIGN_OR_RETURN(const auto layout, need(batch_.layouts[number - 1], "layouts"));
    const Layout& rule = *layout->layout;
    SHW_ASSIGN_OR_RETURN(const SplitView split, SplitView::create(rule, entry->global_shape));
    const int64_t position = rule.position_of(batch_.rank);
    held_.clear();
    if (position >= 0) SHW_RETURN_IF_ERROR(split.append_pieces(position, &held_));
    if (batch_.box_ranges != nullptr && !entry->pieces.empty()) {
      SHW_RETURN_IF_ERROR(check_boxes_of_layout(*entry));
    } else {
      entry->pieces = pieces_.assign(entry->global_shape.size(), held_);
    }
    entry->layout = &layout->layout;
    if (entry->kind == EntryKind::kAuto) entry->kind = EntryKind::kSharded;
    return {};
  }

  // The boxes that the batch gives beside a layout are those of the layout, in any order; boxes
  // without elements do not count.
  Status check_boxes_of_layout(const TensorRef& entry) const {
    const PieceList& given = entry.pieces;
    std::vector<Box> own;
    std::vector<Box> ruled;
    for (size_t p = 0; p < given.size(); ++p) {
      SHW_RETURN_IF_ERROR(check_box(given.offsets(p), given.sizes(p), entry.global_shape));
      if (element_count_of(given.sizes(p)) != 0) own.push_back(given[p].box);
    }
    for (const Piece& piece : held_) {
      if (!box_is_empty(piece.box)) ruled.push_back(piece.box);
    }
    std::ranges::sort(own);
    std::ranges::sort(ruled);
    if (own == ruled) return {};
    const auto list = [](const std::vector<Box>& boxes) {
      std::vector<std::string> texts;
      texts.reserve(boxes.size());
      for (const Box& box : boxes) texts.push_back(box_text(box));
      return texts.empty() ? std::string("nothing") : fmt::format("{}", fmt::join(texts, ", "));
    };
    return bad_argument("layouts", fmt::format("rank {} holds {} by its boxes and {} by its layout",
                                               batch_.rank, list(own), list(ruled)));
  }

  const shw_tensor_batch& batch_;
  const State& state_;
  TextArray names_;
  TextArray paths_;
  uint64_t box_value_ = 0;   // where the next box begins in box_offsets and box_sizes
  std::vector<Piece> held_;  // by the layout or grid read last
  Dims grid_shape_;          // of the grid read last
  PieceBuffer pieces_;       // the same in columns
};

Status at_entry(const Status& status, const char* list, uint64_t index, std::string_view name) {
  return Status(status)
      .annotated(fmt::format("{}[{}] '{}'", list, index, escape_text(name)))
      .with_detail("tensor", name);
}

// The name, or that of a cell of a grid.
Result<std::string> object_name(const shw_object_batch& batch, uint64_t index,
                                std::string_view name) {
  SHW_ASSIGN_OR_RETURN(const ColumnRange grid, grid_range(batch.grid_offsets, index));
  if (grid.count == 0) return std::string(name);
  SHW_RETURN_IF_ERROR(need_pointer(batch.grid_shapes, "grid_shapes"));
  SHW_RETURN_IF_ERROR(need_pointer(batch.grid_indices, "grid_indices"));
  return format_object_key(name, {batch.grid_indices + grid.begin, grid.count},
                           {batch.grid_shapes + grid.begin, grid.count});
}

}  // namespace

Status add_tensor_batch(const shw_tensor_batch& batch, State* state) {
  TensorBatchReader reader(batch, *state);
  SHW_RETURN_IF_ERROR(reader.open());
  TensorAdd add(state, batch.count, reader.name_bytes());
  TensorRef entry;
  for (uint64_t i = 0; i < batch.count; ++i) {
    const Status status = reader.read(i, &entry);
    if (!status.ok()) return at_entry(status, "tensors", i, reader.name(i));
    SHW_RETURN_IF_ERROR(add.add(entry));
  }
  return add.commit();
}

Status add_one_tensor(std::string_view name, const shw_tensor& tensor, const PartOf& part,
                      State* state) {
  if ((part.global_shape == nullptr) != (part.offsets == nullptr)) {
    return bad_argument(part.offsets == nullptr ? "offsets" : "global_shape",
                        "is NULL: a part needs both the global shape and its offsets");
  }
  const bool has_values = tensor.ndim > 0 && tensor.ndim <= kMaxTensorRank;  // else refused below
  const uint64_t name_offsets[] = {0, name.size()};
  const uint64_t shape_offsets[] = {0, has_values ? static_cast<uint64_t>(tensor.ndim) : 0};
  const uint64_t box_ranges[] = {0, 1};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = name.data();
  batch.name_offsets = name_offsets;
  batch.tensors = &tensor;
  batch.kinds = &part.kind;
  if (part.global_shape != nullptr) {
    batch.global_shapes = part.global_shape;
    batch.global_shape_offsets = shape_offsets;
    batch.box_ranges = box_ranges;
    batch.box_offsets = part.offsets;
    batch.box_sizes = tensor.shape;
  }
  return add_tensor_batch(batch, state);
}

Result<std::vector<ObjectEntry>> read_object_batch(const shw_object_batch& batch) {
  SHW_ASSIGN_OR_RETURN(const auto names,
                       text_list_argument(batch.names, batch.name_offsets, batch.count, "names"));
  SHW_ASSIGN_OR_RETURN(const auto data,
                       text_list_argument(batch.data, batch.data_offsets, batch.count, "data"));
  SHW_ASSIGN_OR_RETURN(const auto types,
                       optional_texts(batch.content_types, batch.content_type_offsets, batch.count,
                                      "content_types"));
  SHW_ASSIGN_OR_RETURN(const auto paths,
                       optional_texts(batch.paths, batch.path_offsets, batch.count, "paths"));
  std::vector<ObjectEntry> entries;
  entries.reserve(batch.count);
  for (uint64_t i = 0; i < batch.count; ++i) {
    ObjectEntry entry;
    auto name = object_name(batch, i, names.at(i));
    if (!name.ok()) return at_entry(name.status(), "objects", i, names.at(i));
    entry.name = *std::move(name);
    entry.replica = is_replica(batch.replica_ids, i);
    entry.path = paths.at(i);
    auto kind = read_kind(batch.kinds, i);
    if (!kind.ok()) return at_entry(kind.status(), "objects", i, entry.name);
    entry.kind = *kind;
    entry.content_type = types.at(i).empty() ? "application/octet-stream" : types.at(i);
    const auto bytes = std::as_bytes(std::span(data.at(i).data(), data.at(i).size()));
    entry.bytes.assign(bytes.begin(), bytes.end());
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace shardwright::capi
