// SPDX-License-Identifier: Apache-2.0
//
// The proof that each tensor is covered exactly once, and its sentences.
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"

namespace shardwright::plan {
namespace {

std::string tensor_text(const Catalog& catalog, size_t tensor) {
  return fmt::format("tensor '{}' of shape [{}]", escape_text(catalog.tensor_name(tensor)),
                     fmt::join(catalog.shape(tensor), ", "));
}

Status hole_status(const Catalog& catalog, size_t tensor, const Box& hole,
                   std::string_view place_noun) {
  const std::string box = box_text(hole);
  return invalid_argument(
             fmt::format("{}: no {} holds box {}", tensor_text(catalog, tensor), place_noun, box))
      .with_detail("tensor", catalog.tensor_name(tensor))
      .with_detail("box", box);
}

}  // namespace

Status internal::overlap_status(const Catalog& catalog, size_t tensor, uint64_t first_chunk,
                                uint64_t second_chunk, std::string_view place_noun) {
  const std::string first = box_text(catalog.chunk_box(first_chunk));
  const std::string second = box_text(catalog.chunk_box(second_chunk));
  const uint32_t first_place = catalog.place_of(first_chunk);
  const uint32_t second_place = catalog.place_of(second_chunk);
  return invalid_argument(fmt::format("{}: box {} of {} {} overlaps box {} of {} {}",
                                      tensor_text(catalog, tensor), first, place_noun, first_place,
                                      second, place_noun, second_place))
      .with_detail("tensor", catalog.tensor_name(tensor))
      .with_detail("box", first)
      .with_detail(place_noun, std::to_string(first_place))
      .with_detail("box", second)
      .with_detail(place_noun, std::to_string(second_place));
}

Status internal::not_filled(const Catalog& catalog, size_t tensor, const Box& wanted) {
  const Status why = prove_cover(catalog, tensor, Copies::kAllowed, "file");
  const std::string_view name = catalog.tensor_name(tensor);
  const std::string box = box_text(wanted);
  return data_loss(
             fmt::format("what is stored does not fill box {} of tensor '{}' exactly once: {}", box,
                         escape_text(name), why.message()))
      .with_detail("tensor", name)
      .with_detail("box", box);
}

Status prove_cover(const Catalog& catalog, size_t tensor, Copies copies,
                   std::string_view place_noun) {
  const internal::SplitDims split = internal::split_dims(catalog, tensor);
  if (internal::chunks_tile(catalog, tensor, split)) return {};
  const TensorRecord& record = catalog.tensors[tensor];
  std::vector<uint64_t> chunks(record.chunk_count);
  std::iota(chunks.begin(), chunks.end(), record.chunk_begin);
  if (copies == Copies::kAllowed) {
    chunks = internal::distinct_chunks(catalog, tensor, chunks);
    if (chunks.size() < record.chunk_count && internal::chunks_tile(catalog, tensor, split, chunks))
      return {};
  }
  const internal::Culprit culprit = internal::find_culprit(catalog, tensor, split, chunks);
  if (culprit.chunks.empty()) return hole_status(catalog, tensor, culprit.region, place_noun);
  if (culprit.chunks.size() == 1)
    return internal_error("the corner sums of a tensor differ although its chunks tile it");
  return internal::overlap_status(catalog, tensor, culprit.chunks[0], culprit.chunks[1],
                                  place_noun);
}

Status prove_all_covers(const Catalog& catalog, Copies copies, std::string_view place_noun) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t)
    SHW_RETURN_IF_ERROR(prove_cover(catalog, t, copies, place_noun));
  return {};
}

}  // namespace shardwright::plan
