// SPDX-License-Identifier: Apache-2.0
//
// communicator.h: communicators and the operations that they issue.
#include "shardwright/communicator.h"

#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "capi/adapters/communicator_adapter.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/collective_argument.h"
#include "capi/boundary/communicator_argument.h"
#include "capi/boundary/communicator_handles.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/base/checked.h"
#include "core/base/limits.h"
#include "core/tensor/dtype_numbers.h"

namespace shardwright::capi {
namespace {

constexpr int32_t kLargestTeam = 65536;

// What every operation begins with.
struct Issue {
  std::shared_ptr<CommunicatorImpl> impl;
  collective::CommunicatorCall call;
  uint64_t part_bytes = 0;
  uint64_t all_bytes = 0;
};

Result<Issue> read_issue(shw_communicator* communicator, const shw_communicator_call* given,
                         shw_work** out_work) {
  Issue issue;
  SHW_ASSIGN_OR_RETURN(issue.impl, need(communicator, "communicator"));
  SHW_RETURN_IF_ERROR(need_pointer(out_work, "out_work"));
  shw_communicator_call copy;
  SHW_RETURN_IF_ERROR(read_struct(given, "call", &copy));
  // A barrier moves nothing.
  if (copy.dtype != 0 || copy.count != 0) {
    SHW_ASSIGN_OR_RETURN(issue.call.dtype, dtype_from_number(copy.dtype));
  }
  SHW_RETURN_IF_ERROR(option_in_range(copy.op, SHW_REDUCTION_MIN, "op"));
  if (copy.count > static_cast<uint64_t>(INT64_MAX))
    return bad_argument("call", fmt::format("count is {}", copy.count));
  SHW_ASSIGN_OR_RETURN(issue.part_bytes,
                       dtype_packed_bytes(issue.call.dtype, static_cast<int64_t>(copy.count)));
  const auto ranks = static_cast<uint64_t>(issue.impl->communicator->size());
  if (!checked_multiply(issue.part_bytes, ranks, &issue.all_bytes))
    return bad_argument("call",
                        fmt::format("{} elements of {} ranks are too many", copy.count, ranks));
  issue.call.sequence = copy.sequence;
  issue.call.unit = copy.unit_id;
  issue.call.count = copy.count;
  issue.call.reduction = static_cast<collective::Reduction>(copy.op);
  issue.call.scale = copy.scale;
  issue.call.stream = copy.stream;
  issue.call.timeout_ns = copy.timeout_ns == 0 ? kDefaultCollectiveDeadlineNs : copy.timeout_ns;
  issue.call.tag = copy.tag;
  return issue;
}

// Bytes of exactly the size that the call needs.
Result<std::span<std::byte>> exact(void* data, uint64_t size, uint64_t wanted,
                                   const char* parameter) {
  SHW_RETURN_IF_ERROR(bytes_argument(data, size, parameter).status());
  if (size != wanted)
    return bad_argument(parameter, fmt::format("it has {} bytes, the call needs {}", size, wanted));
  return std::span(static_cast<std::byte*>(data), size);
}
Result<std::span<const std::byte>> exact(const void* data, uint64_t size, uint64_t wanted,
                                         const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const auto bytes, exact(const_cast<void*>(data), size, wanted, parameter));
  return std::span<const std::byte>(bytes);
}

Status hand_out(const Issue& issue, Result<collective::WorkPtr> work, shw_work** out) {
  SHW_RETURN_IF_ERROR(work.status());
  SHW_ASSIGN_OR_RETURN(*out, work_of(std::move(*work), issue.impl));
  return {};
}

using MoveSlot = Result<collective::WorkPtr> (collective::Communicator::*)(
    const collective::CommunicatorCall&, std::span<const std::byte>, std::span<std::byte>);

// What moves bytes from one memory to another, and which of them has a part for each rank.
struct Move {
  MoveSlot slot = nullptr;
  bool in_is_of_all = false;
  bool out_is_of_all = false;

