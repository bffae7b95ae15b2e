// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/contents.h"

#include <algorithm>

#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/tensor/cast.h"

namespace shardwright::reshard {
namespace {

constexpr int64_t kSlabBytes = int64_t{8} << 20;

// Parts of a box of at most about kSlabBytes, in row-major order: rows of the first dimension that
// has several.
std::vector<Box> slabs_of(const Box& box, int64_t element_bits) {
  if (box.sizes.empty()) return {box};
  const size_t d = row_dimension(box);
  const int64_t row_elements = box_element_count(box) / std::max<int64_t>(1, box.sizes[d]);
  const int64_t row_bytes = std::max<int64_t>(1, row_elements * element_bits / 8);
  const int64_t rows = std::max<int64_t>(8, kSlabBytes / row_bytes / 8 * 8);
  std::vector<Box> slabs;
  for (int64_t at = 0; at < box.sizes[d]; at += rows) {
    Box slab = box;
    slab.offsets[d] += at;
    slab.sizes[d] = std::min(rows, box.sizes[d] - at);
    slabs.push_back(std::move(slab));
  }
  return slabs;
}

// Reads a box into memory that grows as it must.
Result<std::span<const std::byte>> read_box(const exec::Checkpoint& source, size_t tensor,
                                            const Box& box, const exec::CallContext& call,
                                            std::vector<std::byte>* memory) {
  const DType dtype = source.catalog().tensors[tensor].dtype;
  SHW_ASSIGN_OR_RETURN(const uint64_t bytes, dtype_packed_bytes(dtype, box_element_count(box)));
  if (memory->size() < bytes) memory->resize(static_cast<size_t>(bytes));
  exec::BoxRead read;
  read.tensor = tensor;
  read.box = box;
  read.target.data = memory->data();
  read.target.dtype = dtype;
  read.target.shape = box.sizes;
  SHW_RETURN_IF_ERROR(source.read_boxes({&read, 1}, {}, call).status());
  return std::span<const std::byte>(memory->data(), static_cast<size_t>(bytes));
}

}  // namespace

Result<ContentDigest> StoredContents::of_parameter(size_t number) {
  if (!known_[number].empty()) return known_[number];
  const LocalParameter& parameter = parameters_[number];
  const auto bits = static_cast<int64_t>(dtype_bits(parameter.dtype));
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
  for (const LocalPart& part : parameter.parts) {
    for (const Box& slab : slabs_of(part.box, bits)) {
      SHW_ASSIGN_OR_RETURN(const auto bytes, read_box(source_, part.tensor, slab, call_, &read_));
      digester.update(bytes);
    }
  }
  known_[number] = digester.finish();
  return known_[number];
}

Result<ContentDigest> StoredContents::of_run(const StoredRun& run, DType dtype) {
  const DType stored = source_.catalog().tensors[run.tensor].dtype;
  integrity::TensorDigester digester(integrity::TensorDigestAlgorithm::kXxh3);
  const Box whole{{run.begin}, {run.elements}};
  for (const Box& slab : slabs_of(whole, static_cast<int64_t>(dtype_bits(stored)))) {
    SHW_ASSIGN_OR_RETURN(const auto bytes, read_box(source_, run.tensor, slab, call_, &read_));
    if (stored == dtype) {
      digester.update(bytes);
      continue;
    }
    SHW_ASSIGN_OR_RETURN(const uint64_t size, dtype_packed_bytes(dtype, slab.sizes[0]));
    rounded_.resize(static_cast<size_t>(size));
    SHW_RETURN_IF_ERROR(cast_elements(stored, bytes, dtype, rounded_));
    digester.update(rounded_);
  }
  return digester.finish();
}

Result<bool> StoredContents::are_zeros(const StoredRun& run) {
  const DType stored = source_.catalog().tensors[run.tensor].dtype;
  const Box whole{{run.begin}, {run.elements}};
  for (const Box& slab : slabs_of(whole, static_cast<int64_t>(dtype_bits(stored)))) {
    SHW_ASSIGN_OR_RETURN(const auto bytes, read_box(source_, run.tensor, slab, call_, &read_));
    if (std::ranges::any_of(bytes, [](std::byte each) { return each != std::byte{0}; }))
      return false;
  }
  return true;
}

}  // namespace shardwright::reshard
