// SPDX-License-Identifier: Apache-2.0
#include "plugins/tables/host_errors.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/without_exceptions.h"
#include "shardwright/api.h"

namespace shardwright::plugin_tables {
namespace {

constinit const shw_host_api* the_host = nullptr;

// Own text first, then what it was doing when it failed.
std::string text_of(const Status& status) {
  std::string text(status.message());
  for (const Status* cause = status.cause(); cause != nullptr; cause = cause->cause())
    text.append(": ").append(cause->message());
  return text;
}

Status make_error(const Status& status, shw_error** err) {
  std::vector<shw_error_detail> details;
  for (const StatusDetail& each : status.details())
    details.push_back({each.key.c_str(), each.value.data(), each.value.size()});
  const std::string text = text_of(status);
  // Without an error the code goes out alone, which every host takes.
  the_host->error_create(static_cast<shw_status>(status.code()), text.data(), text.size(),
                         details.data(), details.size(), nullptr, err);
  return {};
}

}  // namespace

void set_host(const shw_host_api* host) {
  the_host = host;
}

shw_status give(const Status& status, shw_error** err) noexcept {
  if (status.ok()) return SHW_OK;
  const auto code = static_cast<shw_status>(status.code());
  if (err == nullptr) return code;
  // No memory for the text: the code goes out alone.
  static_cast<void>(without_exceptions("making an error", [&] { return make_error(status, err); }));
  return code;
}

Status taken_from_host(shw_status code, shw_error* error) {
  // A failure without a code of its own is still one.
  const auto own = static_cast<StatusCode>(code == SHW_OK ? SHW_UNKNOWN : code);
  if (error == nullptr) return Status(own, "a function of the host failed without a text");
  const shw_api& api = *the_host->api;
  Status status(own, api.error_message(error, nullptr));
  for (uint64_t each = 0; each < api.error_detail_count(error); ++each) {
    shw_error_detail detail{};
    if (api.error_detail_at(error, each, &detail) != SHW_OK) continue;
    status = std::move(status).with_detail(detail.key,
                                           {detail.value, static_cast<size_t>(detail.value_size)});
  }
  the_host->error_release(error);
  return status;
}

Status give_text(std::string_view text, char** out, uint64_t* out_size) {
  void* const memory = the_host->allocate(nullptr, text.size(), 1);
  if (memory == nullptr) return out_of_memory();
  std::memcpy(memory, text.data(), text.size());
  *out = static_cast<char*>(memory);
  *out_size = text.size();
  return {};
}

}  // namespace shardwright::plugin_tables