  Status issue(shw_communicator* communicator, const shw_communicator_call* call, const void* in,
               uint64_t in_size, void* out, uint64_t out_size, shw_work** out_work) const {
    SHW_ASSIGN_OR_RETURN(const Issue issue, read_issue(communicator, call, out_work));
    const auto bytes = [&](bool of_all) { return of_all ? issue.all_bytes : issue.part_bytes; };
    SHW_ASSIGN_OR_RETURN(const auto from, exact(in, in_size, bytes(in_is_of_all), "in"));
    SHW_ASSIGN_OR_RETURN(const auto to, exact(out, out_size, bytes(out_is_of_all), "out"));
    return hand_out(issue, ((*issue.impl->communicator).*slot)(issue.call, from, to), out_work);
  }
};
constexpr Move kAllGather = {&collective::Communicator::all_gather, false, true};
constexpr Move kAllToAll = {&collective::Communicator::all_to_all, true, true};
constexpr Move kReduceScatter = {&collective::Communicator::reduce_scatter, true, false};

Status check_ranks(int32_t rank, int32_t size) {
  if (size < 1 || size > kLargestTeam)
    return bad_argument("size", fmt::format("{} is not between 1 and {}", size, kLargestTeam));
  if (rank >= 0 && rank < size) return {};
  return bad_argument("rank", fmt::format("{} is not a rank of {}", rank, size));
}

}  // namespace

Result<shw_communicator*> communicator_of(collective::CommunicatorPtr communicator) {
  auto impl = std::make_shared<CommunicatorImpl>();
  impl->name = communicator->name();
  impl->communicator = std::move(communicator);
  return make_handle<shw_communicator>(std::move(impl));
}

Result<collective::CommunicatorPtr> read_communicator(const shw_communicator* communicator) {
  SHW_ASSIGN_OR_RETURN(const auto impl, need(communicator, "communicator"));
  return impl->communicator;
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace collective_ns = shardwright::collective;
using shardwright::Status;

extern "C" {

void shw_communicator_call_init(shw_communicator_call* call, uint32_t struct_size) noexcept {
  capi::init_struct(call, struct_size);
}

void shw_communicator_vtable_init(shw_communicator_vtable* vtable, uint32_t struct_size) noexcept {
  capi::init_struct(vtable, struct_size);
  if (vtable == nullptr || struct_size < SHW_COMMUNICATOR_VTABLE_SIZE_V1) return;
  vtable->abi_major = SHW_ABI_MAJOR;
  vtable->abi_minor = SHW_ABI_MINOR;
}

shw_status shw_communicator_create(const shw_communicator_vtable* vtable, shw_communicator** out,
                                   shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_communicator_vtable copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(vtable, "vtable", &copy));
    SHW_RETURN_IF_ERROR(capi::check_communicator_slots(copy));
    SHW_RETURN_IF_ERROR(capi::check_communicator_ranks(copy));
    // The handle is made before the table is taken over, so that a failure consumes nothing.
    auto impl = std::make_shared<capi::CommunicatorImpl>();
    impl->name = copy.name;
    auto handle = std::make_unique<shw_communicator>();
    impl->communicator = capi::make_host_communicator(copy, nullptr);
    handle->impl = std::move(impl);
    *out = handle.release();
    return {};
  });
}

shw_status shw_communicator_group_create(int32_t size, shw_communicator_group** out,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::check_ranks(0, size));
    auto impl = std::make_shared<capi::CommunicatorGroupImpl>();
    impl->members = collective_ns::make_thread_communicators(size);
    *out = capi::make_handle<shw_communicator_group>(std::move(impl));
    return {};
  });
}

shw_status shw_communicator_group_member(shw_communicator_group* group, int32_t rank,
                                         shw_communicator** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(group, "group"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const std::lock_guard<std::mutex> lock(impl->mutex);
    SHW_RETURN_IF_ERROR(capi::check_ranks(rank, static_cast<int32_t>(impl->members.size())));
    auto& member = impl->members[static_cast<size_t>(rank)];
    if (member == nullptr)
      return shardwright::failed_precondition(fmt::format("rank {} was taken before", rank));
    SHW_ASSIGN_OR_RETURN(*out, capi::communicator_of(member));
    member = nullptr;
    return {};
  });
}

void shw_communicator_group_release(shw_communicator_group* group) noexcept {
  capi::release_handle(group);
}

shw_status shw_communicator_create_fake(int32_t rank, int32_t size, shw_communicator** out,
                                        shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::check_ranks(rank, size));
    SHW_ASSIGN_OR_RETURN(*out,
                         capi::communicator_of(collective_ns::make_fake_communicator(rank, size)));
    return {};
  });
}

shw_status shw_communicator_create_delay(shw_communicator* communicator, int64_t latency_ns,
                                         double bytes_per_second, shw_communicator** out,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(auto inner, capi::read_communicator(communicator));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    if (latency_ns < 0)
      return capi::bad_argument("latency_ns", fmt::format("{} is negative", latency_ns));
    if (!(bytes_per_second >= 0) || std::isinf(bytes_per_second))
      return capi::bad_argument("bytes_per_second",
                                fmt::format("{} is neither 0 nor a rate", bytes_per_second));
    SHW_ASSIGN_OR_RETURN(*out, capi::communicator_of(collective_ns::make_delayed_communicator(
                                   std::move(inner), latency_ns, bytes_per_second)));
    return {};
  });
}

