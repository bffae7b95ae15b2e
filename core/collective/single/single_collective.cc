// SPDX-License-Identifier: Apache-2.0
//
// The collective of one rank: every operation hands the rank its own bytes. Thread-compatible;
// abort may come from any thread.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/without_exceptions.h"
#include "core/collective/collective.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace {

Status wrong_size(std::string_view operation, uint64_t expected, uint64_t found) {
  return invalid_argument(fmt::format("{} of one rank needs a buffer of {} bytes, not {}",
                                      operation, expected, found))
      .with_detail("expected", fmt::to_string(expected))
      .with_detail("found", fmt::to_string(found));
}

Status wrong_root(std::string_view operation, int32_t root) {
  return invalid_argument(fmt::format("{} with root {} of 1 rank", operation, root))
      .with_detail("rank", fmt::to_string(root));
}

class SingleCollective final : public Collective {
 public:
  int32_t rank() const override { return 0; }
  int32_t size() const override { return 1; }
  std::string_view name() const override { return "single"; }

  Status barrier(const Call&) override { return failure(); }

  Status broadcast(const Call&, std::span<std::byte>, int32_t root) override {
    SHW_RETURN_IF_ERROR(failure());
    return root == 0 ? Status() : wrong_root("broadcast", root);
  }

  Status all_gather(const Call&, std::span<const std::byte> in, std::span<std::byte> out) override {
    SHW_RETURN_IF_ERROR(failure());
    if (out.size() != in.size()) return wrong_size("all_gather", in.size(), out.size());
    std::copy(in.begin(), in.end(), out.begin());
    return {};
  }

  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    if (sizes.size() != 1) return wrong_size("all_gather_v", 1, sizes.size());
    if (sizes[0] != in.size()) return wrong_size("all_gather_v", in.size(), sizes[0]);
    return all_gather(call, in, out);
  }

  bool has_gather_v() const override { return true; }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override {
    if (root != 0) return wrong_root("gather_v", root);
    if (sizes.size() != 1) return wrong_size("gather_v", 1, sizes.size());
    if (sizes[0] != in.size()) return wrong_size("gather_v", in.size(), sizes[0]);
    return all_gather(call, in, out);
  }

  bool has_scatter_v() const override { return true; }
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) override {
    if (root != 0) return wrong_root("scatter_v", root);
    if (sizes.size() != 1) return wrong_size("scatter_v", 1, sizes.size());
    if (sizes[0] != out.size()) return wrong_size("scatter_v", out.size(), sizes[0]);
    return all_gather(call, in, out);
  }

  bool has_all_to_all_v() const override { return true; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    for (const std::span<const uint64_t> sizes : {in_sizes, out_sizes}) {
      if (sizes.size() != 1) return wrong_size("all_to_all_v", 1, sizes.size());
      if (sizes[0] != in.size()) return wrong_size("all_to_all_v", in.size(), sizes[0]);
    }
    return all_gather(call, in, out);
  }

  Status all_reduce_i64(const Call&, std::span<int64_t>, ReduceOperation) override {
    return failure();
  }

  void abort(const Status& cause) noexcept override {
    const MutexLock lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = without_exceptions("aborting a collective", [&] {
      return cause.ok() ? aborted("the collective was aborted") : cause;
    });
  }

 private:
  Status failure() {
    const MutexLock lock(mutex_);
    return failure_;
  }

  Mutex mutex_;
  Status failure_ SHW_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Collective> make_single_collective() {
  return std::make_unique<SingleCollective>();
}

}  // namespace shardwright::collective
