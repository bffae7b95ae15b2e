// SPDX-License-Identifier: Apache-2.0
//
// Pointers and lengths of entry batches.
#include "capi/entry_batch.h"

#include <limits>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "core/plan/entry_arrays.h"

namespace shardwright::capi {
namespace {

constexpr uint64_t kMaxEntries = std::numeric_limits<uint32_t>::max();

// count + 1 ascending values, the first 0.
Result<std::span<const uint64_t>> offsets_of(const uint64_t* offsets, uint64_t count,
                                             const char* parameter) {
  if (offsets[0] != 0)
    return bad_argument(parameter, fmt::format("the first value is {}, not 0", offsets[0]));
  for (uint64_t i = 0; i < count; ++i) {
    if (offsets[i + 1] < offsets[i] || offsets[i + 1] > INT64_MAX / 64) {
      return bad_argument(parameter, fmt::format("value {} is {}, below the one before ({}) or too "
                                                 "large",
                                                 i + 1, offsets[i + 1], offsets[i]));
    }
  }
  return std::span<const uint64_t>(offsets, count + 1);
}

Result<TextArray> texts_of(const char* blob, const uint64_t* offsets, uint64_t count,
                           const char* parameter) {
  if (offsets == nullptr && blob == nullptr) return TextArray();
  if (offsets == nullptr) return bad_argument(parameter, "the texts have no offsets");
  TextArray texts;
  SHW_ASSIGN_OR_RETURN(texts.offsets, offsets_of(offsets, count, parameter));
  const uint64_t bytes = texts.offsets[count];
  if (blob == nullptr && bytes != 0) return null_argument(parameter);
  texts.blob = {blob, bytes};
  return texts;
}

template <typename T>
std::span<const T> span_of(const T* values, uint64_t count) {
  return {values, values == nullptr ? 0 : count};
}

// Some box has a value in box_offsets and box_sizes.
bool has_box_values(const plan::EntryArrays& arrays) {
  for (size_t i = 0; i < arrays.count; ++i) {
    const bool boxes = arrays.box_ranges[i + 1] != arrays.box_ranges[i];
    if (boxes && arrays.shape_offsets[i + 1] != arrays.shape_offsets[i]) return true;
  }
  return false;
}

}  // namespace

Result<plan::EntryArrays> read_entry_batch(const shw_entry_batch& batch) {
  plan::EntryArrays arrays;
  arrays.count = batch.count;
  if (batch.count == 0) return arrays;
  if (batch.count > kMaxEntries) return bad_argument("count", "there are too many entries");
  SHW_RETURN_IF_ERROR(need_pointer(batch.name_offsets, "name_offsets"));
  SHW_RETURN_IF_ERROR(need_pointer(batch.dtypes, "dtypes"));
  SHW_ASSIGN_OR_RETURN(arrays.names,
                       texts_of(batch.names, batch.name_offsets, batch.count, "names"));
  SHW_ASSIGN_OR_RETURN(arrays.paths,
                       texts_of(batch.paths, batch.path_offsets, batch.count, "paths"));
  SHW_ASSIGN_OR_RETURN(arrays.attributes, texts_of(batch.attributes, batch.attribute_offsets,
                                                   batch.count, "attributes"));
  arrays.dtypes = {batch.dtypes, batch.count};
  arrays.kinds = span_of(batch.kinds, batch.count);
  if (batch.shape_offsets != nullptr) {
    SHW_ASSIGN_OR_RETURN(arrays.shape_offsets,
                         offsets_of(batch.shape_offsets, batch.count, "shape_offsets"));
    if (arrays.shape_offsets[batch.count] != 0)
      SHW_RETURN_IF_ERROR(need_pointer(batch.shapes, "shapes"));
  }
  arrays.shapes = batch.shapes;
  if (batch.box_ranges != nullptr) {
    SHW_RETURN_IF_ERROR(need_pointer(batch.shape_offsets, "shape_offsets"));
    SHW_ASSIGN_OR_RETURN(arrays.box_ranges,
                         offsets_of(batch.box_ranges, batch.count, "box_ranges"));
    if (has_box_values(arrays)) {
      SHW_RETURN_IF_ERROR(need_pointer(batch.box_offsets, "box_offsets"));
      SHW_RETURN_IF_ERROR(need_pointer(batch.box_sizes, "box_sizes"));
    }
  }
  arrays.box_offsets = batch.box_offsets;
  arrays.box_sizes = batch.box_sizes;
  arrays.numbers = batch.numbers;
  arrays.order = batch.order;
  arrays.secondary = batch.secondary;
  arrays.object_sizes = span_of(batch.object_sizes, batch.count);
  static_assert(sizeof(Digest128) == 16 && alignof(Digest128) == 1);
  arrays.digests = span_of(reinterpret_cast<const Digest128*>(batch.digests), batch.count);
  return arrays;
}

shw_entry_batch batch_of(const plan::EntryArrays& arrays) {
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  batch.count = arrays.count;
  batch.names = arrays.names.blob.data();
  batch.name_offsets = arrays.names.offsets.data();
  batch.dtypes = arrays.dtypes.data();
  batch.kinds = arrays.kinds.data();
  batch.shapes = arrays.shapes;
  batch.shape_offsets = arrays.shape_offsets.data();
  batch.box_ranges = arrays.box_ranges.data();
  batch.box_offsets = arrays.box_offsets;
  batch.box_sizes = arrays.box_sizes;
  batch.numbers = arrays.numbers;
  batch.order = arrays.order;
  batch.secondary = arrays.secondary;
  batch.object_sizes = arrays.object_sizes.data();
  batch.paths = arrays.paths.blob.data();
  batch.path_offsets = arrays.paths.offsets.data();
  batch.attributes = arrays.attributes.blob.data();
  batch.attribute_offsets = arrays.attributes.offsets.data();
  batch.digests = reinterpret_cast<const uint8_t*>(arrays.digests.data());
  return batch;
}

}  // namespace shardwright::capi
