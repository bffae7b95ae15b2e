// SPDX-License-Identifier: Apache-2.0
//
// Time-outs: the core says "negative = no limit", the table "0 = library default, -1 = no limit"; a
// limit of zero becomes one nanosecond, so that it stays a limit.
#include "capi/adapters/collective_adapter.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/version.h"

namespace shardwright::capi {
namespace {

using collective::Call;
using collective::Collective;
using collective::ReduceOperation;

shw_collective_call host_call(const Call& call) {
  shw_collective_call made = SHW_COLLECTIVE_CALL_INIT;
  made.sequence = call.sequence;
  made.tag = call.tag;
  made.timeout_ns = call.timeout_ns < 0 ? -1 : call.timeout_ns;
  if (call.timeout_ns == 0) made.timeout_ns = 1;
  return made;
}

class HostCollective : public Collective {
 public:
  HostCollective(std::string name, std::shared_ptr<void> owner)
      : name_(std::move(name)), owner_(std::move(owner)) {}
  ~HostCollective() override {
    if (table_.release == nullptr) return;
    const CallbackScope scope;
    table_.release(table_.user);
  }
  // Called once; from here on the table's release is ours.
  void take(const shw_collective_vtable& table) { table_ = table; }

  int32_t rank() const override { return table_.rank; }
  int32_t size() const override { return table_.size; }
  std::string_view name() const override { return name_; }

  Status barrier(const Call& call) override {
    return run("barrier", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.barrier(table_.user, made, error);
    });
  }
  Status broadcast(const Call& call, std::span<std::byte> data, int32_t root) override {
    return run("broadcast", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.broadcast(table_.user, made, data.data(), data.size(), root, error);
    });
  }
  Status all_gather(const Call& call, std::span<const std::byte> in,
                    std::span<std::byte> out) override {
    return run("all_gather", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.all_gather(table_.user, made, in.data(), in.size(), out.data(), error);
    });
  }
  Status all_gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                      std::span<const uint64_t> sizes) override {
    return run("all_gather_v", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.all_gather_v(table_.user, made, in.data(), in.size(), out.data(), sizes.data(),
                                 error);
    });
  }
  bool has_gather_v() const override { return table_.gather_v != nullptr; }
  Status gather_v(const Call& call, std::span<const std::byte> in, std::span<std::byte> out,
                  std::span<const uint64_t> sizes, int32_t root) override {
    if (!has_gather_v()) return Collective::gather_v(call, in, out, sizes, root);
    return run("gather_v", call, [&](const shw_collective_call* made, shw_error** error) {
      const bool is_root = table_.rank == root;
      return table_.gather_v(table_.user, made, in.data(), in.size(),
                             is_root ? out.data() : nullptr, is_root ? sizes.data() : nullptr, root,
                             error);
    });
  }
  bool has_scatter_v() const override { return table_.scatter_v != nullptr; }
  Status scatter_v(const Call& call, std::span<const std::byte> in, std::span<const uint64_t> sizes,
                   std::span<std::byte> out, int32_t root) override {
    if (!has_scatter_v()) return Collective::scatter_v(call, in, sizes, out, root);
    return run("scatter_v", call, [&](const shw_collective_call* made, shw_error** error) {
      const bool is_root = table_.rank == root;
      return table_.scatter_v(table_.user, made, is_root ? in.data() : nullptr,
                              is_root ? sizes.data() : nullptr, out.data(), out.size(), root,
                              error);
    });
  }
  bool has_all_to_all_v() const override { return table_.all_to_all_v != nullptr; }
  Status all_to_all_v(const Call& call, std::span<const std::byte> in,
                      std::span<const uint64_t> in_sizes, std::span<std::byte> out,
                      std::span<const uint64_t> out_sizes) override {
    if (!has_all_to_all_v()) return Collective::all_to_all_v(call, in, in_sizes, out, out_sizes);
    return run("all_to_all_v", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.all_to_all_v(table_.user, made, in.data(), in_sizes.data(), out.data(),
                                 out_sizes.data(), error);
    });
  }
  Status all_reduce_i64(const Call& call, std::span<int64_t> values,
                        ReduceOperation operation) override {
    return run("all_reduce_i64", call, [&](const shw_collective_call* made, shw_error** error) {
      return table_.all_reduce_i64(table_.user, made, values.data(), values.size(),
                                   static_cast<int32_t>(operation), error);
    });
  }
  void abort(const Status& cause) noexcept override {
    const std::string_view message = cause.message();  // NUL-terminated, and there without memory
    const CallbackScope scope;
    table_.abort(table_.user, static_cast<shw_status>(cause.code()),
                 message.empty() ? "" : message.data(), message.size());
  }

 private:
  template <typename Body>
  Status run(const char* slot, const Call& call, Body&& body) {
    const shw_collective_call made = host_call(call);
    shw_error* error = nullptr;
    shw_status code = SHW_OK;
    {
      const CallbackScope scope;
      code = body(&made, &error);
    }
    if (code == SHW_OK && error == nullptr) return {};
    const std::string doing = fmt::format("{} of collective '{}' on rank {} of {}", slot, name_,
                                          table_.rank, table_.size);
    return status_from_host(code, error, doing.c_str());
  }

  shw_collective_vtable table_{};
  std::string name_;
  std::shared_ptr<void> owner_;  // the plugin that the functions lie in
};

}  // namespace

Status check_collective_slots(const shw_collective_vtable& vtable) {
  const auto need = [](auto slot, const char* name) -> Status {
    if (slot != nullptr) return {};
    return bad_argument("vtable", fmt::format("required slot '{}' is NULL", name))
        .with_detail("field", name);
  };
  SHW_RETURN_IF_ERROR(need(vtable.name, "name"));
  SHW_RETURN_IF_ERROR(need(vtable.barrier, "barrier"));
  SHW_RETURN_IF_ERROR(need(vtable.broadcast, "broadcast"));
  SHW_RETURN_IF_ERROR(need(vtable.all_gather, "all_gather"));
  SHW_RETURN_IF_ERROR(need(vtable.all_gather_v, "all_gather_v"));
  SHW_RETURN_IF_ERROR(need(vtable.all_reduce_i64, "all_reduce_i64"));
  SHW_RETURN_IF_ERROR(need(vtable.abort, "abort"));
  return check_interface(fmt::format("collective '{}'", vtable.name), vtable.abi_major,
                         vtable.abi_minor);
}

Status check_collective_ranks(const shw_collective_vtable& vtable) {
  if (vtable.size >= 1 && vtable.rank >= 0 && vtable.rank < vtable.size) return {};
  return bad_argument("vtable",
                      fmt::format("rank {} of {} ranks does not exist", vtable.rank, vtable.size));
}

Result<std::shared_ptr<collective::Collective>> make_host_collective(
    const shw_collective_vtable& vtable, std::shared_ptr<void> owner) {
  auto made = std::make_shared<HostCollective>(vtable.name, std::move(owner));
  made->take(vtable);
  return std::shared_ptr<collective::Collective>(std::move(made));
}

}  // namespace shardwright::capi
