// SPDX-License-Identifier: Apache-2.0
//
// An OwnedError holds all its text in one string, each text followed by a NUL, and detail records
// that point into it. Causes are linked and owned.
#include "capi/boundary/error.h"

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#ifndef NDEBUG
#include <execinfo.h>
#endif

#include "capi/boundary/error_factory.h"
#include "capi/boundary/handle.h"
#include "capi/boundary/process_state.h"

namespace shardwright::capi {
namespace {

constexpr char kOutOfMemoryText[] = "out of memory while building an error";
constinit shw_error_detail out_of_memory_detail = {"resource", "memory", 6};
constinit shw_error out_of_memory = {SHW_RESOURCE_EXHAUSTED,
                                     false,
                                     true,
                                     kOutOfMemoryText,
                                     sizeof(kOutOfMemoryText) - 1,
                                     &out_of_memory_detail,
                                     1,
                                     nullptr,
                                     "",
                                     0,
                                     kErrorMagic};

// The one failure that must keep what it says without memory: whether a save was committed.
constexpr char kUnknownCommitText[] =
    "memory ran out while the save was committed; it is unknown whether it was: look at the "
    "checkpoint's generation";
constinit shw_error_detail unknown_commit_detail = {"commit", "unknown", 7};
constinit shw_error unknown_commit_error = {SHW_UNAVAILABLE,
                                            false,
                                            true,
                                            kUnknownCommitText,
                                            sizeof(kUnknownCommitText) - 1,
                                            &unknown_commit_detail,
                                            1,
                                            nullptr,
                                            "",
                                            0,
                                            kErrorMagic};

struct OwnedError : shw_error {
  std::string text;
  std::vector<shw_error_detail> records;
};

// The stack of the failing call in debug builds, as addresses inside their libraries.
std::string call_stack() {
#ifdef NDEBUG
  return {};
#else
  constexpr int kFrames = 32;
  void* frames[kFrames];
  const int count = ::backtrace(frames, kFrames);
  char** lines = ::backtrace_symbols(frames, count);
  std::string text;
  for (int i = 2; lines != nullptr && i < count; ++i) text.append(lines[i]).append("\n");
  ::free(lines);
  return text;
#endif
}

// "outer: inner: ..." in one line.
std::string whole_message(const Status& status) {
  std::string text(status.message());
  for (const Status* cause = status.cause(); cause != nullptr; cause = cause->cause()) {
    text.append(": ").append(cause->message());
  }
  return text;
}

void collect_details(const Status& status, std::vector<StatusDetail>* details) {
  for (const Status* each = &status; each != nullptr; each = each->cause()) {
    for (const StatusDetail& detail : each->details()) {
      bool known = false;
      for (const StatusDetail& kept : *details) known = known || kept.key == detail.key;
      if (!known) details->push_back(detail);
    }
  }
}

}  // namespace

shw_error* out_of_memory_error() noexcept {
  return &out_of_memory;
}

shw_error* make_error(const ErrorParts& parts) {
  auto error = std::make_unique<OwnedError>();
  const std::string stack = call_stack();
  size_t bytes = parts.message.size() + stack.size() + 2;
  for (const StatusDetail& detail : parts.details) {
    bytes += detail.key.size() + detail.value.size() + 2;
  }
  error->text.reserve(bytes);  // pointers below stay valid
  const auto keep = [&error](std::string_view text) {
    const size_t begin = error->text.size();
    error->text.append(text).push_back('\0');
    return error->text.data() + begin;
  };
  error->code = parts.code;
  error->retryable = parts.retryable;
  error->message = keep(parts.message);
  error->message_size = parts.message.size();
  error->backtrace = keep(stack);
  error->backtrace_size = stack.size();
  error->records.reserve(parts.details.size());
  for (const StatusDetail& detail : parts.details) {
    const char* key = keep(detail.key);
    error->records.push_back({key, keep(detail.value), detail.value.size()});
  }
  error->details = error->records.data();
  error->detail_count = error->records.size();
  error->cause = parts.cause;
  return error.release();
}

void free_error(shw_error* error) noexcept {
  while (error != nullptr && !error->immortal && error->magic == kErrorMagic) {
    auto* owned = static_cast<OwnedError*>(error);
    shw_error* const cause = error->cause;
    if (in_forked_child()) {
      delete owned;  // the lock of the quarantine may be held by a thread that is not here
    } else {
      // Anew instead of assigned, which would keep the memory of the text.
      std::destroy_at(owned);
      std::construct_at(owned);
      owned->magic = kReleasedMagic;
      quarantine(owned, [](void* memory) { delete static_cast<OwnedError*>(memory); });
    }
    error = cause;
  }
}

shw_error* error_from_status(const Status& status) noexcept {
  shw_error* cause = nullptr;
  if (status.cause() != nullptr) cause = error_from_status(*status.cause());
  try {
    ErrorParts parts;
    parts.code = static_cast<shw_status>(status.code());
    parts.message = whole_message(status);
    parts.retryable = status.retryable();
    collect_details(status, &parts.details);
    parts.cause = cause;
    return make_error(parts);
  } catch (...) {
    free_error(cause);
    return status.detail("commit") == "unknown" ? &unknown_commit_error : out_of_memory_error();
  }
}

shw_error* error_copy(const shw_error* error) noexcept {
  if (error == nullptr || error->immortal) return const_cast<shw_error*>(error);
  shw_error* cause = error_copy(error->cause);
  try {
    ErrorParts parts;
    parts.code = error->code;
    parts.message.assign(error->message, error->message_size);
    parts.retryable = error->retryable;
    for (uint64_t i = 0; i < error->detail_count; ++i) {
      const shw_error_detail& detail = error->details[i];
      parts.details.push_back({detail.key, std::string(detail.value, detail.value_size)});
    }
    parts.cause = cause;
    return make_error(parts);
  } catch (...) {
    free_error(cause);
    return out_of_memory_error();
  }
}

Status status_from_host(shw_status code, shw_error* error, const char* doing) {
  if (code == SHW_OK) {
    free_error(error);
    return {};
  }
  struct Release {
    shw_error* error;
    ~Release() { free_error(error); }
  } release{error};
  const bool known =
      (code >= SHW_CANCELLED && code <= SHW_UNAUTHENTICATED) || code == SHW_HOST_EXCEPTION;
  if (!known) {
    return {StatusCode::kUnknown,
            fmt::format("{} answered status {}, which is none that a function of a host may give; "
                        "this is a fault of that function",
                        doing, code)};
  }
  const auto kept = static_cast<StatusCode>(code);
  if (error == nullptr) {
    return Status(kept, fmt::format("{} failed with status {} ({}) and no message", doing, code,
                                    status_code_name(static_cast<StatusCode>(code))));
  }
  Status status(kept, std::string(error->message, error->message_size));
  for (uint64_t i = 0; i < error->detail_count; ++i) {
    const shw_error_detail& detail = error->details[i];
    status = std::move(status).with_detail(detail.key,
                                           std::string_view(detail.value, detail.value_size));
  }
  if (error->retryable != status.retryable()) {
    status = std::move(status).with_retryable(error->retryable);
  }
  return std::move(status).annotated(doing);
}

}  // namespace shardwright::capi
