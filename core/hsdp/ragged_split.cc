// SPDX-License-Identifier: Apache-2.0
//
// For one size of the parts, placing each tensor at the first element that will do is best: where
// it ends decides all that follows. Whether a size will do is not monotone in it, so sizes are
// tried from the least on, those left out that some tensor rules out; after many, in steps that
// grow.
#include "core/hsdp/ragged_split_internal.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/checked.h"

namespace shardwright::hsdp::internal {
namespace {

constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();
constexpr int32_t kTriesOneByOne = 512;
constexpr int32_t kTriesOfMultiples = 64;

int64_t divide_up(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor == 0 ? 0 : 1);
}

// First element from `begin` on at which the tensor may begin, kNowhere if there is none.
int64_t place_tensor(const RaggedTensor& tensor, int64_t begin, int64_t part) {
  const int64_t row = tensor.row_elements;
  const int64_t cut = (begin / part + 1) * part;  // the next one
  if (tensor.elements <= cut - begin) return begin;
  const int64_t aligned = begin + (cut - begin) % row;
  // Two cuts inside it are both between rows only where a part is whole rows.
  if (part % row == 0 || tensor.elements <= cut + part - aligned) return aligned;
  const int64_t next = cut + part % row;
  return tensor.elements <= cut + 2 * part - next ? next : kNowhere;
}

class Search {
 public:
  Search(std::span<const RaggedTensor> tensors, int64_t parts, int64_t total)
      : tensors_(tensors), parts_(parts), total_(total), least_(divide_up(total, parts)) {}

  int64_t find() {
    int64_t size = next_size(least_);
    for (int32_t tries = 0; tries < kTriesOneByOne; ++tries, size = next_size(size + 1)) {
      if (fits(size)) return size;
    }
    int64_t step = 1;
    for (int64_t wanted = size; !fits(size); size = next_size(std::min(wanted, total_))) {
      const int64_t end = end_of(size);
      step = std::min(2 * step, total_);
      wanted = std::max(size + step, end == kNowhere ? 0 : divide_up(end, parts_));
    }
    return best_multiple(size);
  }

  std::vector<int64_t> offsets(int64_t part) const {
    std::vector<int64_t> found;
    int64_t end = 0;
    for (const RaggedTensor& tensor : tensors_) {
      found.push_back(place_tensor(tensor, end, part));
      end = found.back() + tensor.elements;
    }
    return found;
  }

 private:
  // Where the last tensor ends, kNowhere where one has no place.
  int64_t end_of(int64_t part) const {
    int64_t end = 0;
    for (const RaggedTensor& tensor : tensors_) {
      const int64_t begin = place_tensor(tensor, end, part);
      if (begin == kNowhere) return kNowhere;
      end = begin + tensor.elements;
      if (end / part > parts_) return kNowhere;  // and further ones might leave 63 bits
    }
    return end;
  }

  bool fits(int64_t part) const { return divide_up(end_of(part), part) <= parts_; }

  // The first size from `size` on that is whole rows of every tensor that spans two parts or more
  // however it lies.
  int64_t next_size(int64_t size) const {
    for (;;) {
      int64_t multiple = 1;
      int64_t shortest = kNowhere;  // of those tensors
      for (const RaggedTensor& tensor : tensors_) {
        if (tensor.elements / 2 < size) continue;
        multiple = common_multiple(multiple, tensor.row_elements);
        shortest = std::min(shortest, tensor.elements);
      }
      if (size % multiple == 0) return size;
      size = std::min(divide_up(size, multiple) * multiple, shortest / 2 + 1);
    }
  }

  // At most total_, for no size is larger.
  int64_t common_multiple(int64_t a, int64_t b) const {
    int64_t multiple = 0;
    if (!checked_multiply(a / std::gcd(a, b), b, &multiple)) return total_;
    return std::min(multiple, total_);
  }

  // Sizes that are whole rows of all tensors, or of the largest, waste least.
  int64_t best_multiple(int64_t best) const {
    int64_t of_all = 1;
    RaggedTensor largest;
    for (const RaggedTensor& tensor : tensors_) {
      of_all = common_multiple(of_all, tensor.row_elements);
      if (tensor.elements > largest.elements) largest = tensor;
    }
    for (const int64_t step : {of_all, largest.row_elements}) {
      int64_t size = divide_up(least_, step) * step;
      for (int32_t tries = 0; tries < kTriesOfMultiples && size < best; ++tries, size += step) {
        if (fits(size)) best = size;
      }
    }
    return best;
  }

  std::span<const RaggedTensor> tensors_;
  int64_t parts_;
  int64_t total_;
  int64_t least_;
};

}  // namespace

std::optional<RaggedSplit> split_ragged(std::span<const RaggedTensor> tensors, int64_t parts) {
  int64_t total = 0;
  for (const RaggedTensor& tensor : tensors) {
    if (!checked_add(total, tensor.elements, &total)) return std::nullopt;
  }
  if (total == 0) return RaggedSplit{};
  // No position that is looked at is beyond that many parts of at most `total` elements.
  int64_t reach = 0;
  if (!checked_multiply(total, parts + 3, &reach)) return std::nullopt;
  Search search(tensors, parts, total);
  const int64_t part = search.find();
  return RaggedSplit{part, search.offsets(part)};
}

}  // namespace shardwright::hsdp::internal
