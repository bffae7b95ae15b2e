// SPDX-License-Identifier: Apache-2.0
//
// What ranks must say alike before a call does anything: where, and how. It rides on the first meeting
// as 16 bytes behind each rank's own; only ranks that disagree meet once more, to name what differs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/collective.h"
#include "core/format/format.h"
#include "core/plan/wire/wire.h"

namespace shardwright::exec::internal {

// "path=..." and "storage=..." lines of a location.
std::string place_text(const format::Location& location);

// The bytes with the digest of the text behind them.
plan::Bytes sign(std::span<const std::byte> bytes, std::string_view text);

// Takes the digests off what all ranks brought to a meeting, mine among them. When they differ all
// ranks meet under the tag and get INVALID_ARGUMENT with the first line in which a rank differs from
// rank 0.
Status check_signatures(collective::Exchange& exchange, uint32_t tag, std::string_view text,
                        std::vector<plan::Bytes>* all);

}  // namespace shardwright::exec::internal
