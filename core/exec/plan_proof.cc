// SPDX-License-Identifier: Apache-2.0
//
// Each item lies in its chunk and its piece. Stored chunks do not overlap, so the items of a piece
// fill it exactly once when no (chunk, piece) pair comes twice and the elements add up.
#include "core/exec/plan_proof_internal.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/fragment_reader_internal.h"
#include "core/tensor/cast.h"

namespace shardwright::exec::internal {
namespace {

Status foreign_plan(std::string what) {
  return failed_precondition(fmt::format(
      "the load plan does not fit: {}; make a plan of this state and checkpoint", what));
}

bool inside(const Box& part, const Box& whole) {
  if (part.sizes.size() != whole.sizes.size()) return false;
  for (size_t d = 0; d < part.sizes.size(); ++d) {
    const int64_t begin = part.offsets[d] - whole.offsets[d];
    if (part.sizes[d] <= 0 || begin < 0 || begin > whole.sizes[d] ||
        part.sizes[d] > whole.sizes[d] - begin) {
      return false;
    }
  }
  return true;
}

Status check_cast(const TensorEntry& entry, DType stored) {
  if (cast_is_supported(stored, entry.local.dtype)) return {};
  return unimplemented(
             fmt::format("tensor {} is stored as {} and wanted as {}; this cast is not supported",
                         escape_text(entry.name), dtype_name(stored),
                         dtype_name(entry.local.dtype)))
      .with_detail("tensor", entry.name);
}

// Proof that a plan fits a state and a checkpoint.
class PlanProof {
 public:
  PlanProof(const plan::Catalog& stored, const plan::LoadPlan& plan, const State& state)
      : stored_(stored), plan_(plan), state_(state) {}

  Status check() {
    first_piece_.reserve(state_.tensors().size());
    size_t pieces = 0;
    for (const TensorEntry& entry : state_.tensors()) {
      first_piece_.push_back(pieces);
      pieces += entry.pieces.size();
    }
    filled_.assign(pieces, 0);
    for (const plan::ReadItem& item : plan_.reads) SHW_RETURN_IF_ERROR(check_item(item));
    SHW_RETURN_IF_ERROR(check_filled());
    return check_objects();
  }

 private:
  Status check_item(const plan::ReadItem& item) {
    if (item.chunk >= stored_.chunks.size() || item.entry >= state_.tensors().size()) {
      return foreign_plan("it names a chunk or an entry that is not there");
    }
    const TensorEntry& entry = state_.tensors()[item.entry];
    const size_t tensor = stored_.chunks[item.chunk].tensor;
    if (stored_.tensor_name(tensor) != entry.name || item.piece >= entry.pieces.size()) {
      return foreign_plan(fmt::format("it reads {} into {}",
                                      escape_text(stored_.tensor_name(tensor)),
                                      escape_text(entry.name)));
    }
    if (!inside(item.box, entry.pieces[item.piece].box) ||
        !inside(item.box, stored_.chunk_box(item.chunk))) {
      return foreign_plan(fmt::format("box {} of {} leaves its chunk or its piece",
                                      box_text(item.box), escape_text(entry.name)));
    }
    if (!std::equal(entry.global_shape.begin(), entry.global_shape.end(),
                    stored_.shape(tensor).begin(), stored_.shape(tensor).end())) {
      return foreign_plan(fmt::format("the shape of {} differs", escape_text(entry.name)));
    }
    const size_t piece = first_piece_[item.entry] + item.piece;
    const bool ascending = &item == plan_.reads.data() || !same_pair(*(&item - 1), item);
    if (!ascending)
      return foreign_plan(fmt::format("it fills a box of {} twice", escape_text(entry.name)));
    filled_[piece] += box_element_count(item.box);
    return check_dtype(item, entry, stored_.tensors[tensor].dtype);
  }

