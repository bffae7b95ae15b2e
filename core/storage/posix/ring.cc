// SPDX-License-Identifier: Apache-2.0
//
// The ring of the kernel, through liburing where the build found it.
#include "core/storage/posix/ring.h"

#include <atomic>
#include <cerrno>

#if defined(SHW_HAVE_LIBURING)
#include <liburing.h>
#endif

namespace shardwright::storage {
namespace {

#if defined(SHW_HAVE_LIBURING)
// The memory of a ring that ended may be that of the next one, on another thread. The system orders
// the two; this says so to what sees no system calls, as the sanitizer of threads.
std::atomic<uint64_t> rings_ended{0};

class KernelRing final : public Ring {
 public:
  KernelRing() = default;
  ~KernelRing() override {
    if (!open_) return;
    rings_ended.fetch_add(1, std::memory_order_release);
    io_uring_queue_exit(&ring_);
  }
  KernelRing(const KernelRing&) = delete;
  KernelRing& operator=(const KernelRing&) = delete;

  int open(uint32_t depth) {
    const int opened = io_uring_queue_init(depth, &ring_, 0);
    static_cast<void>(rings_ended.load(std::memory_order_acquire));
    open_ = opened == 0;
    return open_ ? try_out() : opened;
  }

  int submit(const RingTransfer& transfer) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return -EAGAIN;
    if (transfer.is_write) {
      io_uring_prep_write(entry, transfer.descriptor, transfer.data, transfer.size_bytes,
                          transfer.offset);
    } else {
      io_uring_prep_read(entry, transfer.descriptor, transfer.data, transfer.size_bytes,
                         transfer.offset);
    }
    entry->user_data = transfer.tag;
    io_uring_submit(&ring_);  // what the kernel does not take now goes with the next wait
    return 0;
  }

  int wait(std::vector<RingResult>* results) override {
    const int waited = io_uring_submit_and_wait(&ring_, 1);
    if (waited < 0) return waited;
    for (io_uring_cqe* entry = nullptr; io_uring_peek_cqe(&ring_, &entry) == 0;) {
      results->push_back({entry->user_data, entry->res});
      io_uring_cqe_seen(&ring_, entry);
    }
    return 0;
  }

 private:
  // Systems may let rings be made and not be used.
  int try_out() {
    io_uring_prep_nop(io_uring_get_sqe(&ring_));
    int waited = -EINTR;
    while (waited == -EINTR) waited = io_uring_submit_and_wait(&ring_, 1);
    if (waited < 0) return waited;
    io_uring_cqe* entry = nullptr;
    if (const int looked = io_uring_peek_cqe(&ring_, &entry); looked < 0) return looked;
    io_uring_cqe_seen(&ring_, entry);
    return 0;
  }

  io_uring ring_{};
  bool open_ = false;
};
#endif

}  // namespace

#if defined(SHW_HAVE_LIBURING)
std::unique_ptr<Ring> make_kernel_ring(uint32_t depth, int* error) {
  auto ring = std::make_unique<KernelRing>();
  *error = ring->open(depth);
  if (*error < 0) return nullptr;
  return ring;
}
#else
std::unique_ptr<Ring> make_kernel_ring(uint32_t, int* error) {
  *error = -ENOSYS;
  return nullptr;
}
#endif

}  // namespace shardwright::storage
