// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/log.h"
#include "core/collective/c10d/side_group_internal.h"

namespace shardwright::collective::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLongestSlice{100};
// All ranks of a call ask one store, which is spared where there are more than this many.
constexpr int32_t kRanksPerPoll = 1000;
constexpr int kPollsBetweenCalls = 3;  // of a rank in a call, to one of a rank that is in none
constexpr int kPollsOfGrace = 4;       // before a rank that does not answer counts as gone
static_assert(kPollsBetweenCalls < kPollsOfGrace);
constexpr milliseconds kGraceForAnswers{1500};
constexpr milliseconds kGraceForTheEnd{10000};
constexpr std::string_view kGone = "gone";  // value of a rank that has closed its group

bool is_done(const c10::intrusive_ptr<::c10d::Work>& work) {
  return work->isCompleted();
}

// Backends that were given up, with what is pending there: the destructor of a backend waits for
// it. Never destroyed, so that the end of the process does not wait either.
struct Pending {
  c10::intrusive_ptr<::c10d::Backend> backend;
  Works works;
};

struct PendingList {
  Mutex mutex;
  std::vector<Pending> list SHW_GUARDED_BY(mutex);
};

PendingList& all_pending() {
  static PendingList& pending = *new PendingList();
  return pending;
}

void leave_pending(Pending given) {
  std::vector<Pending> done;  // destroyed without the lock
  {
    PendingList& all = all_pending();
    const MutexLock lock(all.mutex);
    if (!given.works.empty()) all.list.push_back(std::move(given));
    const auto ended = std::partition(all.list.begin(), all.list.end(), [](const Pending& each) {
      return !std::ranges::all_of(each.works, is_done);
    });
    std::move(ended, all.list.end(), std::back_inserter(done));
    all.list.erase(ended, all.list.end());
  }
}

}  // namespace

SideGroup::SideGroup(GroupParts parts)
    : parts_(std::move(parts)),
      rank_(parts_.backend->getRank()),
      size_(parts_.backend->getSize()),
      process_(getpid()),
      thread_([this] { run(); }) {}

std::shared_ptr<SideGroup> SideGroup::make(GroupParts parts) {
  return {new SideGroup(std::move(parts)), [](SideGroup* group) {
            // Threads, connections and locks that a child has are those of its parent.
            if (group->is_of_this_process()) delete group;
          }};
}

SideGroup::~SideGroup() {
  bool had_ended = false;
  Pending pending;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    had_ended = end_.has_value() || asked_.has_value();
    std::erase_if(kept_, is_done);
    pending.works = std::move(kept_);
    changed_.notify_all();
  }
  thread_.join();
  try {
    if (!had_ended && size_ > 1)
      parts_.store->set(key(fmt::format("left/{}", rank_)), std::string(kGone));
    pending.backend = std::move(parts_.backend);
    leave_pending(std::move(pending));
  } catch (const std::exception&) {
    // Nobody can be told any more; peers find out when they miss this rank.
  }
}

bool SideGroup::is_of_this_process() const {
  return getpid() == process_;
}

milliseconds SideGroup::poll() const {
  return std::max(parts_.poll, parts_.poll * size_ / kRanksPerPoll);
}

milliseconds SideGroup::slice() const {
  return std::min(parts_.poll, kLongestSlice);
}

std::string SideGroup::key(std::string_view name) const {
  return fmt::format("{}/{}", parts_.id, name);
}

uint64_t SideGroup::begin_call() {
  const MutexLock lock(mutex_);
  ++open_calls_;
  store_failed_ = false;  // it may be back
  changed_.notify_all();
  return ++calls_;
}

void SideGroup::end_call() {
  const MutexLock lock(mutex_);
  --open_calls_;
}

std::optional<GroupEnd> SideGroup::end() {
  const MutexLock lock(mutex_);
  return end_ ? end_ : asked_;
}

std::optional<GroupEnd> SideGroup::look_for_end() {
  if (end()) return wait_for_end();
  auto seen = found();
  if (!seen) return {};
  settle(std::move(*seen), false);
  return end();
}

void SideGroup::give_up(GroupEnd given) noexcept {
  const MutexLock lock(mutex_);
  if (end_ || asked_) return;
  asked_ = std::move(given);
  changed_.notify_all();
}

std::optional<GroupEnd> SideGroup::wait_for_end() {
  const auto until = steady_clock::now() + kGraceForTheEnd;
  const MutexLock lock(mutex_);
  while (asked_ && !end_) {
    const auto left = until - steady_clock::now();
    if (left <= left.zero()) return asked_;
    changed_.wait_for(mutex_, std::chrono::nanoseconds(left).count());
  }
  return end_;
}

void SideGroup::keep(c10::intrusive_ptr<::c10d::Work> work) {
  if (is_done(work)) return;
  const MutexLock lock(mutex_);
  kept_.push_back(std::move(work));
}

// ---- the thread ----

