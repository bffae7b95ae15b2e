// SPDX-License-Identifier: Apache-2.0
//
// What ranks must say alike before a call does anything: where, and how. Digests are compared by
// all; only where those differ the texts travel, to name what differs.
#pragma once

#include <string>
#include <string_view>

#include "core/collective/exchange.h"
#include "core/format/format.h"

namespace shardwright::exec::internal {

// "path=..." and "storage=..." lines of a location.
std::string place_text(const format::Location& location);

// What a rank says in a comparison; borrows the text.
collective::Said said(std::string_view text);

// A step of all ranks: on all of them the failure of the lowest rank whose `mine` is one, or
// INVALID_ARGUMENT with the first line in which a rank differs from rank 0.
Status agree_on_text(collective::Exchange& exchange, uint32_t tag, const Status& mine,
                     std::string_view text) noexcept;

}  // namespace shardwright::exec::internal
