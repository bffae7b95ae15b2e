// SPDX-License-Identifier: Apache-2.0
//
// Tensors and objects that are taken out of a checkpoint in place, with the files that hold nothing
// else: what a resharded or finished run wants no more, such as the state of an optimizer.
#pragma once

#include <string>

#include "core/exec/report.h"
#include "core/exec/runtime.h"
#include "core/format/opened_checkpoint.h"

namespace shardwright::exec {

struct RemoveOptions {
  std::string prefix;        // that names begin with; not empty
  bool whole_parts = false;  // behind it a name ends, or goes on with '.' or '/'
  bool apply = false;        // false: a dry run that lists what would go
};
// report.removed lists entries with the bytes that they take in files; files and bytes_files count
// the files that hold nothing else, which go with them, and notes name them. The index without them
// is durable before a file goes; what a removal that was cut off has left goes first.
// INVALID_ARGUMENT without prefix; NOT_FOUND when nothing is there, or no name begins so and
// nothing was left; UNIMPLEMENTED for formats other than torch DCP and Megatron's; UNAVAILABLE
// while a save or gc has the path.
Result<Report> remove_entries(Runtime& runtime, const format::Location& location,
                              const RemoveOptions& options);

}  // namespace shardwright::exec
