// SPDX-License-Identifier: Apache-2.0
//
// Digest of a whole tensor in bounded memory, whatever chunks hold it: the tensor is cut into boxes
// that are runs of its row-major bytes, each is read into one of two slabs, and the digest takes
// one slab while the other is being read.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/exec/checkpoint_reader_internal.h"
#include "core/exec/item_checksums.h"

namespace shardwright::exec::internal {
namespace {

// Large enough for direct reads; small enough that the allocator keeps the memory between tensors.
constexpr uint64_t kMinSlabBytes = uint64_t{16} << 20;
// A slab that takes this much of each chunk it meets reads few blocks twice.
constexpr uint64_t kSlabBytesPerChunk = uint64_t{2} << 20;

// Walks a tensor in boxes that are runs of its row-major elements: fixed indices in front, a range
// in dimension `axis`, everything behind it.
class RowSlabs {
 public:
  // whole_elements: slabs begin and end on multiples of this many elements where that is asked for
  // (sub-byte dtypes).
  RowSlabs(std::span<const int64_t> shape, uint64_t max_elements, int64_t whole_elements)
      : shape_(shape), next_(shape.size(), 0) {
    inner_ = 1;
    axis_ = shape.size();
    while (axis_ > 0) {
      const auto extent = static_cast<uint64_t>(shape[axis_ - 1]);
      if (inner_ > max_elements / std::max<uint64_t>(extent, 1)) break;
      inner_ *= extent;
      --axis_;
    }
    if (axis_ > 0) {
      rows_ = std::max<int64_t>(1, static_cast<int64_t>(max_elements / inner_));
      if (axis_ == shape.size())
        rows_ = std::max(whole_elements, rows_ / whole_elements * whole_elements);
    }
    done_ = std::find(shape.begin(), shape.end(), 0) != shape.end();
  }

  bool next(Box* box) {
    if (done_) return false;
    *box = Box{next_, shape_};
    for (size_t d = 0; d + 1 < axis_; ++d) box->sizes[d] = 1;
    if (axis_ == 0) {
      done_ = true;
      return true;
    }
    const size_t walked = axis_ - 1;
    box->sizes[walked] = std::min(rows_, shape_[walked] - next_[walked]);
    next_[walked] += box->sizes[walked];
    for (size_t d = walked; next_[d] == shape_[d]; --d) {
      if (d == 0) {
        done_ = true;
        break;
      }
      next_[d] = 0;
      ++next_[d - 1];
    }
    return true;
  }

 private:
  Dims shape_;
  Dims next_;
  size_t axis_ = 0;  // dimensions [axis_, rank) are taken whole; axis_ - 1 in steps of rows_
  uint64_t inner_ = 1;
  int64_t rows_ = 1;
  bool done_ = false;
};

uint64_t slab_limit(const plan::Catalog& catalog, size_t tensor, uint64_t budget) {
  const uint64_t chunks = catalog.tensors[tensor].chunk_count;
  const uint64_t wanted =
      chunks < budget / kSlabBytesPerChunk ? chunks * kSlabBytesPerChunk : budget;
  return std::max(kMinSlabBytes, std::min(wanted, budget / 4));
}

TensorView slab_view(std::byte* memory, DType dtype, const Dims& shape) {
  TensorView view;
  view.data = memory;
  view.dtype = dtype;
  view.shape = shape;
  return view;
}

}  // namespace

Result<std::vector<std::byte>> digest_of_tensor(Runtime& runtime, const Checkpoint& checkpoint,
                                                size_t tensor,
                                                integrity::TensorDigestAlgorithm algorithm,
                                                const CallContext& call) {
  const plan::Catalog& catalog = checkpoint.catalog();
  if (tensor >= catalog.tensors.size()) {
    return out_of_range(fmt::format("there is no tensor number {}; the checkpoint has {}", tensor,
                                    catalog.tensors.size()));
  }
  const DType dtype = catalog.tensors[tensor].dtype;
  const uint64_t total = catalog.tensor_bytes(tensor);
  const uint64_t limit =
      std::min(total, slab_limit(catalog, tensor, runtime.staging().budget_bytes()));
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  RowSlabs slabs(catalog.shape(tensor), std::max<uint64_t>(1, limit * 8 / bits),
                 dtype_is_subbyte(dtype) ? 8 : 1);
  std::array<std::unique_ptr<std::byte[]>, 2> memory;
  std::array<uint64_t, 2> capacity{};
  integrity::TensorDigester digester(algorithm);
  TaskGroup hashing(total > kMinSlabBytes ? &runtime.pool() : nullptr);
  // Slabs end inside of chunks, so checksums are compared over all of them.
  ReadRules rules;
  ItemChecksums checksums(checkpoint.opened());
  if (ItemChecksums::are_offered(checkpoint.opened())) {
    checksums.expect(chunks_of(catalog, {&tensor, 1}), 0);
    rules.checksums = &checksums;
  }
  Box box;
  for (size_t turn = 0; slabs.next(&box); turn ^= 1) {
    SHW_ASSIGN_OR_RETURN(const uint64_t bytes, dtype_packed_bytes(dtype, box_element_count(box)));
    if (bytes > capacity[turn]) {
      memory[turn].reset(new std::byte[bytes]);
      capacity[turn] = bytes;
    }
    const BoxRead read{tensor, box, slab_view(memory[turn].get(), dtype, box.sizes)};
    SHW_RETURN_IF_ERROR(checkpoint.read_boxes({&read, 1}, rules, call).status());
    SHW_RETURN_IF_ERROR(hashing.wait());  // the digest takes slabs in order, one at a time
    hashing.run([&digester, filled = std::span<const std::byte>(memory[turn].get(), bytes)] {
      digester.update(filled);
      return Status();
    });
  }
  SHW_RETURN_IF_ERROR(hashing.wait());
  return digester.finish();
}

Result<std::vector<std::byte>> CheckpointReader::tensor_digest(
    size_t tensor, integrity::TensorDigestAlgorithm algorithm, const CallContext& call) const {
  return digest_of_tensor(runtime_, *this, tensor, algorithm, call);
}

}  // namespace shardwright::exec::internal