// Between calls, too, as who does not answer counts as gone; not where nothing can be heard.
bool SideGroup::must_look() {
  const bool is_idle = open_calls_ == 0;
  if (size_ == 1 || (is_idle && store_failed_)) {
    changed_.wait(mutex_);
    return false;
  }
  const auto pause = is_idle ? kPollsBetweenCalls * poll() : poll();
  return !changed_.wait_for(mutex_, std::chrono::nanoseconds(pause).count());
}

void SideGroup::run() noexcept {
  for (;;) {
    std::optional<GroupEnd> mine;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && (end_ || (!asked_ && !must_look()))) {
        if (end_) changed_.wait(mutex_);
      }
      if (stopping_ && (end_ || !asked_)) return;
      mine = asked_;
    }
    try {
      if (mine) {
        GroupEnd first = told(*mine);
        const bool is_mine = first.rank == rank_;
        settle(std::move(first), is_mine);
      } else if (auto seen = found()) {
        settle(std::move(*seen), false);
      }
    } catch (...) {
      // The store is gone, or there is no memory: each rank ends by its own deadline.
      {
        const MutexLock lock(mutex_);
        store_failed_ = true;
        if (mine && !end_) end_ = std::move(mine);
        changed_.notify_all();
      }
      abort_on_device();
    }
  }
}

std::optional<GroupEnd> SideGroup::found() {
  const MutexLock lock(store_mutex_);
  if (!parts_.store->check({key("end")})) return {};
  return decode_end(parts_.store->get(key("end")));
}

GroupEnd SideGroup::told(const GroupEnd& mine) {
  const MutexLock lock(store_mutex_);
  return decode_end(parts_.store->compareSet(key("end"), {}, encode_end(mine)));
}

// Step 3 and 4, then the end is known here.
void SideGroup::settle(GroupEnd known, bool is_mine) noexcept {
  try {
    const MutexLock lock(store_mutex_);
    {
      const MutexLock own(mutex_);
      if (end_) return;
    }
    if (known.transport_failed && size_ > 1) name_who_is_gone(&known, is_mine);
    follow();
  } catch (...) {
    // The store is gone; what is known is what is said.
  }
  {
    const MutexLock lock(mutex_);
    if (end_) return;
    end_ = std::move(known);
    changed_.notify_all();
  }
  abort_on_device();
}

// Step 5, by who has set the end.
void SideGroup::abort_on_device() noexcept {
  {
    const MutexLock lock(mutex_);
    if (!end_ || parts_.device.is_cpu()) return;
  }
  try {
    parts_.backend->abort();
  } catch (...) {
    // What is pending stays, as with a backend that cannot be aborted.
  }
}

void SideGroup::name_who_is_gone(GroupEnd* known, bool is_mine) {
  ::c10d::Store& store = *parts_.store;
  store.set(key(fmt::format("left/{}", rank_)), "here");
  std::string silent;
  const auto grace = kGraceForAnswers + kPollsOfGrace * poll();
  if (is_mine) {
    silent = silent_ranks();
    store.set(key("gone"), silent);
  } else {
    const auto until = steady_clock::now() + 2 * grace;
    while (!store.check({key("gone")}) && steady_clock::now() < until)
      std::this_thread::sleep_for(slice());
    if (store.check({key("gone")})) silent = store.get_to_str(key("gone"));
  }
  if (silent.empty()) return;
  // The first detail of a key counts, so the status is made anew.
  Status cause = aborted(fmt::format("rank {} is gone: {}", silent, known->cause.message()));
  known->cause = std::move(cause).with_detail("rank", silent.substr(0, silent.find(',')));
}

// "" where all answer in time.
std::string SideGroup::silent_ranks() {
  std::vector<int32_t> silent;
  std::vector<int32_t> gone;
  for (int32_t rank = 0; rank < size_; ++rank) {
    if (rank != rank_) silent.push_back(rank);
  }
  const auto until = steady_clock::now() + kGraceForAnswers + kPollsOfGrace * poll();
  while (!silent.empty()) {
    std::erase_if(silent, [&](int32_t rank) {
      const std::string answer = key(fmt::format("left/{}", rank));
      if (!parts_.store->check({answer})) return false;
      if (parts_.store->get_to_str(answer) == kGone) gone.push_back(rank);
      return true;
    });
    if (silent.empty() || !gone.empty() || steady_clock::now() >= until) break;
    std::this_thread::sleep_for(slice());
  }
  if (gone.empty()) gone = silent;
  std::ranges::sort(gone);
  return fmt::format("{}", fmt::join(gone, ","));
}

void SideGroup::follow() {
  ::c10d::Store& store = *parts_.store;
  if (store.add(key("followed"), 1) != size_) return;
  for (const std::string_view name : {"end", "gone", "followed", "connected", "connected/all"})
    store.deleteKey(key(name));
  for (int32_t rank = 0; rank < size_; ++rank) store.deleteKey(key(fmt::format("left/{}", rank)));
}

}  // namespace shardwright::collective::internal
