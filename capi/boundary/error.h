// SPDX-License-Identifier: Apache-2.0
//
// shw_error: the C error object, and its conversions from and to Status. An error is one block of
// text plus pointers into it; making one never fails: when memory is out, the one immortal error is
// given. Immutable once made, any thread. A released error is kept for a while, empty and with its
// word poisoned, as released handles are: releasing it again does nothing.
#pragma once

#include "core/base/status.h"
#include "shardwright/base.h"

namespace shardwright::capi {
inline constexpr uint64_t kErrorMagic = 0x7368772d6572726f;
}

struct shw_error {
  shw_status code = SHW_OK;
  bool retryable = false;
  bool immortal = false;  // the static out-of-memory error: release does nothing
  const char* message = "";
  uint64_t message_size = 0;
  const shw_error_detail* details = nullptr;
  uint64_t detail_count = 0;
  shw_error* cause = nullptr;  // owned
  const char* backtrace = "";
  uint64_t backtrace_size = 0;
  uint64_t magic = shardwright::capi::kErrorMagic;
};

namespace shardwright::capi {

// Never null; the caller releases it with shw_error_release.
shw_error* error_from_status(const Status& status) noexcept;
shw_error* error_copy(const shw_error* error) noexcept;

// What a host function returned, as a Status; error may be null and is released. `doing` names the
// call, such as "write_at of storage 'mine'".
Status status_from_host(shw_status code, shw_error* error, const char* doing);

}  // namespace shardwright::capi
