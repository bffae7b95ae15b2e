// SPDX-License-Identifier: Apache-2.0
//
// How error objects are made and freed inside capi/: the parts of an error, and the immortal one
// that stands in when memory is out. make_error may throw std::bad_alloc; nothing is consumed then.
#pragma once

#include <string>
#include <vector>

#include "capi/boundary/error.h"

namespace shardwright::capi {

struct ErrorParts {
  shw_status code = SHW_UNKNOWN;
  std::string message;
  std::vector<StatusDetail> details;
  bool retryable = false;
  shw_error* cause = nullptr;  // moves into the error on success
};
shw_error* make_error(const ErrorParts& parts);
shw_error* out_of_memory_error() noexcept;
// Frees an error and its causes; null and the immortal error are fine.
void free_error(shw_error* error) noexcept;

}  // namespace shardwright::capi
