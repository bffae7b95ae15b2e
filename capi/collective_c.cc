// SPDX-License-Identifier: Apache-2.0
//
// collective.h: transports between ranks and their raw operations.
#include "shardwright/collective.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/adapters/collective_adapter.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/collective_argument.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/base/checked.h"
#include "core/base/limits.h"

namespace shardwright::capi {
namespace {

constexpr int32_t kLargestGroup = 65536;

// What every raw operation begins with.
struct RawCall {
  std::shared_ptr<CollectiveImpl> impl;
  collective::Call call;
};

Result<RawCall> raw_call(shw_collective* collective, const shw_collective_call* given) {
  RawCall made;
  SHW_ASSIGN_OR_RETURN(made.impl, need(collective, "collective"));
  shw_collective_call copy;
  SHW_RETURN_IF_ERROR(read_options(given, "call", &copy));
  made.call.sequence = copy.sequence;
  made.call.tag = copy.tag;
  made.call.timeout_ns = copy.timeout_ns == 0 ? kDefaultCollectiveDeadlineNs : copy.timeout_ns;
  return made;
}

Result<std::span<std::byte>> writable(void* data, uint64_t size, const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const auto checked, bytes_argument(data, size, parameter));
  return std::span<std::byte>(static_cast<std::byte*>(data), checked.size());
}

Result<uint64_t> gathered_bytes(const collective::Collective& collective, uint64_t size) {
  uint64_t total = 0;
  if (!checked_multiply(size, static_cast<uint64_t>(collective.size()), &total)) {
    return bad_argument(
        "size", fmt::format("{} bytes from {} ranks are too many", size, collective.size()));
  }
  return total;
}

Status check_root(const collective::Collective& collective, int32_t root) {
  if (root >= 0 && root < collective.size()) return {};
  return bad_argument("root", fmt::format("{} is not a rank of {}", root, collective.size()));
}

// The sizes that the root gives; none on other ranks.
Result<std::span<const uint64_t>> sizes_of_root(const collective::Collective& collective,
                                                const uint64_t* sizes, int32_t root) {
  SHW_RETURN_IF_ERROR(check_root(collective, root));
  if (collective.rank() != root) return std::span<const uint64_t>();
  SHW_RETURN_IF_ERROR(need_pointer(sizes, "sizes"));
  return std::span(sizes, static_cast<size_t>(collective.size()));
}

Result<uint64_t> sum_of(std::span<const uint64_t> sizes, const char* parameter = "sizes") {
  uint64_t total = 0;
  for (const uint64_t size : sizes) {
    if (!checked_add(total, size, &total)) return bad_argument(parameter, "their sum overflows");
  }
  return total;
}

// Sizes that every rank gives, one per rank.
struct Row {
  std::span<const uint64_t> sizes;
  uint64_t total = 0;
};

Result<Row> row_of_sizes(const collective::Collective& collective, const uint64_t* sizes,
                         const char* parameter) {
  SHW_RETURN_IF_ERROR(need_pointer(sizes, parameter));
  Row row{{sizes, static_cast<size_t>(collective.size())}};
  SHW_ASSIGN_OR_RETURN(row.total, sum_of(row.sizes, parameter));
  return row;
}

}  // namespace

Result<shw_collective*> collective_of(std::shared_ptr<collective::Collective> collective) {
  auto impl = std::make_shared<CollectiveImpl>();
  impl->name = collective->name();
  impl->collective = std::move(collective);
  return make_handle<shw_collective>(std::move(impl));
}

Result<std::shared_ptr<collective::Collective>> read_collective(const shw_collective* collective) {
  if (collective == nullptr) {
    return std::shared_ptr<collective::Collective>(collective::make_single_collective());
  }
  SHW_ASSIGN_OR_RETURN(const auto impl, need(collective, "collective"));
  return impl->collective;
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace collective_ns = shardwright::collective;
using shardwright::Status;

extern "C" {

void shw_collective_call_init(shw_collective_call* call, uint32_t struct_size) noexcept {
  capi::init_struct(call, struct_size);
}

void shw_collective_vtable_init(shw_collective_vtable* vtable, uint32_t struct_size) noexcept {
  capi::init_struct(vtable, struct_size);
  if (vtable == nullptr || struct_size < SHW_COLLECTIVE_VTABLE_SIZE_V1) return;
  vtable->abi_major = SHW_ABI_MAJOR;
  vtable->abi_minor = SHW_ABI_MINOR;
}

shw_status shw_collective_create_single(shw_collective** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::collective_of(collective_ns::make_single_collective()));
    return {};
  });
}

