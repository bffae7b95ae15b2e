// SPDX-License-Identifier: Apache-2.0
//
// A job is two objects: JobCore, which queue and handle share, and JobHandle, which the host holds.
// What the host lent (the work with all that it captured, and the keepalive) may be released on
// host threads only. Exactly one of two takes it, under the mutex of the core: the handle, when it
// goes after the end; or the queue, when the handle went before: then the core joins the list of
// those to release, which the next call on the queue empties. A host that wants it back at once
// keeps the handle, is told of the end by on_done, and drops the handle on a thread of its own.
// What the end of a job needs is there before the job ends: the background thread allocates nothing
// of its own.
#include "core/exec/job.h"

#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/mutex.h"

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
  JobCore(const Clock& clock, Lent lent, const JobQueue::GroupRank& of)
      : group_rank(of),
        clock_(clock),
        submitted_ns_(clock.monotonic_ns()),
        lent_(std::move(lent)) {}

  // On the background thread. True when the queue has to release what was lent.
  bool run() SHW_EXCLUDES(mutex_) {
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
    return finish(without_exceptions("a background job", [&] { return (*work)(call); }));
  }

  Status on_done(std::function<void()> done) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (is_terminal(state_)) return failed_precondition("the job has ended already");
    if (done_ != nullptr) return failed_precondition("the job tells somebody else of its end");
    done_ = std::move(done);
    return {};
  }

  // By the queue, on the background thread, after run().
  void tell_of_the_end() SHW_EXCLUDES(mutex_) {
    std::function<void()> done;
    {
      const MutexLock lock(mutex_);
      done.swap(done_);
    }
    if (done != nullptr) done();
  }

  // By the queue, on a host thread, when run() said so.
  Lent take_lent() SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(lent_, {});
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
    return state_ == JobState::kSucceeded ? report_ : nullptr;
  }
  int64_t elapsed_ns() const SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return (is_terminal(state_) ? ended_ns_ : clock_.monotonic_ns()) - submitted_ns_;
  }

  CancellationFlag cancellation;
  Progress progress;
  const JobQueue::GroupRank group_rank;
  std::shared_ptr<JobCore> next_to_release;  // in the queue's list, under its mutex

 private:
  void advance(JobState next) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (static_cast<int32_t>(next) <= static_cast<int32_t>(state_)) return;
    state_ = next;
    changed_.notify_all();
  }

  bool finish(Result<Report> result) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (result.ok()) {
      *report_ = std::move(*result);
      progress.enter(Stage::kDone);
      state_ = JobState::kSucceeded;
    } else {
      status_ = result.status();
      state_ = status_.code() == StatusCode::kCancelled ? JobState::kCancelled : JobState::kFailed;
    }
    ended_ns_ = clock_.monotonic_ns();
    changed_.notify_all();
    return handle_is_gone_;
  }

  const Clock& clock_;
  const int64_t submitted_ns_;
  mutable Mutex mutex_;
  Condition changed_;
  JobState state_ SHW_GUARDED_BY(mutex_) = JobState::kQueued;
  bool handle_is_gone_ SHW_GUARDED_BY(mutex_) = false;
  Status status_ SHW_GUARDED_BY(mutex_);
  // Co-owned with callers of report(); written once, at the end.
  const std::shared_ptr<Report> report_ = std::make_shared<Report>();
  int64_t ended_ns_ SHW_GUARDED_BY(mutex_) = 0;
  std::function<void()> done_ SHW_GUARDED_BY(mutex_);
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
  Status on_done(std::function<void()> done) override { return core_->on_done(std::move(done)); }
  ProgressSnapshot progress() const override {
    ProgressSnapshot now = core_->progress.now();
    now.elapsed_ns = core_->elapsed_ns();
    return now;
  }
  Status status() const override { return core_->status(); }
  std::shared_ptr<const Report> report() const override { return core_->report(); }

 private:
  JobCorePointer core_;
};

class BackgroundQueue final : public JobQueue {
 public:
  BackgroundQueue(Runtime& runtime, std::unique_ptr<ThreadPool> thread)
      : clock_(runtime.clock()), log_(runtime.log()), thread_(std::move(thread)) {}

  ~BackgroundQueue() override {
    thread_.reset();  // runs what was submitted, then joins
    release_ended();
  }

  std::shared_ptr<Job> submit(Work work, std::shared_ptr<void> keepalive,
                              const GroupRank& group_rank) override {
    release_ended();
    auto core =
        std::make_shared<JobCore>(clock_, Lent{std::move(work), std::move(keepalive)}, group_rank);
    auto handle = std::make_shared<JobHandle>(core);  // shared by all copies that the host makes
    {
      const MutexLock lock(mutex_);
      if (closed_) return nullptr;
      unfinished_.push_back(core);
    }
    try {
      thread_->submit([this, core] { run(core); });
    } catch (...) {
      forget(core);
      throw;
    }
    return handle;
  }

  int32_t rank_in_the_way(const GroupRank& group_rank) const override {
    const MutexLock lock(mutex_);
    for (const JobCorePointer& each : unfinished_) {
      const GroupRank& other = each->group_rank;
      if (group_rank.group != nullptr && other.group == group_rank.group &&
          other.rank != group_rank.rank)
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
    release_ended();
    return done;
  }

 private:
  void run(const JobCorePointer& core) SHW_EXCLUDES(mutex_) {
    const bool release = core->run();
    if (release) note_unheard(core->status());
    if (release) {
      const MutexLock lock(mutex_);
      core->next_to_release = std::move(to_release_);
      to_release_ = core;
    }
    core->tell_of_the_end();
    const MutexLock lock(mutex_);
    std::erase(unfinished_, core);
    finished_.notify_all();
  }

  // Nobody holds the job, so nobody else will be told.
  void note_unheard(const Status& status) noexcept {
    if (status.ok()) return;
    log(log_, LogLevel::kWarning, "exec",
        [&] { return "a job that its host had dropped failed: " + status.to_string(); });
  }

  // A job that the thread did not take.
  void forget(const JobCorePointer& core) SHW_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::erase(unfinished_, core);
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
  void release_ended() SHW_EXCLUDES(mutex_) {
    JobCorePointer ended;
    {
      const MutexLock lock(mutex_);
      ended = std::move(to_release_);
    }
    while (ended != nullptr) {
      const Lent released = ended->take_lent();
      ended = std::exchange(ended->next_to_release, nullptr);
    }
  }

  const Clock& clock_;
  LogSink& log_;
  mutable Mutex mutex_;
  Condition finished_;
  std::vector<JobCorePointer> unfinished_ SHW_GUARDED_BY(mutex_);
  JobCorePointer to_release_ SHW_GUARDED_BY(mutex_);  // the first of a list
  bool closed_ SHW_GUARDED_BY(mutex_) = false;        // shut down: takes no more jobs
  std::unique_ptr<ThreadPool> thread_;  // one worker; last, because it uses the others
};

}  // namespace

Result<std::unique_ptr<JobQueue>> JobQueue::create(Runtime& runtime) {
  Status made;
  std::unique_ptr<ThreadPool> thread = ThreadPool::create(1, &made);
  SHW_RETURN_IF_ERROR(made);
  return std::unique_ptr<JobQueue>(std::make_unique<BackgroundQueue>(runtime, std::move(thread)));
}

}  // namespace shardwright::exec
