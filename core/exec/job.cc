// SPDX-License-Identifier: Apache-2.0
//
// A job is two objects: JobCore, which queue and handle share, and JobHandle, which the host holds.
// What the host lent (the work with all that it captured, and the keepalive) may be released on
// host threads only. Exactly one of two takes it, under the mutex of the core: the handle, when it
// goes after the end; or the background thread, when the handle went before, and then it only puts
// it into the queue's list of things to release, which the next call on the queue empties.
#include "core/exec/job.h"

#include <utility>
#include <vector>

#include "core/concurrency/mutex.h"
#include "core/exec/without_exceptions_internal.h"

namespace shardwright::exec {
namespace {

bool is_terminal(JobState state) {
  return static_cast<int32_t>(state) >= static_cast<int32_t>(JobState::kSucceeded);
}

// What belongs to the host.
struct Lent {
  JobQueue::Work work;
  std::shared_ptr<void> keepalive;  // co-owned with the host
};

class JobCore {
 public:
  JobCore(const Clock& clock, Lent lent, const JobQueue::Meeting& of)
      : meeting(of), clock_(clock), submitted_ns_(clock.monotonic_ns()), lent_(std::move(lent)) {}

  // On the background thread. What is returned is to be released on a host thread.
  Lent run() SHW_EXCLUDES(mutex_) {
    CallContext call;
    call.control.cancellation = &cancellation;
    call.control.clock = &clock_;
    call.progress = &progress;
    call.on_staged = [this] { advance(JobState::kStaged); };
    const JobQueue::Work* work = nullptr;
    {
      const MutexLock lock(mutex_);
      work = &lent_.work;  // nobody takes it before the end
    }
    // Also when it was cancelled while it waited: the work tells its peers on other ranks.
    if (!cancellation.cancelled()) advance(JobState::kRunning);
    return finish(internal::without_exceptions("a background job", [&] { return (*work)(call); }));
  }

  // The handle goes; gives what it has to release itself.
  Lent detach() SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    handle_is_gone_ = true;
    return is_terminal(state_) ? std::exchange(lent_, {}) : Lent();
  }

  // True when least is reached, or the job has ended, within the time.
  bool wait_for(JobState least, int64_t timeout_ns) SHW_EXCLUDES(mutex_) {
    const int64_t begin = real_clock().monotonic_ns();
    const MutexLock lock(mutex_);
    while (static_cast<int32_t>(state_) < static_cast<int32_t>(least)) {
      if (timeout_ns < 0) {
        changed_.wait(mutex_);
        continue;
      }
      const int64_t left = timeout_ns - (real_clock().monotonic_ns() - begin);
      if (left <= 0) return false;
      changed_.wait_for(mutex_, left);
    }
    return true;
  }

  JobState state() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return state_;
  }
  Status status() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return status_;
  }
  std::shared_ptr<const Report> report() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return report_;
  }
  int64_t elapsed_ns() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return (is_terminal(state_) ? ended_ns_ : clock_.monotonic_ns()) - submitted_ns_;
  }

  CancellationFlag cancellation;
  Progress progress;
  const JobQueue::Meeting meeting;

 private:
  void advance(JobState next) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (static_cast<int32_t>(next) <= static_cast<int32_t>(state_)) return;
    state_ = next;
    changed_.notify_all();
  }

  Lent finish(Result<Report> result) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (result.ok()) {
      report_ = std::make_shared<const Report>(std::move(*result));
      progress.enter(Stage::kDone);
      state_ = JobState::kSucceeded;
    } else {
      status_ = result.status();
      state_ = status_.code() == StatusCode::kCancelled ? JobState::kCancelled : JobState::kFailed;
    }
    ended_ns_ = clock_.monotonic_ns();
    changed_.notify_all();
    return handle_is_gone_ ? std::exchange(lent_, {}) : Lent();
  }

  const Clock& clock_;
  const int64_t submitted_ns_;
  mutable Mutex mutex_;
  Condition changed_;
  JobState state_ SHW_GUARDED_BY(mutex_) = JobState::kQueued;
  bool handle_is_gone_ SHW_GUARDED_BY(mutex_) = false;
  Status status_ SHW_GUARDED_BY(mutex_);
  std::shared_ptr<const Report> report_
      SHW_GUARDED_BY(mutex_);  // co-owned with callers of report()
  int64_t ended_ns_ SHW_GUARDED_BY(mutex_) = 0;
  Lent lent_ SHW_GUARDED_BY(mutex_);
};

using JobCorePointer = std::shared_ptr<JobCore>;  // co-owned by handle, queue and background thread

class JobHandle final : public Job {
 public:
  explicit JobHandle(JobCorePointer core) : core_(std::move(core)) {}
  ~JobHandle() override {
    const Lent released = core_->detach();  // goes here, on the host's thread, without a lock
  }