shw_status shw_collective_group_create(int32_t size, shw_collective_group** out,
                                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    if (size < 1 || size > capi::kLargestGroup) {
      return capi::bad_argument(
          "size", fmt::format("{} is not between 1 and {}", size, capi::kLargestGroup));
    }
    auto impl = std::make_shared<capi::CollectiveGroupImpl>();
    impl->members = collective_ns::make_thread_collectives(size);
    *out = capi::make_handle<shw_collective_group>(std::move(impl));
    return {};
  });
}

shw_status shw_collective_group_member(shw_collective_group* group, int32_t rank,
                                       shw_collective** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(group, "group"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const std::lock_guard<std::mutex> lock(impl->mutex);
    if (rank < 0 || static_cast<size_t>(rank) >= impl->members.size()) {
      return capi::bad_argument("rank",
                                fmt::format("{} is not a rank of {}", rank, impl->members.size()));
    }
    auto& member = impl->members[static_cast<size_t>(rank)];
    if (member == nullptr) {
      return shardwright::failed_precondition(fmt::format("rank {} was taken before", rank));
    }
    auto made = std::make_shared<capi::CollectiveImpl>();
    made->name = member->name();
    auto handle = std::make_unique<shw_collective>();
    made->collective = std::move(member);
    handle->impl = std::move(made);
    *out = handle.release();
    return {};
  });
}

void shw_collective_group_release(shw_collective_group* group) noexcept {
  capi::release_handle(group);
}

shw_status shw_collective_create(const shw_collective_vtable* vtable, shw_collective** out,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_collective_vtable copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(vtable, "vtable", &copy));
    SHW_RETURN_IF_ERROR(capi::check_collective_slots(copy));
    SHW_RETURN_IF_ERROR(capi::check_collective_ranks(copy));
    // The handle is made before the table is taken over, so that a failure consumes nothing.
    auto impl = std::make_shared<capi::CollectiveImpl>();
    impl->name = copy.name;
    auto handle = std::make_unique<shw_collective>();
    SHW_ASSIGN_OR_RETURN(impl->collective, capi::make_host_collective(copy, nullptr));
    handle->impl = std::move(impl);
    *out = handle.release();
    return {};
  });
}

shw_status shw_collective_create_node(shw_collective* collective, const shw_collective_call* call,
                                      shw_collective** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const capi::RawCall raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(auto made,
                         collective_ns::make_node_collective(raw.impl->collective, raw.call));
    SHW_ASSIGN_OR_RETURN(*out, capi::collective_of(std::move(made)));
    return {};
  });
}

int32_t shw_collective_rank(const shw_collective* collective) noexcept {
  const auto* impl = capi::peek(collective);
  return impl == nullptr ? 0 : impl->collective->rank();
}

int32_t shw_collective_size(const shw_collective* collective) noexcept {
  const auto* impl = capi::peek(collective);
  return impl == nullptr ? 0 : impl->collective->size();
}

const char* shw_collective_name(const shw_collective* collective, uint64_t* size) noexcept {
  const auto* impl = capi::peek(collective);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->name), size);
}

shw_status shw_collective_barrier(shw_collective* collective, const shw_collective_call* call,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    return raw.impl->collective->barrier(raw.call);
  });
}

shw_status shw_collective_broadcast(shw_collective* collective, const shw_collective_call* call,
                                    void* data, uint64_t size, int32_t root,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::writable(data, size, "data"));
    SHW_RETURN_IF_ERROR(capi::check_root(*raw.impl->collective, root));
    return raw.impl->collective->broadcast(raw.call, bytes, root);
  });
}

shw_status shw_collective_all_gather(shw_collective* collective, const shw_collective_call* call,
                                     const void* data, uint64_t size, void* gathered,
                                     shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(const auto in, capi::bytes_argument(data, size, "data"));
    SHW_ASSIGN_OR_RETURN(const uint64_t total, capi::gathered_bytes(*raw.impl->collective, size));
    SHW_ASSIGN_OR_RETURN(const auto out, capi::writable(gathered, total, "gathered"));
    return raw.impl->collective->all_gather(raw.call, in, out);
  });
}

