// SPDX-License-Identifier: Apache-2.0
//
// Convert: a checkpoint of any format that is read, saved again in another one, in bounded memory.
// It is a save whose ranks are the files to be written and whose bytes come from the source: plan,
// files and commit are those of save.h. What was written stays when it fails or is killed, and the
// same call goes on with it; in the end the digests of all tensors are compared. The source is only
// read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/checkpoint.h"
#include "core/exec/options.h"
#include "core/exec/report.h"
#include "core/exec/runtime.h"

namespace shardwright::exec {

struct ConvertOptions {
  std::string format = "native";  // of the target
  Overwrite overwrite = Overwrite::kRefuse;
  Durability durability = Durability::kFull;
  bool compare = true;  // read both again in the end and compare tensor digests
  uint32_t file_mode = 0;
  bool common_as_object = false;  // see SaveOptions
  bool lists_digests = false;     // see SaveOptions
  uint64_t max_shard_bytes = 0;   // of the payload of one file, 0 = 5e9
};

// Where the elements of a tensor go: boxes that tile it, each with the number of the file that gets
// it. Pure.
class FilePlacement {
 public:
  struct Part {
    Box box;
    uint32_t file = 0;
  };
  virtual ~FilePlacement() = default;
  virtual std::vector<Part> parts(const plan::Catalog& source, size_t tensor) const = 0;
};

// Two runtimes, because a writer that holds its block must not wait for a reader that wants one of
// the same budget. INVALID_ARGUMENT when one place lies in the other; ALREADY_EXISTS when the
// target holds another checkpoint and may not be replaced; DATA_LOSS naming the first tensor that
// differs; else the failures of opening and saving. Byte objects of the source are held in memory.
Result<Report> convert(Runtime& reading, Runtime& writing, const format::Location& source,
                       const format::Location& target, const ConvertOptions& options,
                       const CallContext& call);

// Of a checkpoint that is open, or of a view of one: identity() of what it opened tells apart what
// is to be made. placement: null puts whole tensors into files of max_shard_bytes. It and the
// source's place outlive the call.
Result<Report> convert(Runtime& writing, const std::shared_ptr<const Checkpoint>& source,
                       const FilePlacement* placement, const format::Location& target,
                       const ConvertOptions& options, const CallContext& call);

}  // namespace shardwright::exec
