// SPDX-License-Identifier: Apache-2.0
#include "capi/hsdp/host_memory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"

namespace shardwright::capi {
namespace {

class HostAllocator : public hsdp::ParameterAllocator {
 public:
  explicit HostAllocator(std::string unit) : unit_(std::move(unit)) {}
  ~HostAllocator() override {
    if (table_.release == nullptr) return;
    const CallbackScope scope;
    table_.release(table_.user);
  }
  // Called once; from here on the table's release is ours.
  void take(const shw_hsdp_allocator& table) { table_ = table; }

  Result<std::span<std::byte>> allocate(size_t parameter, uint64_t bytes) override {
    void* memory = nullptr;
    shw_error* error = nullptr;
    shw_status code = SHW_OK;
    {
      const CallbackScope scope;
      code = table_.allocate(table_.user, parameter, bytes, &memory, &error);
    }
    const std::string doing =
        fmt::format("allocator of unit '{}', {} bytes for parameter {}", unit_, bytes, parameter);
    if (code != SHW_OK || error != nullptr) return status_from_host(code, error, doing.c_str());
    if (memory == nullptr && bytes != 0)
      return resource_exhausted("memory", fmt::format("the {}: it gave NULL", doing));
    return std::span(static_cast<std::byte*>(memory), bytes);
  }

  void release(size_t parameter, std::span<std::byte> memory) noexcept override {
    const CallbackScope scope;
    table_.deallocate(table_.user, parameter, memory.data(), memory.size());
  }

 private:
  shw_hsdp_allocator table_{};
  const std::string unit_;
};

}  // namespace

Result<std::shared_ptr<hsdp::ParameterAllocator>> make_host_allocator(
    const shw_hsdp_allocator& table, std::string unit) {
  const auto need = [](auto slot, const char* name) -> Status {
    if (slot != nullptr) return {};
    return bad_argument("allocator", fmt::format("required slot '{}' is NULL", name))
        .with_detail("field", name);
  };
  SHW_RETURN_IF_ERROR(need(table.allocate, "allocate"));
  SHW_RETURN_IF_ERROR(need(table.deallocate, "deallocate"));
  auto made = std::make_shared<HostAllocator>(std::move(unit));
  made->take(table);
  return std::shared_ptr<hsdp::ParameterAllocator>(std::move(made));
}

void GivenMemory::give(size_t first, std::span<const std::span<std::byte>> memory) {
  if (memory_.size() < first + memory.size()) memory_.resize(first + memory.size());
  std::ranges::copy(memory, memory_.begin() + static_cast<ptrdiff_t>(first));
}

Result<std::span<std::byte>> GivenMemory::allocate(size_t parameter, uint64_t bytes) {
  const std::span<std::byte> given =
      parameter < memory_.size() ? memory_[parameter] : std::span<std::byte>();
  if (given.size() == bytes) return given;
  return failed_precondition(
      fmt::format("parameter {} of unit '{}' needs {} bytes of the host when it is gathered, {} "
                  "were given: call shw_hsdp_unit_set_memory before the gather is waited for",
                  parameter, unit_, bytes, given.size()));
}

void GivenMemory::release(size_t parameter, std::span<std::byte> memory) noexcept {
  static_cast<void>(parameter);
  static_cast<void>(memory);
}

}  // namespace shardwright::capi
