// SPDX-License-Identifier: Apache-2.0
//
// Staging of an asynchronous save: every tensor is copied into one private block, packed, on all
// workers; then the host may change its own. Where everything goes is planned first. Pages that are
// not there yet are made in bulk, each worker those that it fills; the next save of the runtime
// finds them, and the first one those that were prepared. The copy describes the same boxes, so
// plans made from either are equal.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/huge_pages.h"
#include "core/base/limits.h"
#include "core/device/devices.h"
#include "core/exec/batches_internal.h"
#include "core/exec/parallel_internal.h"
#include "core/exec/save.h"

namespace shardwright::exec {
namespace {

constexpr uint64_t kStagedAlignmentBytes = 64;
constexpr uint64_t kCopyStepBytes = uint64_t{8} << 20;

struct Copy {
  device::DeviceWindow from;
  size_t tensor = 0;
  uint64_t begin = 0;  // in the packed bytes of `from`
  uint64_t bytes = 0;
  uint64_t target = 0;  // in the block
};

struct Staging {
  std::vector<uint64_t> places;  // in the block, per tensor
  std::vector<Copy> copies;
  uint64_t size_bytes = 0;
};

// What a tensor lies in: its local tensor, or the memory of its pieces in their order.
Result<std::vector<device::DeviceWindow>> windows_of(const device::Devices& devices,
                                                     const State& state, size_t tensor) {
  const TensorRef entry = state.tensors()[tensor];
  std::vector<device::DeviceWindow> windows;
  for (size_t p = 0; entry.memory.exists() && p < entry.pieces.size(); ++p) {
    if (element_count_of(entry.pieces.sizes(p)) == 0) continue;
    SHW_ASSIGN_OR_RETURN(device::DeviceWindow window, devices.piece_window(state, tensor, p));
    windows.push_back(std::move(window));
  }
  if (entry.memory.exists()) return windows;
  SHW_ASSIGN_OR_RETURN(device::DeviceWindow window,
                       devices.whole_window(entry.local, state.access_to(entry.local)));
  windows.push_back(std::move(window));
  return windows;
}

Status place_tensor(const device::Devices& devices, const State& state, size_t tensor,
                    Staging* staging) {
  const TensorRef entry = state.tensors()[tensor];
  SHW_RETURN_IF_ERROR(
      devices.check_readable(entry.local, entry.name, state.access_to(entry.local)));
  SHW_ASSIGN_OR_RETURN(const std::vector<device::DeviceWindow> windows,
                       windows_of(devices, state, tensor));
  uint64_t bytes = 0;
  for (const device::DeviceWindow& window : windows) {
    if (!checked_add(bytes, window_bytes(window.elements), &bytes))
      return invalid_argument("the bytes of a tensor cannot be counted");
  }
  uint64_t place = 0;
  if (!checked_round_up(staging->size_bytes, kStagedAlignmentBytes, &place) ||
      !checked_add(place, bytes, &staging->size_bytes)) {
    return invalid_argument("the bytes of the state cannot be counted");
  }
  staging->places.push_back(place);
  for (const device::DeviceWindow& from : windows) {
    const uint64_t end = window_bytes(from.elements);
    for (uint64_t begin = 0; begin < end; begin += kCopyStepBytes)
      staging->copies.push_back(
          {from, tensor, begin, std::min(kCopyStepBytes, end - begin), place + begin});
    place += end;
  }
  return {};
}

Result<Staging> place_state(const device::Devices& devices, const State& state) {
  Staging staging;
  staging.places.reserve(state.tensors().size());
  for (size_t tensor = 0; tensor < state.tensors().size(); ++tensor)
    SHW_RETURN_IF_ERROR(place_tensor(devices, state, tensor, &staging));
  return staging;
}

// The same entries with their memory in the block.
Status describe_copies(const State& state, std::byte* block, const std::vector<uint64_t>& places,
                       State* staged) {
  TensorAdd batch(staged, places.size(), 0);
  for (size_t i = 0; i < places.size(); ++i) {
    TensorRef tensor = state.tensors()[i];
    const bool empty = tensor.local.element_count() == 0;
    TensorSpan copy;
    copy.data = empty ? nullptr : block + places[i];
    copy.dtype = tensor.local.dtype;
    copy.shape = tensor.local.shape;
    copy.read_only = true;
    tensor.local = copy;
    tensor.memory = {};
    SHW_RETURN_IF_ERROR(batch.add(tensor));
  }
  return batch.commit();
}

Status copy_group(const State& state, std::span<const Copy> copies,
                  const KeptMemory::Block& block) {
  const uint64_t first = copies.front().target;
  const uint64_t end = copies.back().target + copies.back().bytes;
  // Where the system cannot, the copies make them one by one.
  if (!block.is_resident)
    static_cast<void>(populate_pages(block.memory.get() + first, end - first));
  for (const Copy& copy : copies) {
    const std::span to(block.memory.get() + copy.target, static_cast<size_t>(copy.bytes));
    SHW_RETURN_IF_ERROR(device::with_tensor(copy.from.device->gather(copy.from, copy.begin, to),
                                            "copying", state.tensors().name(copy.tensor)));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const State>> stage_state(Runtime& runtime, const State& state,
                                                 const CallContext& call) {
  if (call.progress != nullptr) call.progress->enter(Stage::kStaging);
  SHW_ASSIGN_OR_RETURN(const Staging staging, place_state(runtime.devices(), state));
  SHW_ASSIGN_OR_RETURN(const KeptMemory::Block block,
                       runtime.staged_states().acquire(staging.size_bytes));
  const std::vector<size_t> begins = internal::batch_begins(
      staging.copies, kCopyStepBytes, [](const Copy& copy) { return copy.bytes; });
  SHW_RETURN_IF_ERROR(
      internal::run_each(runtime.pool(), begins.size() - 1, call.control, [&](size_t group) {
        const std::span copies(staging.copies.data() + begins[group],
                               begins[group + 1] - begins[group]);
        return copy_group(state, copies, block);
      }));
  auto staged = std::make_shared<State>();
  SHW_RETURN_IF_ERROR(describe_copies(state, block.memory.get(), staging.places, staged.get()));
  SHW_RETURN_IF_ERROR(staged->add_objects(state.objects()));
  staged->add_keepalive(block.memory);
  return std::shared_ptr<const State>(std::move(staged));
}

Status prepare_staging(Runtime& runtime, const State& state, const CallControl& control) {
  SHW_ASSIGN_OR_RETURN(const Staging staging, place_state(runtime.devices(), state));
  SHW_ASSIGN_OR_RETURN(const KeptMemory::Block block,
                       runtime.staged_states().acquire(staging.size_bytes));
  const uint64_t steps = (staging.size_bytes + kCopyStepBytes - 1) / kCopyStepBytes;
  return internal::run_each(runtime.pool(), steps, control, [&](size_t step) {
    const uint64_t begin = step * kCopyStepBytes;
    const uint64_t bytes = std::min(kCopyStepBytes, staging.size_bytes - begin);
    if (make_pages(block.memory.get() + begin, bytes)) return Status();
    return resource_exhausted("memory", fmt::format("the system has no pages for {} bytes of "
                                                    "staging memory",
                                                    staging.size_bytes));
  });
}

}  // namespace shardwright::exec
