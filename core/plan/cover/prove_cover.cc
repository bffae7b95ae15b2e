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

using internal::Culprit;

std::string tensor_text(const Catalog& catalog, size_t tensor) {
  return fmt::format("tensor '{}' of shape {}", escape_text(catalog.tensor_name(tensor)),
                     fmt::format("[{}]", fmt::join(catalog.shape(tensor), ", ")));
}

Status overlap_status(const Catalog& catalog, size_t tensor, const Culprit& culprit,
                      std::string_view place_noun) {
  const std::string first = box_text(catalog.chunk_box(*culprit.first_chunk));
  const std::string second = box_text(catalog.chunk_box(*culprit.second_chunk));
  const uint32_t first_place = catalog.place_of(*culprit.first_chunk);
  const uint32_t second_place = catalog.place_of(*culprit.second_chunk);
  return invalid_argument(fmt::format("{}: box {} of {} {} overlaps box {} of {} {}",
                                      tensor_text(catalog, tensor), first, place_noun, first_place,
                                      second, place_noun, second_place))
      .with_detail("tensor", catalog.tensor_name(tensor))
      .with_detail("box", first)
      .with_detail(place_noun, std::to_string(first_place))
      .with_detail("box", second)
      .with_detail(place_noun, std::to_string(second_place));
}

Status hole_status(const Catalog& catalog, size_t tensor, const Culprit& culprit,
                   std::string_view place_noun) {
  const std::string box = box_text(culprit.hole);
  return invalid_argument(
             fmt::format("{}: no {} holds box {}", tensor_text(catalog, tensor), place_noun, box))
      .with_detail("tensor", catalog.tensor_name(tensor))
      .with_detail("box", box);
}

}  // namespace

Status internal::prove_cover_naming(const Catalog& catalog, size_t tensor,
                                    std::string_view place_noun, Copies copies) {
  const SplitDims split = split_dims(catalog, tensor);
  if (chunks_tile(catalog, tensor, split)) return {};
  const TensorRecord& record = catalog.tensors[tensor];
  std::vector<uint64_t> chunks;
  if (copies == Copies::kAllowed) {
    chunks = distinct_chunks(catalog, tensor);
    if (chunks.size() < record.chunk_count && chunks_tile(catalog, tensor, split, chunks))
      return {};
  } else {
    chunks.resize(record.chunk_count);
    std::iota(chunks.begin(), chunks.end(), record.chunk_begin);
  }
  SHW_ASSIGN_OR_RETURN(const Culprit culprit, find_culprit(catalog, tensor, split, chunks));
  return culprit.first_chunk.has_value() ? overlap_status(catalog, tensor, culprit, place_noun)
                                         : hole_status(catalog, tensor, culprit, place_noun);
}

Status internal::prove_all_covers_naming(const Catalog& catalog, std::string_view place_noun,
                                         Copies copies) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    SHW_RETURN_IF_ERROR(prove_cover_naming(catalog, t, place_noun, copies));
  }
  return {};
}

Status prove_cover(const Catalog& catalog, size_t tensor, Copies copies) {
  return internal::prove_cover_naming(catalog, tensor, "place", copies);
}

Status prove_all_covers(const Catalog& catalog, Copies copies) {
  return internal::prove_all_covers_naming(catalog, "place", copies);
}

}  // namespace shardwright::plan
