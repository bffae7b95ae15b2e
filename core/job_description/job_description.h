// SPDX-License-Identifier: Apache-2.0
//
// JobDescription: a whole job described without any memory: its ranks, and for each tensor and
// object which rank holds what of it. It comes from JSON text (docs/formats/mesh.md) or from what a
// checkpoint stores; plans are estimated and simulated on it. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/layout/layout.h"
#include "core/plan/catalog.h"
#include "core/state/tensor_entry.h"
#include "core/tensor/dims.h"
#include "core/tensor/dtype.h"

namespace shardwright::job_description {

inline constexpr size_t kMaxJobTensors = size_t{1} << 22;  // after repeats are written out
inline constexpr size_t kMaxJobNameBytes = size_t{512} << 20;
inline constexpr size_t kMaxRepeatVariables = 8;
inline constexpr uint32_t kHeldByBoxes = 0xFFFFFFFF;

// A box and the ranks that hold it, ascending.
struct HeldBox {
  Box box;
  std::vector<int32_t> ranks;
};

struct JobTensor {
  std::string name;
  DType dtype = DType::kInvalid;
  EntryKind kind = EntryKind::kSharded;  // never kAuto
  Dims shape;
  uint32_t layout = kHeldByBoxes;  // number in JobDescription::layouts
  std::vector<HeldBox> boxes;      // of a tensor that is held by boxes
};

// Content type of objects, which descriptions do not name.
inline constexpr std::string_view kJobObjectType = "application/octet-stream";

struct JobObject {
  std::string name;
  EntryKind kind = EntryKind::kReplicated;
  uint64_t size_bytes = 0;
  uint32_t layout = 0;  // whose ranks hold it
};

// How tensors that another description names are laid out: the first rule whose glob matches.
struct JobRule {
  std::string glob;
  EntryKind kind = EntryKind::kSharded;
  uint32_t layout = 0;
};

// What a checkpoint stores, when the description comes from one.
struct StoredCheckpoint {
  plan::Catalog catalog;  // place = rank that wrote it
  uint64_t file_count = 0;
  std::string generation;           // empty when the format has none
  uint64_t digest_block_bytes = 0;  // 0 = the format has no digests
};

// A layout and how it was written.
struct JobLayout {
  std::shared_ptr<const Layout> layout;  // co-owned by descriptions made from this one
  std::string text;                      // for people: "dp=8 Shard(0) x tp=4 Replicate"
  std::string json;                      // how it is written in a description, as member json_key
  std::string json_key = "placements";
};

struct JobDescription {
  std::string description;
  int32_t rank_count = 1;
  std::vector<JobLayout> layouts;
  std::vector<JobTensor> tensors;
  std::vector<JobObject> objects;
  std::vector<JobRule> rules;
  std::shared_ptr<const StoredCheckpoint>
      stored;  // co-owned by descriptions made from this one; or null
};

// Reads a JSON description. INVALID_ARGUMENT with line and column (also as details) for everything
// that is wrong; keys that are not known are refused with the nearest one. RESOURCE_EXHAUSTED for
// more than the limits above. The text is data from outside: time and memory are linear in it and
// in what its repeats ask for.
Result<JobDescription> read_job_description(std::string_view json);

// The JSON text that read_job_description takes: repeats are written out and each layout has a mesh
// of its own.
std::string job_description_json(const JobDescription& job);

// The job of a checkpoint: each chunk is held by the rank whose file it lies in.
Result<JobDescription> job_of_checkpoint(std::shared_ptr<const StoredCheckpoint> stored,
                                         int32_t world_size);

// The tensors and objects of source as target lays them out: what target lists itself, and what its
// rules say of the others; objects that target does not list are held by all of its ranks. Entries
// of one rank stay with that rank, and are left out when target has no such rank. NOT_FOUND with
// the nearest names for what target lists and source lacks; INVALID_ARGUMENT for a tensor that
// target neither lists nor matches, or lists with another dtype or shape.
Result<JobDescription> lay_out(const JobDescription& source, const JobDescription& target);

// What a rank holds of a tensor: boxes that hold an element.
Result<std::vector<Box>> held_boxes(const JobDescription& job, const JobTensor& tensor,
                                    int32_t rank);
// Ranks that a layout has, ascending.
std::vector<int32_t> layout_ranks(const Layout& layout);

}  // namespace shardwright::job_description
