// SPDX-License-Identifier: Apache-2.0
//
// A load plan may have travelled; before it is executed it must fit the state and the catalog at
// hand, and fill every element of what it says it loads.
#include "core/plan/load/make_load_plan.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/layout/box_bytes.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/load/match_internal.h"
#include "core/plan/load_plan.h"

namespace shardwright::plan {
namespace {

bool contains(const Box& outer, const Box& inner) {
  for (size_t d = 0; d < outer.sizes.size(); ++d) {
    if (inner.offsets[d] < outer.offsets[d] || inner.sizes[d] > outer.sizes[d] ||
        inner.offsets[d] - outer.offsets[d] > outer.sizes[d] - inner.sizes[d]) {
      return false;
    }
  }
  return true;
}

class LoadPlanCheck {
 public:
  LoadPlanCheck(const LoadPlan& plan, const State& state, const Catalog& stored)
      : plan_(plan),
        state_(state),
        stored_(stored),
        missing_(plan.missing.begin(), plan.missing.end()),
        tensor_of_(state.tensors().size(), kUnread),
        casts_(state.tensors().size()),
        shapes_(state.tensors().size(), kUnread) {
    for (const TensorRef entry : state.tensors()) {
      piece_begins_.push_back(filled_.size());
      filled_.resize(filled_.size() + entry.pieces.size());
    }
  }

  Status run() {
    SHW_RETURN_IF_ERROR(check_casts());
    SHW_RETURN_IF_ERROR(check_shapes());
    SHW_RETURN_IF_ERROR(check_order());
    for (size_t i = 0; i < plan_.reads.size(); ++i) SHW_RETURN_IF_ERROR(check_read(plan_.reads[i]));
    SHW_RETURN_IF_ERROR(check_filled());
    return check_objects();
  }

 private:
  static constexpr int64_t kUnread = -1;

  template <typename... Arguments>
  Status unfit(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    return failed_precondition(
               fmt::format("the load plan of rank {} does not fit: {}; make a plan of this state "
                           "and checkpoint",
                           plan_.rank, fmt::format(format, std::forward<Arguments>(arguments)...)))
        .with_detail("rank", std::to_string(plan_.rank));
  }

  // Whether an entry of that name is filled from the stored record that is named so.
  bool is_filled_from(std::string_view name, const auto& record, std::string_view stored) const {
    return stored == name && (record.rank < 0 || record.rank == plan_.rank);
  }

  Status check_casts() {
    for (const CastNote& note : plan_.casts) {
      if (note.entry >= casts_.size())
        return unfit("it casts tensor {} of {}", note.entry, casts_.size());
      casts_[note.entry] = note;
    }
    return {};
  }

  // A note of another shape names the stored tensor of that name and as many dimensions.
  Status check_shapes() {
    for (const ShapeNote& note : plan_.shapes) {
      if (note.entry >= shapes_.size() || note.tensor >= stored_.tensors.size()) {
        return unfit("it gives tensor {} of {} the shape of stored tensor {}", note.entry,
                     shapes_.size(), note.tensor);
      }
      const TensorRef entry = state_.tensors()[note.entry];
      const TensorRecord& record = stored_.tensors[note.tensor];
      if (!is_filled_from(entry.name, record, stored_.tensor_name(note.tensor)) ||
          record.dimension_count != entry.global_shape.size() || dtype_is_subbyte(record.dtype)) {
        return unfit("tensor '{}' is cropped or padded from stored tensor '{}'",
                     escape_text(entry.name), escape_text(stored_.tensor_name(note.tensor)));
      }
      shapes_[note.entry] = static_cast<int64_t>(note.tensor);
    }
    return {};
  }

  Status check_order() const {
    for (size_t i = 1; i < plan_.reads.size(); ++i) {
      if (plan_.reads.key(i - 1) >= plan_.reads.key(i))
        return unfit("read {} does not follow read {}", i, i - 1);
    }
    return {};
  }

  Status check_read(const ReadItem& read) {
    if (read.entry >= state_.tensors().size() || read.chunk >= stored_.chunk_count() ||
        read.piece >= state_.tensors()[read.entry].pieces.size()) {
      return unfit("it reads chunk {} into piece {} of tensor {}", read.chunk, read.piece,
                   read.entry);
    }
    const TensorRef entry = state_.tensors()[read.entry];
    const auto tensor = static_cast<uint32_t>(stored_.tensor_of(read.chunk));
    SHW_RETURN_IF_ERROR(check_tensor(entry, read.entry, tensor));
    const Box piece = entry.pieces[read.piece].box;
    if (!check_box(read.box, entry.global_shape).ok() || box_is_empty(read.box) ||
        !contains(piece, read.box) || !contains(stored_.chunk_box(read.chunk), read.box)) {
      return unfit("a read of tensor '{}' leaves its chunk or its piece", escape_text(entry.name));
    }
    SHW_RETURN_IF_ERROR(
        check_whole_bytes(entry.name, stored_.tensors[tensor].dtype, entry.global_shape, read.box));
    Filled& filled = filled_[piece_begins_[read.entry] + read.piece];
    filled.corners = internal::add(filled.corners, corners_of(read.box));
    filled.elements += static_cast<uint64_t>(box_element_count(read.box));
    return {};
  }

