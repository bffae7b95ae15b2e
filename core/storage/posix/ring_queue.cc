// SPDX-License-Identifier: Apache-2.0
//
// A request is in the ring under the number of its slot until its result is there.
#include "core/storage/posix/ring_queue_internal.h"

#include <cerrno>
#include <utility>

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "core/storage/posix/object_internal.h"

namespace shardwright::storage::internal {
namespace {

PosixObject& posix_object(const IoRequest& request) {
  return static_cast<PosixObject&>(*request.object);
}

class RingQueue final : public IoQueue {
 public:
  RingQueue(std::unique_ptr<Ring> ring, uint32_t depth) : ring_(std::move(ring)) {
    done_.reserve(depth);
    results_.reserve(depth);
    requests_.resize(depth);
    for (uint32_t slot = depth; slot > 0; --slot) free_.push_back(slot - 1);
  }
  ~RingQueue() override {
    // The kernel writes into memory of the owner until then.
    while (in_ring_ > 0) reap();
  }
  RingQueue(const RingQueue&) = delete;
  RingQueue& operator=(const RingQueue&) = delete;
  std::string_view engine() const override { return "io_uring"; }

  void submit(const IoRequest& request) override {
    const bool is_write = request.operation == IoRequest::Operation::kWrite;
    IoRequest rest = behind_head(request);
    Status status;
    const int descriptor =
        posix_object(rest).ring_descriptor(is_write, rest.offset, rest.data, &status);
    const auto head = request.data.first(request.data.size() - rest.data.size());
    if (status.ok() && descriptor >= 0 && !head.empty()) {
      IoRequest front = request;
      front.data = head;
      status = run_request(front);
    }
    if (!status.ok()) {
      done_.push_back({request.tag, std::move(status)});
    } else if (descriptor < 0) {
      done_.push_back({request.tag, run_request(request)});
    } else if (!put_into_ring(descriptor, rest)) {
      done_.push_back({request.tag, run_request(rest)});
    }
  }

  void complete(std::vector<IoCompletion>* done) override {
    while (done_.empty() && in_ring_ > 0) reap();
    for (IoCompletion& each : done_) done->push_back(std::move(each));
    done_.clear();
  }

 private:
  // What begins at a multiple of the alignment; all of it where that leaves nothing.
  static IoRequest behind_head(const IoRequest& request) {
    const uint64_t head = (kDirectAlignment - request.offset % kDirectAlignment) % kDirectAlignment;
    IoRequest rest = request;
    if (head >= request.data.size() || !checked_add(request.offset, head, &rest.offset))
      return request;
    rest.data = request.data.subspan(static_cast<size_t>(head));
    return rest;
  }

  bool put_into_ring(int descriptor, const IoRequest& request) {
    const uint32_t slot = free_.back();
    const RingTransfer transfer{
        descriptor,
        request.operation == IoRequest::Operation::kWrite,
        request.offset,
        request.data.data(),
        static_cast<uint32_t>(request.data.size() - request.data.size() % kDirectAlignment),
        slot};
    if (ring_->submit(transfer) != 0) return false;
    free_.pop_back();
    requests_[slot] = request;
    ++in_ring_;
    return true;
  }

  void reap() {
    const int waited = ring_->wait(&results_);
    if (waited < 0 && results_.empty()) return;  // -EINTR and the like: what is in flight comes
    for (const RingResult& result : results_) {
      const auto slot = static_cast<uint32_t>(result.tag);
      done_.push_back({requests_[slot].tag, finish(requests_[slot], result.count)});
      free_.push_back(slot);
      --in_ring_;
    }
    results_.clear();
  }

  // What the object makes of a result: done, failed, or the rest carried out by itself.
  static Status finish(const IoRequest& request, int64_t count) noexcept {
    return without_exceptions("a transfer", [&]() -> Status {
      const bool is_write = request.operation == IoRequest::Operation::kWrite;
      const bool again = count == -EINTR || count == -EAGAIN || count == -EINVAL ||
                         count == -EOPNOTSUPP || count == -ECANCELED;
      if (count < 0 && !again)
        return posix_object(request).ring_failure(is_write, request.offset, request.data, count);
      const auto done = count > 0 ? static_cast<size_t>(count) : size_t{0};
      if (is_write && done > 0) posix_object(request).note_written(request.offset + done);
      if (done == request.data.size()) return {};
      IoRequest rest = request;
      rest.offset += done;
      rest.data = rest.data.subspan(done);
      return run_request(rest);
    });
  }

  std::unique_ptr<Ring> ring_;
  std::vector<IoRequest> requests_;  // by slot
  std::vector<uint32_t> free_;
  std::vector<RingResult> results_;
  std::vector<IoCompletion> done_;
  size_t in_ring_ = 0;
};

}  // namespace

std::unique_ptr<IoQueue> make_ring_queue(std::unique_ptr<Ring> ring, uint32_t depth) {
  return std::make_unique<RingQueue>(std::move(ring), depth);
}

}  // namespace shardwright::storage::internal
