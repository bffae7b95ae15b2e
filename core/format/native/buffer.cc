// SPDX-License-Identifier: Apache-2.0
//
// Versions of what a native checkpoint is made of. Pure functions, any thread.
#include <fmt/format.h>

#include "core/format/native/buffer_internal.h"
#include "core/format/native/native_format.h"

namespace shardwright::format::native::internal {

Status check_version(const StoredVersion& version, std::string_view what) {
  if (version.major_number == kFormatMajor && version.minimum_reader_minor <= kFormatMinor)
    return {};
  const std::string needed =
      version.major_number == kFormatMajor
          ? fmt::format("{}.{}", version.major_number, version.minimum_reader_minor)
          : fmt::format("{}.{}", version.major_number, version.minor_number);
  return unimplemented(fmt::format("the {} is of format version {}.{}; this library reads {}.{} "
                                   "and what says that it "
                                   "may: use a library that reads version {}",
                                   what, version.major_number, version.minor_number, kFormatMajor,
                                   kFormatMinor, needed))
      .with_detail("needed_version", needed);
}

}  // namespace shardwright::format::native::internal
