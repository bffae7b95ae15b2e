// SPDX-License-Identifier: Apache-2.0
//
// How Megatron cuts a buffer of parameters into buckets (param_and_grad_buffer.py of megatron-core
// 0.16.1): parameters begin at multiples of 64 elements, a bucket is full when it has as many
// elements as its size says, and shared embeddings have buckets of their own. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwright::reshard {

// The first place from this element on at which a parameter may begin in its bucket.
int64_t parameter_place_from(int64_t element);

struct BufferParameter {
  int64_t elements = 0;
  bool is_alone = false;  // in its bucket
};

struct BucketPlan {
  int64_t elements = 0;         // without the pad behind them
  size_t first = 0;             // parameter
  std::vector<int64_t> begins;  // of the parameters, in the bucket
};

// parameters: in their order in the buffer, which is the reverse of that of their declaration.
std::vector<BucketPlan> plan_buckets(std::span<const BufferParameter> parameters,
                                     int64_t bucket_size);

// Elements of a bucket with its pad: each data-parallel rank has as many, in blocks of 128 or, for
// bandwidth, of 65,536.
int64_t padded_bucket(int64_t elements, int64_t data_parallel, bool for_bandwidth);
bool is_padded_for_bandwidth(int64_t padded_elements);

}  // namespace shardwright::reshard
