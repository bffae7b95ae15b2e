// SPDX-License-Identifier: Apache-2.0
#include "core/exec/load_targets_internal.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::exec::internal {
namespace {

Status check_cast(const device::Devices& devices, const State& state, size_t tensor, DType stored) {
  const TensorRef entry = state.tensors()[tensor];
  const WindowAccess* const access = state.access_to(entry.local);
  const device::Device* const device = devices.find(entry.local, access);
  if (device == nullptr) return devices.check_writable(entry.local, entry.name, access);
  if (device->casts(stored, entry.local.dtype)) return {};
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

Status check_apart(const TensorSpan& memory, std::string_view name) {
  if (elements_are_apart(memory)) return {};
  return invalid_argument(
             fmt::format("elements of the memory for tensor {} overlap (strides [{}]), "
                         "so one would overwrite another; load into a tensor of its own",
                         escape_text(name), fmt::join(memory.strides, ", ")))
      .with_detail("tensor", name);
}

Status check_apart(const TensorRef& entry) {
  if (!entry.memory.exists()) return check_apart(entry.local, entry.name);
  for (size_t p = 0; p < entry.pieces.size(); ++p)
    SHW_RETURN_IF_ERROR(check_apart(memory_of_piece(entry, p), entry.name));
  return {};
}

}  // namespace

Status check_targets(const device::Devices& devices, const plan::LoadPlan& plan,
                     const State& state) {
  for (const plan::CastNote& note : plan.casts) {
    SHW_RETURN_IF_ERROR(check_cast(devices, state, note.entry, note.stored));
  }
  std::vector<bool> checked(state.tensors().size(), false);  // a tensor may have many reads
  const auto check = [&](uint32_t index) -> Status {
    if (checked[index]) return {};
    checked[index] = true;
    const TensorRef entry = state.tensors()[index];
    SHW_RETURN_IF_ERROR(
        devices.check_writable(entry.local, entry.name, state.access_to(entry.local)));
    return check_apart(entry);
  };
  for (size_t i = 0; i < plan.reads.size(); ++i)
    SHW_RETURN_IF_ERROR(check(plan.reads.key(i).entry));
  for (const plan::ShapeNote& note : plan.shapes) SHW_RETURN_IF_ERROR(check(note.entry));
  for (const ZeroedMemory& zeroed : state.zeroed())
    SHW_RETURN_IF_ERROR(
        devices.check_writable(zeroed.memory, zeroed.name, state.access_to(zeroed.memory)));
  return {};
}

Status fill_padding(const device::Devices& devices, const plan::LoadPlan& plan,
                    const plan::Catalog& stored, const State& state) {
  for (const plan::ShapeNote& note : plan.shapes) {
    const Box stored_box = whole_box(stored.shape(note.tensor));
    const TensorRef entry = state.tensors()[note.entry];
    for (size_t p = 0; p < entry.pieces.size(); ++p) {
      const Box piece = entry.pieces[p].box;
      if (intersect(piece, stored_box) == piece) continue;
      SHW_ASSIGN_OR_RETURN(const device::DeviceWindow window,
                           devices.piece_window(state, note.entry, p));
      SHW_RETURN_IF_ERROR(
          device::with_tensor(window.device->fill_zero(window), "filling", entry.name));
    }
  }
  return {};
}

Status zero_left_out(const device::Devices& devices, const State& state) {
  for (const ZeroedMemory& zeroed : state.zeroed()) {
    const TensorSpan memory = zeroed.memory;
    SHW_ASSIGN_OR_RETURN(const device::DeviceWindow window,
                         devices.whole_window(memory, state.access_to(memory)));
    SHW_RETURN_IF_ERROR(
        device::with_tensor(window.device->fill_zero(window), "clearing", zeroed.name));
  }
  return {};
}

}  // namespace shardwright::exec::internal
