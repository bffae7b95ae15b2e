// SPDX-License-Identifier: Apache-2.0
//
// Reads tensors, objects and rules of a description: entries with repeats become one entry per
// combination. Thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json_tree.h"
#include "core/job_description/job_description.h"
#include "core/job_description/mesh_reader_internal.h"

namespace shardwright::job_description::internal {

// A variable of "repeat": its values are first to first + count - 1.
struct RepeatVariable {
  std::string name;
  int64_t first = 0;
  int64_t count = 1;
};

// A name with variables in braces, cut at them.
class NameTemplate {
 public:
  // Every variable must be used, every brace must be one: "{{" and "}}" stand for themselves.
  static Result<NameTemplate> read(JsonValueView name, std::span<const RepeatVariable> variables);
  // The name for these values, one per variable.
  std::string name_for(std::span<const int64_t> values) const;

 private:
  struct Part {
    std::string text;
    int64_t variable = -1;  // written behind the text; -1 = none
  };
  std::vector<Part> parts_;
};

class EntryReader {
 public:
  EntryReader(MeshReader* meshes, JobDescription* job) : meshes_(meshes), job_(job) {}
  Status read_tensors(JsonValueView tensors);
  Status read_objects(JsonValueView objects);
  Status read_rules(JsonValueView rules);
  // Two entries may share a name when no rank holds both.
  Status check_names() const;

 private:
  // What "at" says: a fixed coordinate, or a variable whose values are spread over the axis.
  struct At {
    size_t axis = 0;
    int64_t coordinate = 0;
    int64_t variable = -1;
  };
  struct Named {
    std::string_view name;
    JsonValueView where;
    const JobTensor* tensor = nullptr;  // null for an object
    uint32_t layout = kHeldByBoxes;
  };
  Status check_holders(std::span<const Named> entries) const;
  Status read_tensor(JsonValueView entry);
  Status read_object(JsonValueView entry);
  Status read_rule(JsonValueView entry);
  Result<std::vector<RepeatVariable>> read_repeat(JsonValueView entry) const;
  Result<std::vector<At>> read_at(JsonValueView entry, const NamedMesh& mesh,
                                  std::span<const RepeatVariable> variables) const;
  // Calls make with the name and the values of each combination.
  Status repeat(JsonValueView entry,
                const std::function<Status(std::string, std::span<const int64_t>)>& make,
                std::span<const RepeatVariable> variables);
  // Number of the layout for each combination of values.
  using LayoutFor = std::function<Result<uint32_t>(std::span<const int64_t>)>;
  Result<LayoutFor> read_where(JsonValueView entry, std::span<const RepeatVariable> variables,
                               int64_t dimension_count);
  Result<std::vector<HeldBox>> read_boxes(JsonValueView boxes, std::span<const int64_t> shape);

  MeshReader* meshes_;
  JobDescription* job_;
  std::vector<JsonValueView> tensor_origins_;  // where each tensor of the job stands
  std::vector<JsonValueView> object_origins_;
  size_t name_bytes_ = 0;
};

}  // namespace shardwright::job_description::internal
