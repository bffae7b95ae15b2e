// SPDX-License-Identifier: Apache-2.0
//
// CountingCollective: another collective, and how many bytes of other ranks came to this one. Where
// the other has no gather_v, scatter_v or all_to_all_v, what takes their place is counted. Used as
// the other is.
#pragma once

#include "core/collective/collective.h"

namespace shardwright::collective {

class CountingCollective final : public Collective {
 public:
  explicit CountingCollective(Collective& inner) : inner_(inner) {}
  uint64_t received_bytes() const { return received_bytes_; }

  int32_t rank() const override { return inner_.rank(); }
  int32_t size() const override { return inner_.size(); }
  std::string_view name() const override { return inner_.name(); }
  const void* group() const override { return inner_.group(); }
  Status barrier(const Call& call) override { return inner_.barrier(call); }
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override;
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override;
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override;
  bool has_gather_v() const override { return inner_.has_gather_v(); }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override;
  bool has_scatter_v() const override { return inner_.has_scatter_v(); }
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) override;
  bool has_all_to_all_v() const override { return inner_.has_all_to_all_v(); }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override;
  Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                        ReduceOperation operation) override;
  void abort(const Status& cause) noexcept override { inner_.abort(cause); }

 private:
  Status counted(Status moved, uint64_t bytes);

  Collective& inner_;
  uint64_t received_bytes_ = 0;
};

}  // namespace shardwright::collective
