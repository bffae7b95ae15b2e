// SPDX-License-Identifier: Apache-2.0
//
// Failures are immutable and shared; every change makes a new one. That costs an allocation on the
// failure path only. Where that fails, the failure stays as it is; the two that stand for having no
// memory at all live in static memory, whose texts are short enough to need none of their own.
#include "core/base/status.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright {

struct Status::Failure {
  StatusCode code = StatusCode::kUnknown;
  std::string_view message;               // in text or static
  std::span<const StatusDetail> details;  // in owned or static
  std::optional<bool> retryable;          // unset = by code
  Status cause;
  std::string text;
  std::vector<StatusDetail> owned;

  Failure() = default;
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  void set_message(std::string value) {
    text = std::move(value);
    message = text;
  }
  void set_details(std::span<const StatusDetail> value) {
    owned.assign(value.begin(), value.end());
    details = owned;
  }
  // Null without memory, which the caller answers with what it has.
  template <typename Change>
  static std::shared_ptr<const Failure> changed(const Failure& from, const Change& change) noexcept;
};

template <typename Change>
std::shared_ptr<const Status::Failure> Status::Failure::changed(const Failure& from,
                                                                const Change& change) noexcept {
  try {
    auto made = std::make_shared<Failure>();
    made->code = from.code;
    made->set_message(std::string(from.message));
    made->set_details(from.details);
    made->retryable = from.retryable;
    made->cause = from.cause;
    change(made.get());
    return made;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// A failure in static memory that is never destroyed. Its texts fit into the strings themselves.
class Status::FixedFailure {
 public:
  FixedFailure(StatusCode code, const char* message, const char* key, const char* value)
      : detail_{key, value} {
    failure_.code = code;
    failure_.message = message;
    failure_.details = {&detail_, 1};
    failure_.retryable = false;
  }
  Status status() const noexcept {
    Status made;
    made.failure_ = std::shared_ptr<const Failure>(std::shared_ptr<const void>(), &failure_);
    return made;
  }

 private:
  StatusDetail detail_;
  Failure failure_;
};

Status out_of_memory() noexcept {
  alignas(Status::FixedFailure) static std::byte memory[sizeof(Status::FixedFailure)];
  static const auto* const kFailure = new (memory)
      Status::FixedFailure(StatusCode::kResourceExhausted, "memory ran out", "resource", "memory");
  return kFailure->status();
}

Status unknown_commit(Status failure) noexcept {
  failure = std::move(failure).with_detail("commit", "unknown").with_retryable(false);
  if (failure.detail("commit") == "unknown") return failure;
  alignas(Status::FixedFailure) static std::byte memory[sizeof(Status::FixedFailure)];
  static const auto* const kFailure = new (memory) Status::FixedFailure(
      StatusCode::kUnavailable,
      "memory ran out while the save was committed; it is unknown whether it was: look at the "
      "checkpoint's generation",
      "commit", "unknown");
  return kFailure->status();
}

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kUnknown:
      return "UNKNOWN";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case StatusCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case StatusCode::kAborted:
      return "ABORTED";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kInternal:
      return "INTERNAL";
    case StatusCode::kUnavailable:
      return "UNAVAILABLE";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnauthenticated:
      return "UNAUTHENTICATED";
    case StatusCode::kHostException:
      return "HOST_EXCEPTION";
  }
  return "UNRECOGNISED";
}

Status::Status(StatusCode code, std::string message) noexcept {
  if (code == StatusCode::kOk) return;
  try {
    auto failure = std::make_shared<Failure>();
    failure->code = code;
    failure->set_message(std::move(message));
    failure_ = std::move(failure);
  } catch (const std::bad_alloc&) {
    *this = out_of_memory();
  }
}

StatusCode Status::code() const {
  return ok() ? StatusCode::kOk : failure_->code;
}

std::string_view Status::message() const {
  return ok() ? std::string_view() : failure_->message;
}

std::span<const StatusDetail> Status::details() const {
  return ok() ? std::span<const StatusDetail>() : failure_->details;
}

std::string_view Status::detail(std::string_view key) const {
  for (const Status* status = this; status != nullptr; status = status->cause()) {
    for (const StatusDetail& each : status->details()) {
      if (each.key == key) return each.value;
    }
  }
  return {};
}

const Status* Status::cause() const {
  if (ok() || failure_->cause.ok()) return nullptr;
  return &failure_->cause;
}

bool Status::retryable() const {
  if (ok()) return false;
  if (failure_->retryable.has_value()) return *failure_->retryable;
  return failure_->code == StatusCode::kUnavailable || failure_->code == StatusCode::kAborted;
}

