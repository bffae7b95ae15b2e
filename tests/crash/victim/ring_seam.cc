// SPDX-License-Identifier: Apache-2.0
//
// Rings of the kernel whose transfers pass through the seam. Programs that link the archives of the
// library have this in the place of core/storage/posix/ring.cc, which is compiled here under other
// names. Each transfer has ended before submit returns: a write and its record are one, and a
// process that is killed leaves none in the kernel.
#include <cerrno>
#include <utility>

#define make_kernel_ring make_ring_below_seam
#include "core/storage/posix/ring.cc"
#undef make_kernel_ring
#include "tests/crash/victim/seam.h"

namespace shardwright::storage {

std::unique_ptr<Ring> make_kernel_ring(uint32_t depth, int* error);

namespace {

class RingAtTheSeam final : public Ring {
 public:
  RingAtTheSeam(std::unique_ptr<Ring> inner, uint32_t depth) : inner_(std::move(inner)) {
    ended_.reserve(depth);
  }

  int submit(const RingTransfer& transfer) override {
    Carry carry{inner_.get(), &transfer};
    ssize_t count = 0;
    if (transfer.is_write) {
      count = seam_write(transfer.descriptor, transfer.data, transfer.size_bytes, transfer.offset,
                         carry_one, &carry);
    } else {
      seam_step();
      count = carry_one(&carry);
    }
    ended_.push_back({transfer.tag, count < 0 ? -errno : count});
    return 0;
  }

  int wait(std::vector<RingResult>* results) override {
    for (const RingResult& each : ended_) results->push_back(each);
    ended_.clear();
    return 0;
  }

 private:
  struct Carry {
    Ring* ring;
    const RingTransfer* transfer;
  };

  static ssize_t carry_one(void* user) {
    const Carry& carry = *static_cast<Carry*>(user);
    std::vector<RingResult> results;
    int status = carry.ring->submit(*carry.transfer);
    while (status >= 0 && results.empty()) {
      status = carry.ring->wait(&results);
      if (status == -EINTR) status = 0;
    }
    const int64_t count = status < 0 ? status : results.front().count;
    if (count < 0) errno = static_cast<int>(-count);
    return count < 0 ? -1 : static_cast<ssize_t>(count);
  }

  std::unique_ptr<Ring> inner_;
  std::vector<RingResult> ended_;
};

}  // namespace

std::unique_ptr<Ring> make_kernel_ring(uint32_t depth, int* error) {
  std::unique_ptr<Ring> inner = make_ring_below_seam(depth, error);
  if (inner == nullptr) return nullptr;
  return std::make_unique<RingAtTheSeam>(std::move(inner), depth);
}

}  // namespace shardwright::storage
