// SPDX-License-Identifier: Apache-2.0
//
// A task group keeps its tasks in its own queue and hands the pool one token per task; a token runs
// the group's oldest task. A worker that waits for a group takes tasks from that queue itself, so
// groups may nest on one pool without a worker waiting for work that only it could do.
#include "core/concurrency/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/without_exceptions.h"
#include "core/concurrency/mutex.h"

namespace shardwright {
namespace {

// The pool whose worker this thread is, or null. Other models may ask for memory when a thread
// looks first, and end the process without.
__attribute__((tls_model("initial-exec"))) thread_local const void* current_pool = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local ThreadPriority priority_of_thread =
    ThreadPriority::kNormal;

// Blocks signals for a scope; threads made inside inherit the mask. Faults of the thread itself
// stay open, because runtimes and sanitizers handle them where they happen.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
      sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &previous_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t previous_;
};

// Of the calling thread; Linux has both per thread. There is no way back without privileges.
void go_to_the_background() {
  constexpr int kNiceness = 10;
  constexpr int kIoOfThread = 1;            // IOPRIO_WHO_PROCESS
  constexpr int kIoLowest = (2 << 13) | 7;  // best effort, the last of its levels
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  const int now = ::getpriority(PRIO_PROCESS, thread);
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, std::max(now, kNiceness)));
  static_cast<void>(::syscall(SYS_ioprio_set, kIoOfThread, 0, kIoLowest));
}

}  // namespace

struct ThreadPool::Shared {
  Mutex mutex;
  Condition changed;
  std::deque<std::function<void()>> tasks SHW_GUARDED_BY(mutex);
  bool stopping SHW_GUARDED_BY(mutex) = false;
  std::vector<std::thread> workers;  // fixed between create and destruction

  ~Shared() { stop_and_join(); }

  void stop_and_join() SHW_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
  }

  // Waits for a task; false when the pool stops and none is left.
  bool next(std::function<void()>* task) SHW_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (tasks.empty()) {
      if (stopping) return false;
      changed.wait(mutex);
    }
    *task = std::move(tasks.front());
    tasks.pop_front();
    return true;
  }

  void work(ThreadPriority priority) {
    current_pool = this;
    priority_of_thread = priority;
    if (priority == ThreadPriority::kBackground) go_to_the_background();
    pthread_setname_np(pthread_self(), "shw-worker");
    for (std::function<void()> task; next(&task); task = nullptr) task();
  }
};

std::unique_ptr<ThreadPool> ThreadPool::create(int32_t thread_count, Status* status,
                                               ThreadPriority priority) {
  *status = Status();
  if (thread_count < 1) {
    *status =
        invalid_argument(fmt::format("a pool needs at least one thread, not {}", thread_count));
    return nullptr;
  }
  auto shared = std::make_unique<Shared>();
  Shared* const members = shared.get();
  try {
    members->workers.reserve(static_cast<size_t>(thread_count));
    const SignalsBlocked blocked;
    for (int32_t i = 0; i < thread_count; ++i) {
      members->workers.emplace_back([members, priority] { members->work(priority); });
    }
  } catch (const std::exception& failure) {  // std::system_error or std::bad_alloc
    const size_t made = members->workers.size();
    members->stop_and_join();
    *status = resource_exhausted("threads", fmt::format("the system refused thread {} of {}: {}",
                                                        made + 1, thread_count, failure.what()));
    return nullptr;
  }
  return std::unique_ptr<ThreadPool>(new ThreadPool(std::move(shared)));
}

ThreadPool::ThreadPool(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

ThreadPool::~ThreadPool() = default;

int32_t ThreadPool::thread_count() const {
  return static_cast<int32_t>(shared_->workers.size());
}

ThreadPriority ThreadPool::current_priority() {
  return priority_of_thread;
}

bool ThreadPool::is_current_worker() const {
  return current_pool == shared_.get();
}

void ThreadPool::submit(std::function<void()> task) {
  {
    MutexLock lock(shared_->mutex);
    shared_->tasks.push_back(std::move(task));
  }
  shared_->changed.notify_one();
}

int32_t default_thread_count() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int32_t cores = 0;
  // More CPUs than cpu_set_t can name make the call fail; then all of them count.
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    cores = CPU_COUNT(&allowed);
  } else {
    cores = static_cast<int32_t>(std::min<unsigned>(std::thread::hardware_concurrency(), 1U << 16));
  }
  return std::clamp(cores, 1, kMaxDefaultThreads);
}

struct TaskGroup::State {
  explicit State(ThreadPool* workers) : pool(workers) {}

  ThreadPool* const pool;
  Mutex mutex;
  Condition finished;
  std::deque<std::function<Status()>> waiting SHW_GUARDED_BY(mutex);
  int64_t running SHW_GUARDED_BY(mutex) = 0;
  Status first_failure SHW_GUARDED_BY(mutex);
  std::atomic<bool> failed{false};  // first_failure is set; read without the mutex

  void record(Status status) SHW_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    --running;
    if (!status.ok() && first_failure.ok()) {
      first_failure = std::move(status);
      failed.store(true, std::memory_order_release);
    }
    if (running == 0 && waiting.empty()) finished.notify_all();
  }

  // Runs the oldest task that waits; false when none does.
  bool run_one() SHW_EXCLUDES(mutex) {
    std::function<Status()> task;
    {
      MutexLock lock(mutex);
      if (waiting.empty()) return false;
      task = std::move(waiting.front());
      waiting.pop_front();
      ++running;
    }
    Status status =
        failed.load(std::memory_order_acquire) ? Status() : without_exceptions("a task", task);
    task = nullptr;  // what it captured goes before the group counts it as done
    record(std::move(status));
    return true;
  }
};

TaskGroup::TaskGroup(ThreadPool* pool) : state_(std::make_shared<State>(pool)) {}

TaskGroup::~TaskGroup() {
  // The failure was wanted by nobody, or wait() has reported it before.
  static_cast<void>(wait());
}

void TaskGroup::run(std::function<Status()> task) {
  if (state_->pool == nullptr) {
    {
      MutexLock lock(state_->mutex);
      state_->waiting.push_back(std::move(task));
    }
    state_->run_one();
    return;
  }
  MutexLock lock(state_->mutex);
  state_->waiting.push_back(std::move(task));
  try {
    state_->pool->submit([state = state_] { state->run_one(); });
  } catch (...) {
    state_->waiting.pop_back();  // no token would ever run it
    throw;
  }
}

bool TaskGroup::failed() const {
  return state_->failed.load(std::memory_order_acquire);
}

Status TaskGroup::wait() {
  if (state_->pool != nullptr && state_->pool->is_current_worker()) {
    while (state_->run_one()) {
    }
  }
  MutexLock lock(state_->mutex);
  while (state_->running > 0 || !state_->waiting.empty()) state_->finished.wait(state_->mutex);
  return state_->first_failure;
}

}  // namespace shardwright