shw_status shw_communicator_create_over(shw_collective* collective, shw_communicator** out,
                                        shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto inner, capi::need(collective, "collective"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(
        *out, capi::communicator_of(collective_ns::make_communicator_over(inner->collective)));
    return {};
  });
}

shw_status shw_context_open_communicator(shw_context* context, const char* plugin,
                                         const char* config, uint64_t config_size,
                                         shw_communicator** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(context, "context"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plugin, "plugin"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(config, config_size, "config"));
    SHW_ASSIGN_OR_RETURN(auto opened, impl->plugins().open_communicator(plugin, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::communicator_of(std::move(opened)));
    return {};
  });
}

int32_t shw_communicator_rank(const shw_communicator* communicator) noexcept {
  const auto* impl = capi::peek(communicator);
  return impl == nullptr ? 0 : impl->communicator->rank();
}

int32_t shw_communicator_size(const shw_communicator* communicator) noexcept {
  const auto* impl = capi::peek(communicator);
  return impl == nullptr ? 0 : impl->communicator->size();
}

uint64_t shw_communicator_capabilities(const shw_communicator* communicator) noexcept {
  const auto* impl = capi::peek(communicator);
  return impl == nullptr ? 0 : impl->communicator->capabilities();
}

const char* shw_communicator_name(const shw_communicator* communicator, uint64_t* size) noexcept {
  const auto* impl = capi::peek(communicator);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->name), size);
}

shw_status shw_communicator_all_gather(shw_communicator* communicator,
                                       const shw_communicator_call* call, const void* in,
                                       uint64_t in_size, void* out, uint64_t out_size,
                                       shw_work** out_work, shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::kAllGather.issue(communicator, call, in, in_size, out, out_size, out_work);
  });
}

shw_status shw_communicator_all_to_all(shw_communicator* communicator,
                                       const shw_communicator_call* call, const void* in,
                                       uint64_t in_size, void* out, uint64_t out_size,
                                       shw_work** out_work, shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::kAllToAll.issue(communicator, call, in, in_size, out, out_size, out_work);
  });
}

shw_status shw_communicator_reduce_scatter(shw_communicator* communicator,
                                           const shw_communicator_call* call, const void* in,
                                           uint64_t in_size, void* out, uint64_t out_size,
                                           shw_work** out_work, shw_error** err) noexcept {
  return capi::guarded(err, [&] {
    return capi::kReduceScatter.issue(communicator, call, in, in_size, out, out_size, out_work);
  });
}

shw_status shw_communicator_all_reduce(shw_communicator* communicator,
                                       const shw_communicator_call* call, void* data, uint64_t size,
                                       shw_work** out_work, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto issue, capi::read_issue(communicator, call, out_work));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::exact(data, size, issue.part_bytes, "data"));
    return capi::hand_out(issue, issue.impl->communicator->all_reduce(issue.call, bytes), out_work);
  });
}

shw_status shw_communicator_broadcast(shw_communicator* communicator,
                                      const shw_communicator_call* call, void* data, uint64_t size,
                                      int32_t root, shw_work** out_work, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto issue, capi::read_issue(communicator, call, out_work));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::exact(data, size, issue.part_bytes, "data"));
    const int32_t ranks = issue.impl->communicator->size();
    if (root < 0 || root >= ranks)
      return capi::bad_argument("root", fmt::format("{} is not a rank of {}", root, ranks));
    return capi::hand_out(issue, issue.impl->communicator->broadcast(issue.call, bytes, root),
                          out_work);
  });
}

shw_status shw_communicator_barrier(shw_communicator* communicator,
                                    const shw_communicator_call* call, shw_work** out_work,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto issue, capi::read_issue(communicator, call, out_work));
    return capi::hand_out(issue, issue.impl->communicator->barrier(issue.call), out_work);
  });
}

shw_status shw_communicator_abort(shw_communicator* communicator, shw_status code,
                                  const char* message, uint64_t message_size,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(communicator, "communicator"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(message, message_size, "message"));
    Status cause;
    SHW_RETURN_IF_ERROR(capi::cause_argument(code, text, &cause));
    impl->communicator->abort(cause);
    return {};
  });
}

void shw_communicator_release(shw_communicator* communicator) noexcept {
  capi::release_handle(communicator);
}

}  // extern "C"