Status Status::with_detail(std::string_view key, std::string_view value) && noexcept {
  if (ok()) return {};
  auto changed = Failure::changed(*failure_, [&](Failure* made) {
    made->owned.push_back({std::string(key), std::string(value)});
    made->details = made->owned;
  });
  if (changed != nullptr) failure_ = std::move(changed);
  return std::move(*this);
}

Status Status::with_retryable(bool retryable) && noexcept {
  if (ok()) return {};
  auto changed = Failure::changed(*failure_, [&](Failure* made) { made->retryable = retryable; });
  if (changed != nullptr) failure_ = std::move(changed);
  return std::move(*this);
}

Status Status::annotated(std::string_view doing) && noexcept {
  if (ok()) return {};
  auto outer = Failure::changed(*failure_, [&](Failure* made) {
    made->set_message(std::string(doing));
    made->cause = *this;
  });
  if (outer != nullptr) failure_ = std::move(outer);
  return std::move(*this);
}

std::string Status::to_string() const {
  std::string text(status_code_name(code()));
  if (!ok() && text == "UNRECOGNISED") text += fmt::format(" {}", static_cast<int32_t>(code()));
  for (const Status* status = this; status != nullptr && !status->ok(); status = status->cause()) {
    text += ": ";
    text += escape_text(status->message(), 4096);
  }
  return text;
}

Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
Status not_found(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}
Status already_exists(std::string message) {
  return {StatusCode::kAlreadyExists, std::move(message)};
}
Status permission_denied(std::string message) {
  return {StatusCode::kPermissionDenied, std::move(message)};
}
Status resource_exhausted(std::string_view resource, std::string message) {
  return Status(StatusCode::kResourceExhausted, std::move(message))
      .with_detail("resource", resource);
}
Status failed_precondition(std::string message) {
  return {StatusCode::kFailedPrecondition, std::move(message)};
}
Status aborted(std::string message) {
  return {StatusCode::kAborted, std::move(message)};
}
Status out_of_range(std::string message) {
  return {StatusCode::kOutOfRange, std::move(message)};
}
Status unimplemented(std::string message) {
  return {StatusCode::kUnimplemented, std::move(message)};
}
Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}
Status unavailable(std::string message) {
  return {StatusCode::kUnavailable, std::move(message)};
}
Status data_loss(std::string message) {
  return {StatusCode::kDataLoss, std::move(message)};
}
Status cancelled(std::string message) {
  return {StatusCode::kCancelled, std::move(message)};
}
Status deadline_exceeded(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}

namespace {

struct ErrnoRule {
  int error_number;
  StatusCode code;
  std::string_view resource;  // empty = no such detail
};

constexpr ErrnoRule kErrnoRules[] = {
    {ENOSPC, StatusCode::kResourceExhausted, "disk"},
    {EDQUOT, StatusCode::kResourceExhausted, "quota"},
    {EFBIG, StatusCode::kResourceExhausted, "file_size"},
    {EMFILE, StatusCode::kResourceExhausted, "file_descriptors"},
    {ENFILE, StatusCode::kResourceExhausted, "file_descriptors"},
    {ENOMEM, StatusCode::kResourceExhausted, "memory"},
    {EACCES, StatusCode::kPermissionDenied, ""},
    {EPERM, StatusCode::kPermissionDenied, ""},
    {EROFS, StatusCode::kPermissionDenied, ""},
    {ENOENT, StatusCode::kNotFound, ""},
    {EEXIST, StatusCode::kAlreadyExists, ""},
    {ENAMETOOLONG, StatusCode::kInvalidArgument, ""},
    {EIO, StatusCode::kDataLoss, ""},
    {ESTALE, StatusCode::kUnavailable, ""},
    {ETIMEDOUT, StatusCode::kUnavailable, ""},
    {EAGAIN, StatusCode::kUnavailable, ""},
    {EINTR, StatusCode::kUnavailable, ""},
    {EBUSY, StatusCode::kUnavailable, ""},
    {ENOLCK, StatusCode::kUnavailable, ""},
    {ENOTCONN, StatusCode::kUnavailable, ""},
};

ErrnoRule rule_of(int error_number) {
  for (const ErrnoRule& rule : kErrnoRules) {
    if (rule.error_number == error_number) return rule;
  }
  return {error_number, StatusCode::kUnknown, ""};
}

}  // namespace

Status status_from_errno(int error_number, std::string_view doing, std::string_view subject) {
  const ErrnoRule rule = rule_of(error_number);
  char buffer[128];
  const char* text = strerror_r(error_number, buffer, sizeof(buffer));
  Status status(rule.code, fmt::format("cannot {} '{}': {} (errno {})", doing,
                                       escape_text(subject, 4096), text, error_number));
  status = std::move(status).with_detail("errno", std::to_string(error_number));
  if (!rule.resource.empty()) status = std::move(status).with_detail("resource", rule.resource);
  return status;
}

}  // namespace shardwright
