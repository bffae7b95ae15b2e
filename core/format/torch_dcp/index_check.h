// SPDX-License-Identifier: Apache-2.0
//
// What was encoded for .metadata, before it is committed: that it reads as what was meant, and that
// readers take as much. Pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/torch_dcp/index_writer.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"

namespace shardwright::format::torch_dcp {

struct IndexCheckRules {
  uint64_t most_bytes = kMaxIndexBytes;
  uint64_t most_values = archive::PickleLimits().nodes;
  // Up to this size the index is decoded, and every item compared. That of a larger one would take
  // longer than making it; it is read opcode by opcode, and what these make is counted.
  uint64_t most_decoded_bytes = uint64_t{16} << 20;
};

// INTERNAL where it is not what was meant; RESOURCE_EXHAUSTED, naming what there is and the limit,
// where readers refuse one of its size.
Status check_encoded(std::string_view bytes, const IndexContents& contents,
                     const IndexCheckRules& rules = {});

}  // namespace shardwright::format::torch_dcp
