// SPDX-License-Identifier: Apache-2.0
//
// Digests of what several ranks may hold.
#include "core/exec/content_digests_internal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/device/devices.h"
#include "core/exec/parallel_internal.h"
#include "core/integrity/digest.h"
#include "core/plan/describe/replica_digests.h"

namespace shardwright::exec::internal {
namespace {

constexpr size_t kDigestStepBytes = size_t{128} * 1024;
constexpr uint64_t kBatchBytes = uint64_t{4} << 20;
constexpr size_t kBatchEntries = 256;

Status update(integrity::TensorDigester& digester, const device::DeviceWindow& window) {
  const auto size_bytes = static_cast<size_t>(window_bytes(window.elements));
  if (const std::span<std::byte> bytes = window.device->host_bytes(window); !bytes.empty()) {
    digester.update(bytes);
    return {};
  }
  std::vector<std::byte> step(std::min(size_bytes, kDigestStepBytes));
  for (size_t done = 0; done < size_bytes; done += kDigestStepBytes) {
    const auto part = std::span(step).first(std::min(kDigestStepBytes, size_bytes - done));
    SHW_RETURN_IF_ERROR(window.device->gather(window, done, part));
    digester.update(part);
  }
  return {};
}

integrity::Digest128 finish(integrity::TensorDigester& digester) {
  integrity::Digest128 digest{};
  std::ranges::copy(digester.finish(), digest.begin());
  return digest;
}

Result<integrity::Digest128> digest_window(const device::DeviceWindow& window) {
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
  SHW_RETURN_IF_ERROR(update(digester, window));
  return finish(digester);
}

// The boxes one after the other in the order of their offsets, which is the same on every rank that
// holds them.
Result<integrity::Digest128> digest_boxes(const device::Devices& devices, const State& state,
                                          size_t tensor) {
  const PieceList pieces = state.tensors()[tensor].pieces;
  std::vector<size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::ranges::lexicographical_compare(pieces.offsets(a), pieces.offsets(b));
  });
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
  for (const size_t piece : order) {
    if (element_count_of(pieces.sizes(piece)) == 0) continue;
    SHW_ASSIGN_OR_RETURN(const device::DeviceWindow window,
                         devices.piece_window(state, tensor, piece));
    SHW_RETURN_IF_ERROR(update(digester, window));
  }
  return finish(digester);
}

// The tensor in row-major order, from its pieces.
Result<integrity::Digest128> digest_pieces(const device::Devices& devices, const State& state,
                                           size_t tensor) {
  const TensorRef entry = state.tensors()[tensor];
  SHW_ASSIGN_OR_RETURN(const uint64_t size_bytes,
                       dtype_packed_bytes(entry.local.dtype, element_count_of(entry.global_shape)));
  std::vector<std::byte> whole(static_cast<size_t>(size_bytes));
  std::vector<std::byte> packed;
  TensorView view;
  view.data = whole.data();
  view.dtype = entry.local.dtype;
  view.shape = Dims(entry.global_shape);
  for (size_t piece = 0; piece < entry.pieces.size(); ++piece) {
    const std::span<const int64_t> sizes = entry.pieces.sizes(piece);
    if (element_count_of(sizes) == 0) continue;
    SHW_ASSIGN_OR_RETURN(const device::DeviceWindow from,
                         devices.piece_window(state, tensor, piece));
    SHW_ASSIGN_OR_RETURN(StridedWindow elements,
                         window_of(view, entry.pieces.offsets(piece), sizes));
    packed.resize(static_cast<size_t>(window_bytes(elements)));
    SHW_RETURN_IF_ERROR(from.device->gather(from, 0, packed));
    SHW_ASSIGN_OR_RETURN(const device::DeviceWindow to, devices.place(view, std::move(elements)));
    SHW_RETURN_IF_ERROR(to.device->scatter(packed, to, 0));
  }
  return integrity::xxh3_128(whole);
}

Result<integrity::Digest128> digest_tensor(const device::Devices& devices, const State& state,
                                           const plan::DigestNeeds::Tensor& need) {
  const size_t tensor = need.index;
  if (need.by_boxes) return digest_boxes(devices, state, tensor);
  const TensorRef entry = state.tensors()[tensor];
  if (!covers_whole(entry)) return digest_pieces(devices, state, tensor);
  SHW_ASSIGN_OR_RETURN(const device::DeviceWindow window, devices.piece_window(state, tensor, 0));
  return digest_window(window);
}

// Where each worker's share of the tensors begins, and the end: small ones share a piece of work.
std::vector<size_t> batches_of(const State& state,
                               const std::vector<plan::DigestNeeds::Tensor>& needs) {
  std::vector<size_t> begins{0};
  uint64_t bytes = 0;
  for (size_t i = 0; i < needs.size(); ++i) {
    const TensorSpan local = state.tensors()[needs[i].index].local;
    const auto bits = static_cast<uint64_t>(dtype_bits(local.dtype));
    bytes += static_cast<uint64_t>(local.element_count()) * bits / 8;
    if (bytes < kBatchBytes && i + 1 - begins.back() < kBatchEntries) continue;
    begins.push_back(i + 1);
    bytes = 0;
  }
  if (begins.back() != needs.size()) begins.push_back(needs.size());
  return begins;
}

}  // namespace

Result<plan::ReplicaDigests> content_digests(Runtime& runtime, const State& state,
                                             const plan::SaveRules& rules,
                                             const CallControl& control) {
  const plan::DigestNeeds needs = plan::replica_digest_needs(state, rules);
  plan::ReplicaDigests digests;
  digests.tensors.resize(state.tensors().size());
  digests.objects.resize(state.objects().size());
  const std::vector<size_t> begins = batches_of(state, needs.tensors);
  SHW_RETURN_IF_ERROR(run_each(runtime.pool(), begins.size() - 1, control, [&](size_t share) {
    for (size_t i = begins[share]; i < begins[share + 1]; ++i) {
      const plan::DigestNeeds::Tensor& need = needs.tensors[i];
      Result<integrity::Digest128> digest = digest_tensor(runtime.devices(), state, need);
      if (!digest.ok()) {
        return device::with_tensor(digest.status(), "reading", state.tensors().name(need.index));
      }
      digests.tensors[need.index] = *digest;
    }
    return Status();
  }));
  for (const size_t object : needs.objects)
    digests.objects[object] = integrity::xxh3_128(state.objects()[object].bytes);
  return digests;
}

}  // namespace shardwright::exec::internal
