// SPDX-License-Identifier: Apache-2.0
//
// base.h: versions, status names, the function table and the error object.
#include "shardwright/base.h"

#include <new>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/error.h"
#include "capi/boundary/error_factory.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/version.h"
#include "capi/extensions.h"
#include "core/base/text.h"
#include "shardwright/shardwright.h"

namespace shardwright::capi {
namespace {

struct NamedStatus {
  shw_status status;
  const char* name;
};
constexpr NamedStatus kStatusNames[] = {
    {SHW_OK, "OK"},
    {SHW_CANCELLED, "CANCELLED"},
    {SHW_UNKNOWN, "UNKNOWN"},
    {SHW_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
    {SHW_DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
    {SHW_NOT_FOUND, "NOT_FOUND"},
    {SHW_ALREADY_EXISTS, "ALREADY_EXISTS"},
    {SHW_PERMISSION_DENIED, "PERMISSION_DENIED"},
    {SHW_RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"},
    {SHW_FAILED_PRECONDITION, "FAILED_PRECONDITION"},
    {SHW_ABORTED, "ABORTED"},
    {SHW_OUT_OF_RANGE, "OUT_OF_RANGE"},
    {SHW_UNIMPLEMENTED, "UNIMPLEMENTED"},
    {SHW_INTERNAL, "INTERNAL"},
    {SHW_UNAVAILABLE, "UNAVAILABLE"},
    {SHW_DATA_LOSS, "DATA_LOSS"},
    {SHW_UNAUTHENTICATED, "UNAUTHENTICATED"},
    {SHW_PENDING, "PENDING"},
    {SHW_BUFFER_TOO_SMALL, "BUFFER_TOO_SMALL"},
    {SHW_HOST_EXCEPTION, "HOST_EXCEPTION"},
    {SHW_DECLINED, "DECLINED"},
};

constexpr shw_api kTable = {
    sizeof(shw_api), SHW_ABI_MAJOR, SHW_ABI_MINOR, 0, &kExtensions,
#include "capi/api_table.inc"
};

void write_size(uint64_t value, uint64_t* size) noexcept {
  if (size != nullptr) *size = value;
}

ErrorParts error_parts(shw_status code, std::string_view message,
                       std::span<const shw_error_detail> details) {
  ErrorParts parts;
  parts.code = code;
  parts.message = message;
  parts.retryable = code == SHW_UNAVAILABLE || code == SHW_ABORTED;
  for (const shw_error_detail& detail : details) {
    if (detail.key == nullptr || (detail.value == nullptr && detail.value_size != 0)) continue;
    const std::string_view value(detail.value == nullptr ? "" : detail.value, detail.value_size);
    if (std::string_view(detail.key) == "retryable") {
      parts.retryable = value == "1";
      continue;
    }
    parts.details.push_back({detail.key, std::string(value)});
  }
  return parts;
}

Result<const void*> find_extension(std::string_view name, uint32_t version) {
  std::string known;
  for (const shw_extension* each = &kExtensions; each != nullptr; each = each->next) {
    if (each->name != name) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", each->name);
    } else if (each->version == version) {
      return each->functions;
    } else {
      return unimplemented(fmt::format("the host was built for version {} of the extension '{}', "
                                       "this library ({}) has {}",
                                       version, name, library_version(), each->version))
          .with_detail("needed_version", std::to_string(version))
          .with_detail("library_version", std::to_string(each->version));
    }
  }
  return not_found(fmt::format("there is no extension '{}', only: {}", escape_text(name), known))
      .with_detail("parameter", "name");
}

}  // namespace

const shw_api& function_table() noexcept {
  return kTable;
}

const char* text_out(std::string_view terminated, uint64_t* size) noexcept {
  write_size(terminated.size(), size);
  return terminated.data() == nullptr ? "" : terminated.data();
}

Status check_interface(std::string_view what, uint32_t major, uint32_t minor) {
  const bool minor_fits = SHW_ABI_MAJOR == 0 ? minor == SHW_ABI_MINOR : minor <= SHW_ABI_MINOR;
  if (major == SHW_ABI_MAJOR && minor_fits) return {};
  const std::string wanted = fmt::format("{}.{}", major, minor);
  const std::string ours = fmt::format("{}.{}", SHW_ABI_MAJOR, SHW_ABI_MINOR);
  return unimplemented(
             fmt::format("{} was built for interface version {}, this library ({}) has {}", what,
                         wanted, library_version(), ours))
      .with_detail("needed_version", wanted)
      .with_detail("library_version", ours);
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;

extern "C" {

void shw_abi_version(uint32_t* major, uint32_t* minor) noexcept {
  if (major != nullptr) *major = SHW_ABI_MAJOR;
  if (minor != nullptr) *minor = SHW_ABI_MINOR;
}

const char* shw_version_string(void) noexcept {
  return capi::library_version();
}

const char* shw_build_info(void) noexcept {
  return capi::build_info();
}

const char* shw_status_name(shw_status status) noexcept {
  for (const capi::NamedStatus& each : capi::kStatusNames) {
    if (each.status == status) return each.name;
  }
  return "UNRECOGNISED";
}

shw_status shw_error_code(const shw_error* error) noexcept {
  return error == nullptr ? SHW_OK : error->code;
}

const char* shw_error_message(const shw_error* error, uint64_t* size) noexcept {
  capi::write_size(error == nullptr ? 0 : error->message_size, size);
  return error == nullptr ? "" : error->message;
}

uint64_t shw_error_detail_count(const shw_error* error) noexcept {
  return error == nullptr ? 0 : error->detail_count;
}

shw_status shw_error_detail_at(const shw_error* error, uint64_t index,
                               shw_error_detail* out) noexcept {
  if (error == nullptr || out == nullptr) return SHW_INVALID_ARGUMENT;
  if (index >= error->detail_count) return SHW_OUT_OF_RANGE;
  *out = error->details[index];
  return SHW_OK;
}

shw_bool shw_error_is_retryable(const shw_error* error) noexcept {
  return error != nullptr && error->retryable ? 1 : 0;
}

const shw_error* shw_error_cause(const shw_error* error) noexcept {
  return error == nullptr ? nullptr : error->cause;
}

const char* shw_error_backtrace(const shw_error* error, uint64_t* size) noexcept {
  capi::write_size(error == nullptr ? 0 : error->backtrace_size, size);
  return error == nullptr ? "" : error->backtrace;
}

shw_status shw_error_create(shw_status code, const char* message, uint64_t message_size,
                            const shw_error_detail* details, uint64_t detail_count,
                            shw_error* cause, shw_error** out) noexcept {
  const bool bad_text = message == nullptr && message_size != 0;
  const bool bad_details = details == nullptr && detail_count != 0;
  if (code == SHW_OK || out == nullptr || bad_text || bad_details) return SHW_INVALID_ARGUMENT;
  try {
    auto parts = capi::error_parts(code, {message == nullptr ? "" : message, message_size},
                                   {details, detail_count});
    parts.cause = cause;
    *out = capi::make_error(parts);
  } catch (...) {
    capi::free_error(cause);
    *out = capi::out_of_memory_error();
  }
  return code;
}

void shw_error_release(shw_error* error) noexcept {
  capi::free_error(error);
}

shw_status shw_get_api(uint32_t major, uint32_t min_minor, const shw_api** out,
                       shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> shardwright::Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::check_interface("the host", major, min_minor));
    *out = &capi::kTable;
    return {};
  });
}

shw_status shw_get_extension(const char* name, uint32_t version, const void** out,
                             shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> shardwright::Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(name, "name"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::find_extension(name, version));
    return {};
  });
}

}  // extern "C"
