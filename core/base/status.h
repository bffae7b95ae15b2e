// SPDX-License-Identifier: Apache-2.0
//
// Status: the error value of the whole core. A success is one null pointer; a failure holds a code
// of the closed set that the C surface publishes, one sentence, details (key and value text) and
// the chain of causes. The message says what was being done and on which noun (file, tensor, rank,
// offset), what was expected and found, and what to do. Values copy and move; a copy shares the
// immutable failure. Making or changing a failure never throws: without memory for it the failure
// is out_of_memory(), and what cannot be added is left out. Immutable, so any thread may read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardwright {

// Numbers are frozen and equal to SHW_* of include/shardwright/base.h.
enum class StatusCode : int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
  kHostException = 34,
};

// Upper-case name without prefix, e.g. "DATA_LOSS"; "UNRECOGNISED" for a number outside the set.
std::string_view status_code_name(StatusCode code);

// One detail of a failure. Keys are those of the C surface: rank, phase, tensor, box, file, offset,
// length, expected, found, errno, generation, commit, limit, resource, unsafe, hint, parameter, ...
struct StatusDetail {
  std::string key;
  std::string value;
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, std::string message) noexcept;

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const;
  std::string_view message() const;  // "" for success; data() is NUL-terminated
  std::span<const StatusDetail> details() const;
  // Value of the first detail with this key, here or in a cause; "" when absent.
  std::string_view detail(std::string_view key) const;
  const Status* cause() const;  // nullptr when there is none; valid as long as this
  bool retryable() const;       // UNAVAILABLE and ABORTED unless set

  // Each returns a changed copy; on a success they do nothing.
  Status with_detail(std::string_view key, std::string_view value) && noexcept;
  Status with_retryable(bool retryable) && noexcept;
  // Adds what an outer layer was doing. The code, details and retryability stay those of the cause,
  // which is linked.
  Status annotated(std::string_view doing) && noexcept;

  // "CODE: message: cause: ..." on one line, for logs and tests.
  std::string to_string() const;

 private:
  friend Status out_of_memory() noexcept;
  friend Status unknown_commit(Status failure) noexcept;
  struct Failure;
  class FixedFailure;
  std::shared_ptr<const Failure> failure_;  // co-owned by copies of this value
};

// RESOURCE_EXHAUSTED with detail resource=memory that is there without any.
Status out_of_memory() noexcept;
// The failure with detail commit=unknown, not to be tried again; another one that says so, and
// nothing else, without memory for it.
Status unknown_commit(Status failure) noexcept;

// Makers, one per code that the core raises on purpose; arguments are fmt-formatted by the caller.
Status invalid_argument(std::string message);
Status not_found(std::string message);
Status already_exists(std::string message);
Status permission_denied(std::string message);
Status resource_exhausted(std::string_view resource, std::string message);  // adds detail resource
Status failed_precondition(std::string message);
Status aborted(std::string message);
Status out_of_range(std::string message);
Status unimplemented(std::string message);
Status internal_error(std::string message);
Status unavailable(std::string message);
Status data_loss(std::string message);
Status cancelled(std::string message);
Status deadline_exceeded(std::string message);
// Maps errno to the status of the error taxonomy (ENOSPC, EDQUOT, EFBIG, EMFILE, ENOMEM:
// RESOURCE_EXHAUSTED; EACCES, EPERM, EROFS: PERMISSION_DENIED; ENOENT: NOT_FOUND; EEXIST:
// ALREADY_EXISTS; ENAMETOOLONG: INVALID_ARGUMENT; EIO: DATA_LOSS; ESTALE, ETIMEDOUT, EAGAIN:
// UNAVAILABLE; else UNKNOWN) with details errno and resource. doing: e.g. "open for writing";
// subject: the file.
Status status_from_errno(int error_number, std::string_view doing, std::string_view subject);

}  // namespace shardwright