shw_status shw_collective_all_gather_v(shw_collective* collective, const shw_collective_call* call,
                                       const void* data, uint64_t size, void* gathered,
                                       const uint64_t* sizes, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(const auto in, capi::bytes_argument(data, size, "data"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(sizes, "sizes"));
    const auto& transport = *raw.impl->collective;
    const std::span<const uint64_t> list(sizes, static_cast<size_t>(transport.size()));
    if (list[static_cast<size_t>(transport.rank())] != size) {
      return capi::bad_argument("sizes",
                                fmt::format("it says {} bytes for this rank, but size is {}",
                                            list[static_cast<size_t>(transport.rank())], size));
    }
    SHW_ASSIGN_OR_RETURN(const uint64_t total, capi::sum_of(list));
    SHW_ASSIGN_OR_RETURN(const auto out, capi::writable(gathered, total, "gathered"));
    return raw.impl->collective->all_gather_v(raw.call, in, out, list);
  });
}

shw_status shw_collective_gather_v(shw_collective* collective, const shw_collective_call* call,
                                   const void* data, uint64_t size, void* gathered,
                                   const uint64_t* sizes, int32_t root, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(const auto in, capi::bytes_argument(data, size, "data"));
    auto& transport = *raw.impl->collective;
    SHW_ASSIGN_OR_RETURN(const auto list, capi::sizes_of_root(transport, sizes, root));
    SHW_ASSIGN_OR_RETURN(const uint64_t total, capi::sum_of(list));
    SHW_ASSIGN_OR_RETURN(const auto out, capi::writable(gathered, total, "gathered"));
    return transport.gather_v(raw.call, in, out, list, root);
  });
}

shw_status shw_collective_scatter_v(shw_collective* collective, const shw_collective_call* call,
                                    const void* parts, const uint64_t* sizes, void* data,
                                    uint64_t size, int32_t root, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    auto& transport = *raw.impl->collective;
    SHW_ASSIGN_OR_RETURN(const auto list, capi::sizes_of_root(transport, sizes, root));
    SHW_ASSIGN_OR_RETURN(const uint64_t total, capi::sum_of(list));
    SHW_ASSIGN_OR_RETURN(const auto in, capi::bytes_argument(parts, total, "parts"));
    SHW_ASSIGN_OR_RETURN(const auto out, capi::writable(data, size, "data"));
    return transport.scatter_v(raw.call, in, list, out, root);
  });
}

shw_status shw_collective_all_to_all_v(shw_collective* collective, const shw_collective_call* call,
                                       const void* sent, const uint64_t* sent_sizes, void* received,
                                       const uint64_t* received_sizes, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    auto& transport = *raw.impl->collective;
    SHW_ASSIGN_OR_RETURN(const auto in, capi::row_of_sizes(transport, sent_sizes, "sent_sizes"));
    SHW_ASSIGN_OR_RETURN(const auto out,
                         capi::row_of_sizes(transport, received_sizes, "received_sizes"));
    SHW_ASSIGN_OR_RETURN(const auto from, capi::bytes_argument(sent, in.total, "sent"));
    SHW_ASSIGN_OR_RETURN(const auto to, capi::writable(received, out.total, "received"));
    return transport.all_to_all_v(raw.call, from, in.sizes, to, out.sizes);
  });
}

shw_status shw_collective_all_reduce_i64(shw_collective* collective,
                                         const shw_collective_call* call, int64_t* values,
                                         uint64_t count, int32_t operation,
                                         shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto raw, capi::raw_call(collective, call));
    SHW_ASSIGN_OR_RETURN(const auto checked, capi::list_argument<int64_t>(values, count, "values"));
    SHW_RETURN_IF_ERROR(capi::option_in_range(operation, SHW_REDUCE_SUM, "operation"));
    return raw.impl->collective->all_reduce_i64(
        raw.call, {values, checked.size()}, static_cast<collective_ns::ReduceOperation>(operation));
  });
}

shw_status shw_collective_abort(shw_collective* collective, shw_status code, const char* message,
                                uint64_t message_size, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(collective, "collective"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(message, message_size, "message"));
    Status cause;
    SHW_RETURN_IF_ERROR(capi::cause_argument(code, text, &cause));
    impl->collective->abort(cause);
    return {};
  });
}

void shw_collective_release(shw_collective* collective) noexcept {
  capi::release_handle(collective);
}

}  // extern "C"