  // Reads ascend by chunk, so equal pairs would be neighbours of the same chunk.
  bool same_pair(const plan::ReadItem& earlier, const plan::ReadItem& item) {
    if (earlier.chunk != item.chunk) {
      if (!pairs_of_chunk_.empty()) pairs_of_chunk_.clear();
      return earlier.chunk > item.chunk;
    }
    pairs_of_chunk_.insert(pair_of(earlier));
    return !pairs_of_chunk_.insert(pair_of(item)).second;
  }
  static uint64_t pair_of(const plan::ReadItem& item) {
    return (uint64_t{item.entry} << 32) | item.piece;
  }

  Status check_dtype(const plan::ReadItem& item, const TensorEntry& entry, DType stored) {
    const DType wanted = entry.local.dtype;
    if (stored == wanted) return {};
    const bool noted =
        std::any_of(plan_.casts.begin(), plan_.casts.end(), [&](const plan::CastNote& note) {
          return note.entry == item.entry && note.stored == stored && note.wanted == wanted;
        });
    if (!noted)
      return foreign_plan(fmt::format("the dtype of {} differs", escape_text(entry.name)));
    return check_cast(entry, stored);
  }

  Status check_filled() {
    const std::unordered_set<std::string_view> missing(plan_.missing.begin(), plan_.missing.end());
    for (size_t i = 0; i < state_.tensors().size(); ++i) {
      const TensorEntry& entry = state_.tensors()[i];
      bool touched = false;
      bool full = true;
      for (size_t p = 0; p < entry.pieces.size(); ++p) {
        const int64_t count = filled_[first_piece_[i] + p];
        touched = touched || count > 0;
        full = full && count == box_element_count(entry.pieces[p].box);
      }
      if (!full && (touched || !missing.contains(entry.name))) {
        return foreign_plan(fmt::format("it does not fill {}", escape_text(entry.name)));
      }
      if (touched) SHW_RETURN_IF_ERROR(check_writable(entry.local, entry.name));
    }
    return {};
  }

  Status check_objects() const {
    std::vector<bool> read_once(state_.objects().size(), false);
    for (const plan::ObjectRead& read : plan_.objects) {
      if (read.object >= stored_.objects.size() || read.entry >= state_.objects().size() ||
          stored_.object_name(read.object) != state_.objects()[read.entry].name ||
          read_once[read.entry]) {
        return foreign_plan("it names an object that is not there, or one twice");
      }
      read_once[read.entry] = true;
    }
    const std::unordered_set<std::string_view> missing(plan_.missing.begin(), plan_.missing.end());
    for (size_t i = 0; i < read_once.size(); ++i) {
      const std::string& name = state_.objects()[i].name;
      if (!read_once[i] && !missing.contains(name)) {
        return foreign_plan(fmt::format("it does not fill object {}", escape_text(name)));
      }
    }
    return {};
  }

  const plan::Catalog& stored_;
  const plan::LoadPlan& plan_;
  const State& state_;
  std::vector<size_t> first_piece_;  // per entry: number of its first piece among all pieces
  std::vector<int64_t> filled_;      // elements per piece
  std::unordered_set<uint64_t> pairs_of_chunk_;
};

}  // namespace

Status prove_load_plan(const plan::Catalog& stored, const plan::LoadPlan& plan,
                       const State& state) {
  return PlanProof(stored, plan, state).check();
}

Status check_targets(const plan::LoadPlan& plan, const State& state) {
  for (const plan::CastNote& note : plan.casts) {
    SHW_RETURN_IF_ERROR(check_cast(state.tensors()[note.entry], note.stored));
  }
  for (const plan::ReadItem& item : plan.reads) {
    const TensorEntry& entry = state.tensors()[item.entry];
    const bool writable =
        device_is_host_accessible(entry.local.device_type) && !entry.local.read_only;
    if (!writable) return check_writable(entry.local, entry.name);
  }
  return {};
}

}  // namespace shardwright::exec::internal
