// SPDX-License-Identifier: Apache-2.0
#include "plugins/tables/communicator_table.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/without_exceptions.h"
#include "plugins/tables/host_errors.h"

namespace shardwright::plugin_tables {
namespace {

using collective::Communicator;
using collective::CommunicatorCall;
using collective::CommunicatorPtr;
using collective::Work;
using collective::WorkPtr;

Communicator& of(void* user) {
  return **static_cast<CommunicatorPtr*>(user);
}

CommunicatorCall call_of(const shw_communicator_call* given) {
  constexpr int64_t kDefaultNs = int64_t{1800} * 1'000'000'000;
  CommunicatorCall call;
  call.sequence = given->sequence;
  call.unit = given->unit_id;
  call.count = given->count;
  call.dtype = static_cast<DType>(given->dtype);
  call.reduction = static_cast<collective::Reduction>(given->op);
  call.scale = given->scale;
  call.stream = given->stream;
  call.timeout_ns = given->timeout_ns == 0 ? kDefaultNs : given->timeout_ns;
  call.tag = given->tag;
  return call;
}

// Bytes of one part and of all: the table gives addresses, and the host has compared sizes.
struct Sizes {
  size_t part = 0;
  size_t all = 0;
};

Result<Sizes> sizes_of(const Communicator& communicator, const CommunicatorCall& call) {
  SHW_ASSIGN_OR_RETURN(const uint64_t part,
                       dtype_packed_bytes(call.dtype, static_cast<int64_t>(call.count)));
  uint64_t all = 0;
  if (!checked_multiply(part, static_cast<uint64_t>(communicator.size()), &all))
    return invalid_argument("a collective of more bytes than 64 bits count");
  return Sizes{static_cast<size_t>(part), static_cast<size_t>(all)};
}

// issue(sizes) gives the work of an operation, which goes out last.
template <typename Issue>
shw_status move(void* user, const CommunicatorCall& call, void** work, shw_error** err,
                const Issue& issue) {
  const Status status = without_exceptions("issuing a collective", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const Sizes sizes, sizes_of(of(user), call));
    SHW_ASSIGN_OR_RETURN(WorkPtr made, issue(sizes));
    *work = made.release();
    return {};
  });
  return give(status, err);
}

std::span<const std::byte> read_only(const void* data, size_t size) {
  return {static_cast<const std::byte*>(data), size};
}

std::span<std::byte> writable(void* data, size_t size) {
  return {static_cast<std::byte*>(data), size};
}

shw_status on_all_gather(void* user, const shw_communicator_call* given, const void* in, void* out,
                         void** work, shw_error** err) {
  const CommunicatorCall call = call_of(given);
  return move(user, call, work, err, [&](const Sizes& sizes) {
    return of(user).all_gather(call, read_only(in, sizes.part), writable(out, sizes.all));
  });
}

shw_status on_all_to_all(void* user, const shw_communicator_call* given, const void* in, void* out,
                         void** work, shw_error** err) {
  const CommunicatorCall call = call_of(given);
  return move(user, call, work, err, [&](const Sizes& sizes) {
    return of(user).all_to_all(call, read_only(in, sizes.all), writable(out, sizes.all));
  });
}

shw_status on_reduce_scatter(void* user, const shw_communicator_call* given, const void* in,
                             void* out, void** work, shw_error** err) {
  const CommunicatorCall call = call_of(given);
  return move(user, call, work, err, [&](const Sizes& sizes) {
    return of(user).reduce_scatter(call, read_only(in, sizes.all), writable(out, sizes.part));
  });
}

shw_status on_all_reduce(void* user, const shw_communicator_call* given, void* data, void** work,
                         shw_error** err) {
  const CommunicatorCall call = call_of(given);
  return move(user, call, work, err, [&](const Sizes& sizes) {
    return of(user).all_reduce(call, writable(data, sizes.part));
  });
}

shw_status on_broadcast(void* user, const shw_communicator_call* given, void* data, int32_t root,
                        void** work, shw_error** err) {
  const CommunicatorCall call = call_of(given);
  return move(user, call, work, err, [&](const Sizes& sizes) {
    return of(user).broadcast(call, writable(data, sizes.part), root);
  });
}

shw_status on_barrier(void* user, const shw_communicator_call* given, void** work,
                      shw_error** err) {
  const CommunicatorCall call = call_of(given);
  const Status status = without_exceptions("issuing a barrier", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(WorkPtr made, of(user).barrier(call));
    *work = made.release();
    return {};
  });
  return give(status, err);
}

shw_status ended(const Result<bool>& outcome, shw_error** err) {
  if (!outcome.ok()) return give(outcome.status(), err);
  return *outcome ? SHW_OK : SHW_PENDING;
}

shw_status on_work_wait(void*, void* work, int64_t timeout_ns, shw_error** err) {
  return ended(static_cast<Work*>(work)->wait(timeout_ns), err);
}

shw_status on_work_test(void*, void* work, shw_error** err) {
  return ended(static_cast<Work*>(work)->test(), err);
}

shw_status on_work_order(void*, void* work, uint64_t stream, shw_error** err) {
  return give(static_cast<Work*>(work)->order(stream), err);
}

void on_work_release(void*, void* work) {
  delete static_cast<Work*>(work);
}

// A host says why and not who: it is the rank of this end.
void on_abort(void* user, shw_status code, const char* message, uint64_t message_size) {
  of(user).abort(without_exceptions("abort of a communicator", [&] {
    return Status(static_cast<StatusCode>(code),
                  std::string(message, static_cast<size_t>(message_size)))
        .with_detail("rank", fmt::to_string(of(user).rank()));
  }));
}

void on_release(void* user) {
  delete static_cast<CommunicatorPtr*>(user);
}

}  // namespace

shw_communicator_vtable communicator_functions(const char* name) {
  shw_communicator_vtable table = SHW_COMMUNICATOR_VTABLE_INIT;
  table.name = name;
  table.all_gather = on_all_gather;
  table.all_to_all = on_all_to_all;
  table.work_wait = on_work_wait;
  table.work_test = on_work_test;
  table.work_release = on_work_release;
  table.abort = on_abort;
  table.release = on_release;
  return table;
}

void add_own_operations(shw_communicator_vtable* table) {
  table->reduce_scatter = on_reduce_scatter;
  table->all_reduce = on_all_reduce;
  table->broadcast = on_broadcast;
  table->barrier = on_barrier;
  table->work_order = on_work_order;
}

void fill_table(CommunicatorPtr communicator, shw_communicator_vtable* table) {
  table->rank = communicator->rank();
  table->size = communicator->size();
  table->capabilities = communicator->capabilities();
  table->user = std::make_unique<CommunicatorPtr>(std::move(communicator)).release();
}

}  // namespace shardwright::plugin_tables
