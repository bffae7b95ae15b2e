// SPDX-License-Identifier: Apache-2.0
//
// Keys of interleaved coordinates.
#include "core/plan/search/curve_order_internal.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/sort_by_key.h"
#include "core/plan/flat_chunks_internal.h"

namespace shardwright::plan::internal {
namespace {

__extension__ using Wide = unsigned __int128;  // a sum of as many sizes as there are chunks

constexpr uint32_t kKeyBits = 64;
constexpr size_t kRadix = 256;

class CurveKeys {
 public:
  CurveKeys(const Catalog& catalog, size_t tensor)
      : catalog_(catalog), tensor_(catalog.tensors[tensor]), count_(split_count(tensor_)) {
    const SplitDims split = split_dims(catalog, tensor);
    for (size_t digit = 0; digit < kRadix; ++digit) spread_[digit] = spread(digit);
    uint64_t most = 1;
    for (uint32_t k = 0; k < count_; ++k) {
      half_sizes_[k] = half_of_mean_size(k);
      const int64_t last = std::max<int64_t>(split.extents[k] - 1, 0);
      most = std::max(most, static_cast<uint64_t>(last) / half_sizes_[k]);
    }
    const auto wanted = static_cast<uint32_t>(std::bit_width(most));
    const uint32_t bits = kKeyBits / count_;  // of each dimension
    shift_ = wanted > bits ? wanted - bits : 0;
  }

  std::vector<Keyed> make() const {
    std::vector<Keyed> keys(tensor_.chunk_count);
    for (uint32_t c = 0; c < keys.size(); ++c) keys[c] = {key_of(c), c};
    return keys;
  }

 private:
  ExtentPair pair(uint64_t chunk, uint32_t k) const {
    return chunk_pair(catalog_, tensor_, tensor_.chunk_begin + chunk, k);
  }

  uint64_t half_of_mean_size(uint32_t k) const {
    if (tensor_.chunk_count == 0) return 1;
    Wide sum = 0;
    for (uint64_t c = 0; c < tensor_.chunk_count; ++c) sum += static_cast<Wide>(pair(c, k).size);
    return std::max<uint64_t>(1, static_cast<uint64_t>(sum / (2 * tensor_.chunk_count)));
  }

  // The bits of a digit, as far apart as there are dimensions.
  uint64_t spread(uint64_t digit) const {
    uint64_t bits = 0;
    for (uint32_t bit = 0; bit < 8 && bit * count_ < kKeyBits; ++bit)
      bits |= (digit >> bit & 1) << (bit * count_);
    return bits;
  }

  uint64_t key_of(uint64_t chunk) const {
    uint64_t key = 0;
    for (uint32_t k = 0; k < count_; ++k) {
      const ExtentPair own = pair(chunk, k);
      const uint64_t middle =
          static_cast<uint64_t>(own.offset) + static_cast<uint64_t>(own.size) / 2;
      uint64_t place = middle / half_sizes_[k] >> shift_;
      for (uint32_t at = count_ - 1 - k; place != 0 && at < kKeyBits; at += 8 * count_) {
        key |= spread_[place % kRadix] << at;
        place /= kRadix;
      }
    }
    return key;
  }

  const Catalog& catalog_;
  const TensorRecord& tensor_;
  const uint32_t count_;  // split dimensions
  uint32_t shift_ = 0;    // bits of the places that do not fit into a key
  std::array<uint64_t, kMaxTensorRank> half_sizes_;
  std::array<uint64_t, kRadix> spread_;
};

}  // namespace

std::vector<uint32_t> curve_order(const Catalog& catalog, size_t tensor) {
  std::vector<Keyed> keys = CurveKeys(catalog, tensor).make();
  sort_by_key(&keys);
  std::vector<uint32_t> order(keys.size());
  std::ranges::transform(keys, order.begin(), &Keyed::number);
  return order;
}

}  // namespace shardwright::plan::internal
