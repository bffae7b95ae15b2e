// SPDX-License-Identifier: Apache-2.0
//
// The C interface for C++ hosts that use exceptions: a status that is not SHW_OK is an Error, and a
// handle has one owner. Knows nothing of torch.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwright/shardwright.h>

namespace shardwright {

// A call of the library that failed. what() names what, where and what to do, as the library says
// it: for collectives the rank, the operation and the unit.
class Error : public std::runtime_error {
 public:
  Error(shw_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  shw_status status() const noexcept { return status_; }

 private:
  shw_status status_;
};

namespace detail {

// Throws what call(err) failed with.
template <typename Call>
void check(const Call& call) {
  shw_error* error = nullptr;
  const shw_status status = call(&error);
  if (status == SHW_OK) return;
  uint64_t size = 0;
  const char* text = shw_error_message(error, &size);
  std::string message(text, static_cast<size_t>(size));
  shw_error_release(error);
  if (message.empty()) message = "shardwright failed with status " + std::to_string(status);
  throw Error(status, message);
}

template <auto Release>
struct Releaser {
  template <typename T>
  void operator()(T* handle) const noexcept {
    Release(handle);
  }
};
template <typename T, auto Release>
using Handle = std::unique_ptr<T, Releaser<Release>>;

using ContextHandle = Handle<shw_context, shw_context_release>;
using CollectiveHandle = Handle<shw_collective, shw_collective_release>;
using CommunicatorHandle = Handle<shw_communicator, shw_communicator_release>;
using MeshHandle = Handle<shw_hsdp_mesh, shw_hsdp_mesh_release>;
using HsdpHandle = Handle<shw_hsdp, shw_hsdp_release>;
using UnitHandle = Handle<shw_hsdp_unit, shw_hsdp_unit_release>;
using StateHandle = Handle<shw_state, shw_state_release>;
using ReportHandle = Handle<shw_report, shw_report_release>;

// The handle that make(&out, err) gives.
template <typename HandleType, typename Make>
HandleType made(const Make& make) {
  typename HandleType::pointer out = nullptr;
  check([&](shw_error** err) { return make(&out, err); });
  return HandleType(out);
}

// A JSON string.
inline std::string json_text(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string made = "\"";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x20) {
      made += std::string("\\u00") + kDigits[byte >> 4U] + kDigits[byte & 0xFU];
      continue;
    }
    if (each == '"' || each == '\\') made += '\\';
    made += each;
  }
  return made + '"';
}

}  // namespace detail
}  // namespace shardwright
