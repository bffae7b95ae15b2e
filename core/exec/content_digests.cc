// SPDX-License-Identifier: Apache-2.0
//
// Digests of replicated entries.
#include "core/exec/content_digests_internal.h"

#include <algorithm>

#include "core/exec/parallel_internal.h"
#include "core/integrity/digest.h"
#include "core/tensor/strided_copy.h"

namespace shardwright::exec::internal {
namespace {

constexpr size_t kGatherStepBytes = size_t{128} * 1024;
constexpr size_t kEntriesPerPiece = 256;  // small entries share one piece of work

integrity::Digest128 digest_window(const StridedWindow& window) {
  const auto size_bytes = static_cast<size_t>(window_bytes(window));
  if (window_is_contiguous(window)) return integrity::xxh3_128({window.data, size_bytes});
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
  std::vector<std::byte> step(std::min(size_bytes, kGatherStepBytes));
  for (size_t done = 0; done < size_bytes; done += kGatherStepBytes) {
    const auto part = std::span(step).first(std::min(kGatherStepBytes, size_bytes - done));
    gather(window, done, part);
    digester.update(part);
  }
  integrity::Digest128 digest{};
  std::ranges::copy(digester.finish(), digest.begin());
  return digest;
}

// The tensor in row-major order, from its pieces.
Result<integrity::Digest128> digest_pieces(const State& state, size_t tensor) {
  const TensorEntry& entry = state.tensors()[tensor];
  SHW_ASSIGN_OR_RETURN(
      const uint64_t size_bytes,
      dtype_packed_bytes(entry.local.dtype, box_element_count(whole_box(entry.global_shape))));
  std::vector<std::byte> whole(static_cast<size_t>(size_bytes));
  TensorView view;
  view.data = whole.data();
  view.dtype = entry.local.dtype;
  view.shape = entry.global_shape;
  for (size_t piece = 0; piece < entry.pieces.size(); ++piece) {
    const Box& box = entry.pieces[piece].box;
    if (box_is_empty(box)) continue;
    SHW_ASSIGN_OR_RETURN(const StridedWindow from, state.piece_window(tensor, piece));
    SHW_ASSIGN_OR_RETURN(const StridedWindow to, window_of(view, box.offsets, box.sizes));
    copy_window(from, to);
  }
  return integrity::xxh3_128(whole);
}

Result<integrity::Digest128> digest_tensor(const State& state, size_t tensor) {
  const TensorEntry& entry = state.tensors()[tensor];
  if (entry.pieces.size() != 1 || entry.pieces[0].box.sizes != entry.global_shape)
    return digest_pieces(state, tensor);
  SHW_ASSIGN_OR_RETURN(const StridedWindow window, state.piece_window(tensor, 0));
  return digest_window(window);
}

}  // namespace

Result<plan::ReplicaDigests> content_digests(Runtime& runtime, const State& state,
                                             const plan::SaveRules& rules,
                                             const CallControl& control) {
  const plan::DigestNeeds needs = plan::replica_digest_needs(state, rules);
  plan::ReplicaDigests digests;
  digests.tensors.resize(state.tensors().size());
  digests.objects.resize(state.objects().size());
  const size_t pieces = (needs.tensors.size() + kEntriesPerPiece - 1) / kEntriesPerPiece;
  SHW_RETURN_IF_ERROR(run_each(runtime.pool(), pieces, control, [&](size_t piece) {
    const size_t end = std::min(needs.tensors.size(), (piece + 1) * kEntriesPerPiece);
    for (size_t i = piece * kEntriesPerPiece; i < end; ++i) {
      const size_t tensor = needs.tensors[i];
      SHW_ASSIGN_OR_RETURN(digests.tensors[tensor], digest_tensor(state, tensor));
    }
    return Status();
  }));
  for (const size_t object : needs.objects)
    digests.objects[object] = integrity::xxh3_128(state.objects()[object].bytes);
  return digests;
}

}  // namespace shardwright::exec::internal