  // All reads of an entry come from one stored tensor of its name and shape, and a cast is listed.
  Status check_tensor(const TensorRef& entry, uint32_t entry_index, uint32_t tensor) {
    int64_t& known = tensor_of_[entry_index];
    if (known == tensor) return {};
    const TensorRecord& record = stored_.tensors[tensor];
    const bool shape_fits = shapes_[entry_index] == kUnread
                                ? std::ranges::equal(stored_.shape(tensor), entry.global_shape)
                                : shapes_[entry_index] == tensor;
    if (known != kUnread || !shape_fits ||
        !is_filled_from(entry.name, record, stored_.tensor_name(tensor))) {
      return unfit("tensor '{}' is filled from stored tensor '{}'", escape_text(entry.name),
                   escape_text(stored_.tensor_name(tensor)));
    }
    known = tensor;
    if (record.dtype == entry.local.dtype) return {};
    const CastNote& note = casts_[entry_index];
    if (note.stored == record.dtype && note.wanted == entry.local.dtype) return {};
    return unfit("tensor '{}' is stored as {} and wanted as {}, and no cast is listed",
                 escape_text(entry.name), dtype_name(record.dtype), dtype_name(entry.local.dtype));
  }

  // Every piece is filled whole, or its tensor is listed as missing and untouched.
  Status check_filled() const {
    for (size_t t = 0; t < state_.tensors().size(); ++t) {
      const TensorRef entry = state_.tensors()[t];
      if (tensor_of_[t] == kUnread && missing_.contains(entry.name)) continue;
      SHW_RETURN_IF_ERROR(internal::check_local_runs_apart(entry));
      for (size_t p = 0; p < entry.pieces.size(); ++p) {
        const Box box = wanted_box(entry.pieces[p].box, shapes_[t]);
        SHW_RETURN_IF_ERROR(check_piece(entry.name, box, filled_[piece_begins_[t] + p]));
      }
    }
    return {};
  }

  // The part of a piece that reads fill.
  Box wanted_box(const Box& piece, int64_t stored_tensor) const {
    if (stored_tensor == kUnread) return piece;
    return intersect(piece, whole_box(stored_.shape(static_cast<size_t>(stored_tensor))));
  }

  struct Filled {
    internal::CornerSum corners;  // of the reads into one piece
    uint64_t elements = 0;        // wraps around where reads overlap without end; for messages
  };

  Status check_piece(std::string_view name, const Box& box, const Filled& filled) const {
    if (filled.corners == corners_of(box)) return {};
    const auto wanted = static_cast<uint64_t>(box_element_count(box));
    if (filled.elements != wanted) {
      return unfit("it fills {} of {} elements of box {} of tensor '{}'", filled.elements, wanted,
                   box_text(box), escape_text(name));
    }
    return unfit("it fills some elements of box {} of tensor '{}' twice and some never",
                 box_text(box), escape_text(name));
  }

  static internal::CornerSum corners_of(const Box& box) {
    std::array<internal::Interval, kMaxTensorRank> intervals;
    for (size_t d = 0; d < box.sizes.size(); ++d)
      intervals[d] = {box.offsets[d], box.offsets[d] + box.sizes[d]};
    return internal::box_corner_sum({intervals.data(), box.sizes.size()});
  }

  Status check_objects() const {
    std::vector<bool> read(state_.objects().size(), false);
    for (const ObjectRead& each : plan_.objects) {
      if (each.entry >= state_.objects().size() || each.object >= stored_.objects.size() ||
          read[each.entry]) {
        return unfit("it reads stored object {} into object {}", each.object, each.entry);
      }
      read[each.entry] = true;
      if (!is_filled_from(state_.objects()[each.entry].name, stored_.objects[each.object],
                          stored_.object_name(each.object))) {
        return unfit("object '{}' is filled from stored object '{}'",
                     escape_text(state_.objects()[each.entry].name),
                     escape_text(stored_.object_name(each.object)));
      }
    }
    for (size_t i = 0; i < read.size(); ++i) {
      const std::string& name = state_.objects()[i].name;
      if (!read[i] && !missing_.contains(name)) {
        return unfit("object '{}' is neither read nor listed as missing", escape_text(name));
      }
    }
    return {};
  }

  const LoadPlan& plan_;
  const State& state_;
  const Catalog& stored_;
  std::unordered_set<std::string_view> missing_;
  std::vector<int64_t> tensor_of_;    // stored tensor of each entry, kUnread before its first read
  std::vector<CastNote> casts_;       // per entry; kInvalid when none is listed
  std::vector<int64_t> shapes_;       // stored tensor of an entry of another shape, else kUnread
  std::vector<size_t> piece_begins_;  // of each entry in filled_
  std::vector<Filled> filled_;        // per piece
};

}  // namespace

Status check_load_plan(const LoadPlan& plan, const State& state, const Catalog& stored) {
  return LoadPlanCheck(plan, state, stored).run();
}

}  // namespace shardwright::plan
