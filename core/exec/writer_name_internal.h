// SPDX-License-Identifier: Apache-2.0
//
// Name and version of the library as manifests carry it.
#pragma once

#include <string_view>

namespace shardwright::exec::internal {

std::string_view writer_name();  // "shardwright <version>"

}  // namespace shardwright::exec::internal
