// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <map>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "core/collective/c10d/process_groups_internal.h"
#include "core/collective/c10d/rendezvous_internal.h"

namespace shardwright::collective {
namespace internal {
namespace {

using GroupHandle = c10::intrusive_ptr<::c10d::ProcessGroup>;

// For a scope, and for good in threads that begin in it: Gloo's threads write to connections that a
// peer may have closed, and a program that has not said otherwise ends by that signal.
class WithoutPipeSignals {
 public:
  WithoutPipeSignals() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~WithoutPipeSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutPipeSignals(const WithoutPipeSignals&) = delete;
  WithoutPipeSignals& operator=(const WithoutPipeSignals&) = delete;

 private:
  sigset_t before_{};
};

// Keys below a prefix. A backend clones the store that it is given, which would be one more
// connection to rank 0 for each rank and group; this one was made for it.
class OwnStore : public ::c10d::PrefixStore {
 public:
  using PrefixStore::PrefixStore;
  c10::intrusive_ptr<::c10d::Store> clone() override {
    return c10::make_intrusive<PrefixStore>(prefix_, store_);
  }
};

// What new backends are made of.
struct Source {
  c10::intrusive_ptr<::c10d::Backend> backend;
  c10::Device device = c10::kCPU;
};

// A side group that is kept, and the process group that it stands beside: a name may get another
// one.
struct Kept {
  Mutex mutex;  // held while the side group is made
  c10::weak_intrusive_ptr<::c10d::ProcessGroup> beside SHW_GUARDED_BY(mutex){
      c10::weak_intrusive_ptr<::c10d::ProcessGroup>(GroupHandle())};
  std::shared_ptr<SideGroup> group SHW_GUARDED_BY(mutex);  // and its collectives
};

struct AllKept {
  Mutex mutex;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Kept>> kept SHW_GUARDED_BY(mutex);
};

// Never destroyed: at the end of the process libtorch may go first.
AllKept& all_kept() {
  static AllKept& all = *new AllKept();
  return all;
}

Result<GroupHandle> registered(const std::string& name) {
  if (!::c10d::is_process_group_registered(name)) {
    return not_found(
        fmt::format("no process group is registered under the name '{}' in this "
                    "process; c10d::register_process_group does that, and "
                    "torch.distributed for each of its groups",
                    name));
  }
  return ::c10d::resolve_process_group(name);
}

c10::intrusive_ptr<::c10d::Backend> backend_for(::c10d::ProcessGroup& group, c10::DeviceType type) {
  for (const c10::Device device : group.getDeviceTypes()) {
    if (device.type() == type) return group.getBackend(type);
  }
  return {};
}

// Gloo where there is one, else what the group has for its device.
Result<Source> source_of(::c10d::ProcessGroup& group, const std::string& gloo) {
  if (!gloo.empty()) {
    SHW_ASSIGN_OR_RETURN(const GroupHandle other, registered(gloo));
    return Source{backend_for(*other, c10::kCPU), c10::kCPU};
  }
  auto own = backend_for(group, c10::kCPU);
  if (own != nullptr && own->getBackendName() == "gloo") return Source{std::move(own), c10::kCPU};
  for (const c10::Device device : group.getDeviceTypes()) {
    if (device.is_cpu()) continue;
    auto backend = group.getBackend(device.type());
    if (backend->getBackendName() != "nccl") continue;
    const auto bound = backend->getBoundDeviceId();
    const c10::impl::VirtualGuardImpl guard(device.type());
    return Source{std::move(backend), bound ? *bound : guard.getDevice()};
  }
  return failed_precondition(
      fmt::format("the process group has the backend '{}', and a collective needs one of Gloo or "
                  "NCCL: name a registered group that has Gloo",
                  group.getBackendName()));
}

std::chrono::milliseconds limit_of(const GroupRequest& request) {
  return std::chrono::milliseconds(std::max<int64_t>(1, request.limit_ms));
}

Result<std::shared_ptr<SideGroup>> made(::c10d::ProcessGroup& group, const GroupRequest& request) {
  const auto store = group.getStore();
  if (store == nullptr)
    return failed_precondition(fmt::format("the process group '{}' has no store", request.name));
  SHW_ASSIGN_OR_RETURN(const Source source, source_of(group, request.gloo));
  if (source.backend == nullptr) {
    return failed_precondition(
        fmt::format("the process group '{}' has no backend for host memory", request.gloo));
  }
  GroupParts parts;
  parts.store = store->clone();
  const Meeting meeting{fmt::format("shardwright/{}", request.use), group.getRank(),
                        group.getSize(), limit_of(request)};
  SHW_ASSIGN_OR_RETURN(const std::string agreed, rendezvous(*parts.store, meeting));
  parts.id = fmt::format("shardwright/{}", agreed);
  parts.device = source.device;
  parts.poll = std::chrono::milliseconds(std::max<int64_t>(1, request.poll_ms));
  auto options = source.backend->getBackendOptions()->clone();
  options->timeout = limit_of(request);
  options->group_name = parts.id;
  const auto place = c10::make_intrusive<OwnStore>(parts.id, parts.store->clone());
  {
    const WithoutPipeSignals quiet;
    parts.backend = source.backend->merge(place, options, meeting.rank, meeting.size);
  }
  SHW_RETURN_IF_ERROR(all_are_connected(*parts.store, parts.id, meeting));
  return SideGroup::make(std::move(parts));
}

// Groups whose process group is no more.
void drop_orphans() {
  std::vector<std::shared_ptr<Kept>> dropped;  // destroyed without the lock
  AllKept& all = all_kept();
  const MutexLock lock(all.mutex);
  for (auto each = all.kept.begin(); each != all.kept.end();) {
    bool orphaned = false;
    if (each->second.use_count() == 1) {
      const MutexLock own(each->second->mutex);
      orphaned = each->second->group != nullptr && each->second->beside.expired();
    }
    if (orphaned) dropped.push_back(each->second);
    each = orphaned ? all.kept.erase(each) : std::next(each);
  }
}

Result<std::shared_ptr<SideGroup>> kept_or_made(const GroupRequest& request) {
  SHW_ASSIGN_OR_RETURN(const GroupHandle group, registered(request.name));
  if (!request.keep) return made(*group, request);
  drop_orphans();
  std::shared_ptr<Kept> kept;  // co-owned by the list
  {
    AllKept& all = all_kept();
    const MutexLock lock(all.mutex);
    auto& slot = all.kept[{request.name, request.use}];
    if (slot == nullptr) slot = std::make_shared<Kept>();
    kept = slot;
  }
  const MutexLock lock(kept->mutex);
  const bool is_beside = kept->beside._unsafe_get_target() == group.get();
  if (kept->group != nullptr && is_beside && kept->group->is_of_this_process() &&
      !kept->group->look_for_end()) {
    return kept->group;
  }
  kept->group.reset();
  SHW_ASSIGN_OR_RETURN(kept->group, made(*group, request));
  kept->beside = c10::weak_intrusive_ptr<::c10d::ProcessGroup>(group);
  return kept->group;
}

}  // namespace

Result<std::shared_ptr<SideGroup>> side_group_for(const GroupRequest& request) {
  try {
    return kept_or_made(request);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& failure) {
    const std::string_view text = failure.what();
    return unavailable(
        fmt::format("no process group for the calls of shardwright could be made "
                    "beside '{}': {}",
                    request.name, text.substr(0, text.find('\n'))));
  }
}

}  // namespace internal

void release_side_groups() noexcept {
  using internal::all_kept;
  try {
    std::map<std::pair<std::string, std::string>, std::shared_ptr<internal::Kept>> all;
    const MutexLock lock(all_kept().mutex);
    all.swap(all_kept().kept);
  } catch (...) {
    // They stay until the process ends.
  }
}

}  // namespace shardwright::collective
