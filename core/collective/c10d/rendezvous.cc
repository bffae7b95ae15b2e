// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/collective/c10d/rendezvous_internal.h"

namespace shardwright::collective::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSlice{500};
constexpr milliseconds kLongestPause{50};

std::string new_nonce() {
  std::random_device source;
  return fmt::format("{:08x}{:08x}", source(), source());
}

std::string key_of(const Meeting& meeting, int32_t rank) {
  return fmt::format("{}/{}", meeting.place, rank);
}

std::string reply_key(const Meeting& meeting, const std::string& nonce) {
  return fmt::format("{}/to/{}", meeting.place, nonce);
}

Status too_late(const Meeting& meeting, const std::string& who) {
  return deadline_exceeded(fmt::format("rank {}: {} did not begin the call within {:g} s",
                                       meeting.rank, who,
                                       static_cast<double>(meeting.limit.count()) / 1000))
      .with_detail("rank", fmt::to_string(meeting.rank));
}

// Waits for one slice. A store that only has not got the key says so by an exception, as one that
// fails does: that one fails again when it is asked.
bool arrives(::c10d::Store& store, const std::string& key, steady_clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
  try {
    store.wait({key}, std::clamp(left, milliseconds(1), kSlice));
    return true;
  } catch (const c10::DistError&) {
    return store.check({key});
  }
}

Result<std::string> join(::c10d::Store& store, const Meeting& meeting,
                         steady_clock::time_point until) {
  const std::string nonce = new_nonce();
  const std::string reply = reply_key(meeting, nonce);
  const std::string own = key_of(meeting, meeting.rank);
  store.set(own, nonce);
  bool came = arrives(store, reply, until);
  while (!came && steady_clock::now() < until) came = arrives(store, reply, until);
  Result<std::string> agreed = too_late(meeting, "rank 0");
  if (came) {
    agreed = store.get_to_str(reply);
    store.deleteKey(reply);
  }
  store.set(own, "");  // rank 0 reads this as: it has the id, or has gone
  return agreed;
}

// The keys are never deleted, so that get cannot block.
std::string shown_by(::c10d::Store& store, const Meeting& meeting, int32_t rank) {
  const std::string key = key_of(meeting, rank);
  return store.check({key}) ? store.get_to_str(key) : std::string();
}

// Replies to a nonce that is new: a rank that was restarted shows another one than the process
// before it.
void reply(::c10d::Store& store, const Meeting& meeting, const std::string& agreed,
           const std::string& nonce, std::string* replied) {
  if (nonce.empty() || nonce == *replied) return;
  store.set(reply_key(meeting, nonce), agreed);
  *replied = nonce;
}

Result<std::string> host(::c10d::Store& store, const Meeting& meeting,
                         steady_clock::time_point until) {
  const std::string agreed = new_nonce();
  std::map<int32_t, std::string> replied;  // to the ranks that are still waited for
  for (int32_t rank = 1; rank < meeting.size; ++rank) replied[rank] = "";
  bool all_came = false;
  for (milliseconds pause{1}; !replied.empty(); pause = std::min(2 * pause, kLongestPause)) {
    std::map<int32_t, std::string> shown;
    std::vector<int32_t> missing;
    for (const auto& [rank, nonce] : replied) {
      shown[rank] = shown_by(store, meeting, rank);
      if (shown[rank].empty()) missing.push_back(rank);
    }
    all_came = all_came || missing.empty();
    for (const auto& [rank, nonce] : shown) {
      if (!all_came) break;
      reply(store, meeting, agreed, nonce, &replied[rank]);
      if (nonce.empty()) replied.erase(rank);
    }
    if (replied.empty()) break;
    if (steady_clock::now() >= until) {
      return too_late(meeting, missing.empty() ? "another rank"
                                               : fmt::format("rank {}", fmt::join(missing, ", ")));
    }
    std::this_thread::sleep_for(pause);
  }
  return agreed;
}

}  // namespace

Result<std::string> rendezvous(::c10d::Store& store, const Meeting& meeting) {
  const auto until = steady_clock::now() + meeting.limit;
  return meeting.rank == 0 ? host(store, meeting, until) : join(store, meeting, until);
}

Status all_are_connected(::c10d::Store& store, const std::string& id, const Meeting& meeting) {
  const auto until = steady_clock::now() + meeting.limit;
  const std::string all = id + "/connected/all";
  if (store.add(id + "/connected", 1) == meeting.size) store.set(all, "");
  while (!arrives(store, all, until)) {
    if (steady_clock::now() >= until) return too_late(meeting, "another rank");
  }
  return {};
}

}  // namespace shardwright::collective::internal
