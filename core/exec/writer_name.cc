// SPDX-License-Identifier: Apache-2.0
//
// The build gives the version as SHW_VERSION_TEXT.
#include "core/exec/writer_name_internal.h"

namespace shardwright::exec::internal {

std::string_view writer_name() {
  return "shardwright " SHW_VERSION_TEXT;
}

}  // namespace shardwright::exec::internal
