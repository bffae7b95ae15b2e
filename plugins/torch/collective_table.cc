// SPDX-License-Identifier: Apache-2.0
#include "plugins/torch/collective_table.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "plugins/tables/host_errors.h"

namespace shardwright::torch_plugin {
namespace {

using collective::Call;
using collective::Collective;
using collective::ReduceOperation;
using plugin_tables::give;

Collective& of(void* user) {
  return *static_cast<Collective*>(user);
}

Call call_of(const shw_collective_call* call) {
  constexpr int64_t kDefaultNs = int64_t{1800} * 1'000'000'000;
  return {call->sequence, call->tag, call->timeout_ns == 0 ? kDefaultNs : call->timeout_ns};
}

std::span<const std::byte> read_only(const void* data, uint64_t size) {
  return {static_cast<const std::byte*>(data), static_cast<size_t>(size)};
}

std::span<std::byte> writable(void* data, uint64_t size) {
  return {static_cast<std::byte*>(data), static_cast<size_t>(size)};
}

// The row of sizes of this group, and their sum: of sizes that overflow one that no buffer has.
struct Row {
  Row(const Collective& collective, const uint64_t* given) {
    if (given == nullptr) return;
    sizes = {given, static_cast<size_t>(collective.size())};
    for (const uint64_t size : sizes) {
      if (!checked_add(total, size, &total)) return;
    }
  }
  std::span<const uint64_t> sizes;
  uint64_t total = 0;
};

shw_status on_barrier(void* user, const shw_collective_call* call, shw_error** err) {
  return give(of(user).barrier(call_of(call)), err);
}

shw_status on_broadcast(void* user, const shw_collective_call* call, void* data, uint64_t size,
                        int32_t root, shw_error** err) {
  return give(of(user).broadcast(call_of(call), writable(data, size), root), err);
}

shw_status on_all_gather(void* user, const shw_collective_call* call, const void* in, uint64_t size,
                         void* out, shw_error** err) {
  uint64_t total = 0;
  if (!checked_multiply(size, static_cast<uint64_t>(of(user).size()), &total)) total = 0;
  return give(of(user).all_gather(call_of(call), read_only(in, size), writable(out, total)), err);
}

shw_status on_all_gather_v(void* user, const shw_collective_call* call, const void* in,
                           uint64_t size, void* out, const uint64_t* sizes, shw_error** err) {
  const Row row(of(user), sizes);
  return give(of(user).all_gather_v(call_of(call), read_only(in, size), writable(out, row.total),
                                    row.sizes),
              err);
}

shw_status on_gather_v(void* user, const shw_collective_call* call, const void* in, uint64_t size,
                       void* out, const uint64_t* sizes, int32_t root, shw_error** err) {
  const Row row(of(user), sizes);
  return give(of(user).gather_v(call_of(call), read_only(in, size), writable(out, row.total),
                                row.sizes, root),
              err);
}

shw_status on_scatter_v(void* user, const shw_collective_call* call, const void* in,
                        const uint64_t* sizes, void* out, uint64_t size, int32_t root,
                        shw_error** err) {
  const Row row(of(user), sizes);
  return give(of(user).scatter_v(call_of(call), read_only(in, row.total), row.sizes,
                                 writable(out, size), root),
              err);
}

shw_status on_all_to_all_v(void* user, const shw_collective_call* call, const void* in,
                           const uint64_t* in_sizes, void* out, const uint64_t* out_sizes,
                           shw_error** err) {
  const Row sent(of(user), in_sizes);
  const Row received(of(user), out_sizes);
  return give(of(user).all_to_all_v(call_of(call), read_only(in, sent.total), sent.sizes,
                                    writable(out, received.total), received.sizes),
              err);
}

shw_status on_all_reduce(void* user, const shw_collective_call* call, int64_t* values,
                         uint64_t count, int32_t operation, shw_error** err) {
  return give(of(user).all_reduce_i64(call_of(call), {values, static_cast<size_t>(count)},
                                      static_cast<ReduceOperation>(operation)),
              err);
}

void on_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  of(user).abort(without_exceptions("abort of a collective", [&] {
    return Status(static_cast<StatusCode>(code),
                  std::string(message, static_cast<size_t>(message_size)));
  }));
}

void on_release(void* user) {
  delete &of(user);
}

}  // namespace

shw_collective_vtable collective_functions() {
  shw_collective_vtable table = SHW_COLLECTIVE_VTABLE_INIT;
  table.name = "c10d";
  table.barrier = on_barrier;
  table.broadcast = on_broadcast;
  table.all_gather = on_all_gather;
  table.all_gather_v = on_all_gather_v;
  table.gather_v = on_gather_v;
  table.scatter_v = on_scatter_v;
  table.all_to_all_v = on_all_to_all_v;
  table.all_reduce_i64 = on_all_reduce;
  table.abort = on_abort;
  table.release = on_release;
  return table;
}

void fill_table(std::unique_ptr<Collective> collective, shw_collective_vtable* table) {
  table->rank = collective->rank();
  table->size = collective->size();
  table->user = collective.release();
}

}  // namespace shardwright::torch_plugin
