// SPDX-License-Identifier: Apache-2.0
//
// Contents: digests of stored weights, and of runs of buckets rounded as the weights were. Equal
// digests are how a run is proved to be a parameter. Reads in bounded memory. Thread-compatible.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/reshard/local_parameters.h"

namespace shardwright::reshard {

using ContentDigest = std::vector<std::byte>;  // XXH3-128

// Elements [begin, begin + elements) of a tensor of one dimension.
struct StoredRun {
  size_t tensor = 0;
  int64_t begin = 0;
  int64_t elements = 0;
};

class Contents {
 public:
  virtual ~Contents() = default;
  // Of the elements of a parameter in their order; it keeps what it found.
  virtual Result<ContentDigest> of_parameter(size_t number) = 0;
  // Of a run whose elements are rounded to the dtype. UNIMPLEMENTED where that cannot be done.
  virtual Result<ContentDigest> of_run(const StoredRun& run, DType dtype) = 0;
  // Whether all bytes of a run are zero.
  virtual Result<bool> are_zeros(const StoredRun& run) = 0;
};

// All outlive it.
class StoredContents final : public Contents {
 public:
  StoredContents(const exec::Checkpoint& source, const std::vector<LocalParameter>& parameters,
                 const exec::CallContext& call)
      : source_(source), parameters_(parameters), call_(call), known_(parameters.size()) {}
  Result<ContentDigest> of_parameter(size_t number) override;
  Result<ContentDigest> of_run(const StoredRun& run, DType dtype) override;
  Result<bool> are_zeros(const StoredRun& run) override;

 private:
  const exec::Checkpoint& source_;
  const std::vector<LocalParameter>& parameters_;
  const exec::CallContext& call_;
  std::vector<ContentDigest> known_;  // empty: not asked for
  std::vector<std::byte> read_;
  std::vector<std::byte> rounded_;
};

}  // namespace shardwright::reshard
