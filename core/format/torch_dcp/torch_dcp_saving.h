// SPDX-License-Identifier: Apache-2.0
//
// Saving in the format of torch.distributed.checkpoint, in place: each rank writes one file under a
// name that nobody has, digests lie beside it, and the replacement of .metadata is the commit. Then
// the files of data that the replaced index named go, and nothing else.
#pragma once

#include "core/format/saving.h"

namespace shardwright::format::torch_dcp {

const FormatWriter& torch_dcp_writer();

}  // namespace shardwright::format::torch_dcp
