// SPDX-License-Identifier: Apache-2.0
//
// The queues that need nothing of the system: carried out at once, or by threads.
#include "core/storage/io_queue.h"

#include <utility>

#include "core/base/without_exceptions.h"
#include "core/storage/storage.h"

namespace shardwright::storage {
namespace {

constexpr int32_t kIoThreadCount = 4;  // each waits for one transfer of some MiB

class InlineQueue final : public IoQueue {
 public:
  explicit InlineQueue(uint32_t depth) { done_.reserve(depth); }
  std::string_view engine() const override { return "inline"; }
  void submit(const IoRequest& request) override {
    done_.push_back({request.tag, run_request(request)});
  }
  void complete(std::vector<IoCompletion>* done) override {
    for (IoCompletion& each : done_) done->push_back(std::move(each));
    done_.clear();
  }

 private:
  std::vector<IoCompletion> done_;
};

class ThreadQueue final : public IoQueue {
 public:
  ThreadQueue(ThreadPool* pool, uint32_t depth) : pool_(pool) {
    done_.reserve(depth);
    requests_.resize(depth);
    for (uint32_t slot = depth; slot > 0; --slot) free_.push_back(slot - 1);
  }
  ~ThreadQueue() override {
    MutexLock lock(mutex_);
    while (running_ > 0) ended_.wait(mutex_);
  }
  ThreadQueue(const ThreadQueue&) = delete;
  ThreadQueue& operator=(const ThreadQueue&) = delete;
  std::string_view engine() const override { return "threads"; }

  void submit(const IoRequest& request) override {
    uint32_t slot = 0;
    {
      MutexLock lock(mutex_);
      slot = free_.back();
      free_.pop_back();
      requests_[slot] = request;
      ++running_;
    }
    const Status handed = without_exceptions("a transfer", [&] {
      pool_->submit([this, slot] { run(slot); });
      return Status();
    });
    if (!handed.ok()) run(slot);  // no memory to hand it over: here, then
  }

  void complete(std::vector<IoCompletion>* done) override {
    MutexLock lock(mutex_);
    while (done_.empty() && running_ > 0) ended_.wait(mutex_);
    for (IoCompletion& each : done_) done->push_back(std::move(each));
    done_.clear();
  }

 private:
  void run(uint32_t slot) noexcept SHW_EXCLUDES(mutex_) {
    IoRequest request;
    {
      MutexLock lock(mutex_);
      request = requests_[slot];
    }
    Status status = run_request(request);
    MutexLock lock(mutex_);
    done_.push_back({request.tag, std::move(status)});  // there is room: reserved
    free_.push_back(slot);
    --running_;
    ended_.notify_all();  // under the lock: the owner may go as soon as it sees this
  }

  ThreadPool* pool_;
  Mutex mutex_;
  Condition ended_;
  std::vector<IoRequest> requests_ SHW_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ SHW_GUARDED_BY(mutex_);
  std::vector<IoCompletion> done_ SHW_GUARDED_BY(mutex_);
  size_t running_ SHW_GUARDED_BY(mutex_) = 0;
};

}  // namespace

Status run_request(const IoRequest& request) noexcept {
  return without_exceptions("a transfer", [&request] {
    return request.operation == IoRequest::Operation::kRead
               ? request.object->read_at(request.offset, request.data)
               : request.object->write_at(request.offset, request.data);
  });
}

Result<std::unique_ptr<IoQueue>> IoThreads::open_queue(uint32_t depth) {
  MutexLock lock(mutex_);
  const ThreadPriority priority = ThreadPool::current_priority();
  std::unique_ptr<ThreadPool>& pool = pools_[static_cast<size_t>(priority)];
  if (pool == nullptr) {
    Status status;
    std::unique_ptr<ThreadPool> made = ThreadPool::create(kIoThreadCount, &status, priority);
    SHW_RETURN_IF_ERROR(std::move(status));
    pool = std::move(made);
  }
  return std::unique_ptr<IoQueue>(std::make_unique<ThreadQueue>(pool.get(), depth));
}

std::unique_ptr<IoQueue> make_inline_queue(uint32_t depth) {
  return std::make_unique<InlineQueue>(depth);
}

}  // namespace shardwright::storage
