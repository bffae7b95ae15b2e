// SPDX-License-Identifier: Apache-2.0
#include "core/exec/load_targets_internal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/fragment_reader_internal.h"
#include "core/tensor/cast.h"

namespace shardwright::exec::internal {
namespace {

Status check_cast(const TensorRef& entry, DType stored) {
  if (cast_is_supported(stored, entry.local.dtype)) return {};
  return unimplemented(
             fmt::format("tensor {} is stored as {} and wanted as {}; this cast is not supported",
                         escape_text(entry.name), dtype_name(stored),
                         dtype_name(entry.local.dtype)))
      .with_detail("tensor", entry.name);
}

// True when no two elements share memory: sorted by stride, each dimension steps over what the
// smaller ones reach.
bool elements_are_apart(const TensorSpan& tensor) {
  if (tensor.is_contiguous()) return true;
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] > 1) steps.emplace_back(tensor.strides[d], tensor.shape[d]);
  }
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : steps) {
    if (stride <= reach) return false;
    reach += (extent - 1) * stride;
  }
  return true;
}

Status check_apart(const TensorRef& entry) {
  if (elements_are_apart(entry.local)) return {};
  return invalid_argument(
             fmt::format("elements of the memory for tensor {} overlap (strides [{}]), "
                         "so one would overwrite another; load into a tensor of its own",
                         escape_text(entry.name), fmt::join(entry.local.strides, ", ")))
      .with_detail("tensor", entry.name);
}

}  // namespace

Status check_targets(const plan::LoadPlan& plan, const State& state) {
  for (const plan::CastNote& note : plan.casts) {
    SHW_RETURN_IF_ERROR(check_cast(state.tensors()[note.entry], note.stored));
  }
  std::vector<bool> checked(state.tensors().size(), false);  // a tensor may have many reads
  for (const plan::ReadItem& item : plan.reads) {
    if (checked[item.entry]) continue;
    checked[item.entry] = true;
    const TensorRef entry = state.tensors()[item.entry];
    SHW_RETURN_IF_ERROR(check_writable(entry.local, entry.name));
    SHW_RETURN_IF_ERROR(check_apart(entry));
  }
  return {};
}

}  // namespace shardwright::exec::internal
