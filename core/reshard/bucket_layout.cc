// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/bucket_layout.h"

#include <numeric>
#include <utility>

namespace shardwright::reshard {
namespace {

constexpr int64_t kAlignment = 64;  // of the places of parameters
constexpr int64_t kBlock = 128;     // of buckets
constexpr int64_t kBandwidthBlock = int64_t{1} << 16;

int64_t rounded_up(int64_t element, int64_t to) {
  return (element + to - 1) / to * to;
}

}  // namespace

int64_t parameter_place_from(int64_t element) {
  return rounded_up(element, kAlignment);
}

std::vector<BucketPlan> plan_buckets(std::span<const BufferParameter> parameters,
                                     int64_t bucket_size) {
  std::vector<BucketPlan> buckets;
  BucketPlan open;
  const auto close = [&](int64_t elements, size_t next) {
    open.elements = elements;
    buckets.push_back(std::exchange(open, BucketPlan()));
    open.first = next;
  };
  int64_t end = 0;
  for (size_t p = 0; p < parameters.size(); ++p) {
    int64_t begin = open.begins.empty() ? 0 : parameter_place_from(end);
    // What is closed in front of it has the gap in front of it, too.
    if (parameters[p].is_alone && !open.begins.empty()) {
      close(begin, p);
      begin = 0;
    }
    open.begins.push_back(begin);
    end = begin + parameters[p].elements;
    if (end >= bucket_size || parameters[p].is_alone) close(end, p + 1);
  }
  if (!open.begins.empty()) close(end, parameters.size());
  return buckets;
}

int64_t padded_bucket(int64_t elements, int64_t data_parallel, bool for_bandwidth) {
  return rounded_up(elements, std::lcm(data_parallel, for_bandwidth ? kBandwidthBlock : kBlock));
}

bool is_padded_for_bandwidth(int64_t padded_elements) {
  return padded_elements > 0 && padded_elements % kBandwidthBlock == 0;
}

}  // namespace shardwright::reshard
