// SPDX-License-Identifier: Apache-2.0
//
// The id by which the ranks of a communicator over NCCL find each other: rank 0 makes it and hands
// it to all others as text, by whatever means the host has.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace shardwright::collective {

inline constexpr size_t kNcclIdBytes = 128;
using NcclId = std::array<std::byte, kNcclIdBytes>;

// A new id, of one communicator, as 256 hexadecimal digits. It names an address of this machine,
// on which this process listens from now on; no GPU is needed. `library` as in NcclRequest;
// UNAVAILABLE where that cannot be opened or has no network to listen on.
Result<std::string> make_nccl_id(const std::string& library);

// INVALID_ARGUMENT for text that is not 256 hexadecimal digits.
Result<NcclId> read_nccl_id(std::string_view text);

}  // namespace shardwright::collective
