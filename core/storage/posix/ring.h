// SPDX-License-Identifier: Apache-2.0
//
// Ring: the seam between posix storage and io_uring. Transfers go in by submit and come out of wait
// in any order, each once, as the count or negative errno that preadv and pwritev give. Tests
// replace it to fail, shorten or record transfers. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace shardwright::storage {

struct RingTransfer {
  int descriptor = -1;
  bool is_write = false;
  uint64_t offset = 0;
  std::byte* data = nullptr;
  uint32_t size_bytes = 0;
  uint64_t tag = 0;
};
struct RingResult {
  uint64_t tag = 0;
  int64_t count = 0;  // bytes, or the negative errno
};

class Ring {
 public:
  virtual ~Ring() = default;
  // 0, or the negative errno when the transfer was not taken.
  virtual int submit(const RingTransfer& transfer) = 0;
  // Appends at least one result; transfers are in flight. 0, or the negative errno when waiting
  // failed: -EINTR may be tried again.
  virtual int wait(std::vector<RingResult>* results) = 0;
};

// A ring of the kernel with room for so many transfers; null with the negative errno where the
// build has none (-ENOSYS), or the system gives none (-ENOSYS, -EPERM under seccomp, -ENOMEM).
std::unique_ptr<Ring> make_kernel_ring(uint32_t depth, int* error);

}  // namespace shardwright::storage