  JobState state() const override { return core_->state(); }
  bool wait(int64_t timeout_ns) override {
    return core_->wait_for(JobState::kSucceeded, timeout_ns);
  }
  bool wait_staged(int64_t timeout_ns) override {
    return core_->wait_for(JobState::kStaged, timeout_ns);
  }
  void cancel() override { core_->cancellation.cancel(); }
  ProgressSnapshot progress() const override {
    const Progress& now = core_->progress;
    return {now.stage.load(),      now.bytes_done.load(),  now.bytes_total.load(),
            now.items_done.load(), now.items_total.load(), core_->elapsed_ns()};
  }
  Status status() const override { return core_->status(); }
  std::shared_ptr<const Report> report() const override { return core_->report(); }

 private:
  JobCorePointer core_;
};

class BackgroundQueue final : public JobQueue {
 public:
  BackgroundQueue(Runtime& runtime, std::unique_ptr<ThreadPool> thread)
      : clock_(runtime.clock()), thread_(std::move(thread)) {}

  ~BackgroundQueue() override { thread_.reset(); }  // runs what was submitted, then joins

  std::shared_ptr<Job> submit(Work work, std::shared_ptr<void> keepalive,
                              const Meeting& meeting) override {
    release_returned();
    auto core =
        std::make_shared<JobCore>(clock_, Lent{std::move(work), std::move(keepalive)}, meeting);
    auto handle = std::make_shared<JobHandle>(core);  // shared by all copies that the host makes
    {
      const MutexLock lock(mutex_);
      if (closed_) return nullptr;
      unfinished_.push_back(core);
    }
    thread_->submit([this, core] { run(core); });
    return handle;
  }

  int32_t rank_in_the_way(const Meeting& meeting) const override {
    const MutexLock lock(mutex_);
    for (const JobCorePointer& each : unfinished_) {
      const Meeting& other = each->meeting;
      if (meeting.group != nullptr && other.group == meeting.group && other.rank != meeting.rank)
        return other.rank;
    }
    return -1;
  }

  int32_t unfinished() const override {
    const MutexLock lock(mutex_);
    return static_cast<int32_t>(unfinished_.size());
  }

  bool shutdown(int64_t timeout_ns) override {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    const int64_t half_ns = timeout_ns < 0 ? timeout_ns : timeout_ns / 2;
    bool done = wait_all(half_ns);
    if (!done) {
      for (const JobCorePointer& each : running()) each->cancellation.cancel();
      done = wait_all(timeout_ns - half_ns);
    }
    release_returned();
    return done;
  }

 private:
  void run(const JobCorePointer& core) SHW_EXCLUDES(mutex_) {
    Lent returned = core->run();
    const MutexLock lock(mutex_);
    std::erase(unfinished_, core);
    if (returned.work || returned.keepalive) returned_.push_back(std::move(returned));
    finished_.notify_all();
  }

  bool wait_all(int64_t timeout_ns) SHW_EXCLUDES(mutex_) {
    const int64_t begin = real_clock().monotonic_ns();
    const MutexLock lock(mutex_);
    while (!unfinished_.empty()) {
      if (timeout_ns < 0) {
        finished_.wait(mutex_);
        continue;
      }
      const int64_t left = timeout_ns - (real_clock().monotonic_ns() - begin);
      if (left <= 0) return false;
      finished_.wait_for(mutex_, left);
    }
    return true;
  }

  std::vector<JobCorePointer> running() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return unfinished_;
  }

  // On a host thread, without the mutex: releasing may call into the host.
  void release_returned() SHW_EXCLUDES(mutex_) {
    std::vector<Lent> released;
    const MutexLock lock(mutex_);
    released.swap(returned_);
  }

  const Clock& clock_;
  mutable Mutex mutex_;
  Condition finished_;
  std::vector<JobCorePointer> unfinished_ SHW_GUARDED_BY(mutex_);
  std::vector<Lent> returned_ SHW_GUARDED_BY(mutex_);
  bool closed_ SHW_GUARDED_BY(mutex_) = false;  // shut down: takes no more jobs
  std::unique_ptr<ThreadPool> thread_;          // one worker; last, because it uses the others
};

}  // namespace

Result<std::unique_ptr<JobQueue>> JobQueue::create(Runtime& runtime) {
  Status made;
  std::unique_ptr<ThreadPool> thread = ThreadPool::create(1, &made);
  SHW_RETURN_IF_ERROR(made);
  return std::unique_ptr<JobQueue>(std::make_unique<BackgroundQueue>(runtime, std::move(thread)));
}

}  // namespace shardwright::exec
