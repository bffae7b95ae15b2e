// SPDX-License-Identifier: Apache-2.0
//
// Writes a description so that read_job_description gives it back: one mesh per layout, no repeats.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/json_writer.h"
#include "core/job_description/job_description.h"
#include "core/job_description/mesh_reader_internal.h"

namespace shardwright::job_description {
namespace {

class JobWriter {
 public:
  explicit JobWriter(const JobDescription& job) : job_(job) {}

  std::string write() && {
    json_.begin_object().key("schema").number(1);
    if (!job_.description.empty()) json_.key("description").text(job_.description);
    json_.key("ranks").number(job_.rank_count);
    write_meshes();
    json_.key("tensors").begin_array();
    for (const JobTensor& tensor : job_.tensors) write_tensor(tensor);
    json_.end_array().key("objects").begin_array();
    for (const JobObject& object : job_.objects) write_object(object);
    json_.end_array();
    if (!job_.rules.empty()) write_rules();
    json_.end_object();
    return json_.take();
  }

 private:
  static std::string mesh_name(size_t layout) { return fmt::format("mesh{}", layout); }

  void numbers(std::string_view key, std::span<const int64_t> values) {
    json_.key(key).begin_array();
    for (const int64_t value : values) json_.number(value);
    json_.end_array();
  }

  // A list, or a range where it is one.
  void ranks(std::span<const int32_t> values) {
    json_.key("ranks");
    const int32_t step = values.size() > 1 ? values[1] - values[0] : 1;
    bool range = values.size() > 2 && step > 0;
    for (size_t i = 2; range && i < values.size(); ++i) range = values[i] - values[i - 1] == step;
    if (range) {
      json_.begin_object().key("from").number(values[0]);
      json_.key("count").number(static_cast<int64_t>(values.size()));
      if (step != 1) json_.key("step").number(step);
      json_.end_object();
      return;
    }
    json_.begin_array();
    for (const int32_t value : values) json_.number(value);
    json_.end_array();
  }

  void write_meshes() {
    if (job_.layouts.empty()) return;
    json_.key("meshes").begin_object();
    for (size_t l = 0; l < job_.layouts.size(); ++l) {
      const Mesh& mesh = job_.layouts[l].layout->mesh();
      json_.key(mesh_name(l)).begin_object().key("axes").begin_object();
      for (size_t axis = 0; axis < mesh.shape.size(); ++axis)
        json_.key(mesh.axis_names[axis]).number(mesh.shape[axis]);
      json_.end_object();
      if (!mesh.ranks.empty()) ranks(mesh.ranks);
      json_.end_object();
    }
    json_.end_object();
  }

  void write_layout(uint32_t layout, bool with_cuts) {
    json_.key("mesh").text(mesh_name(layout));
    if (!with_cuts) return;
    json_.key(job_.layouts[layout].json_key).raw(job_.layouts[layout].json);
  }

  void write_tensor(const JobTensor& tensor) {
    json_.begin_object().key("name").text(tensor.name);
    json_.key("dtype").text(dtype_name(tensor.dtype));
    numbers("shape", tensor.shape);
    json_.key("kind").text(entry_kind_name(tensor.kind));
    if (tensor.layout != kHeldByBoxes) {
      write_layout(tensor.layout, tensor.kind == EntryKind::kSharded);
    } else {
      json_.key("boxes").begin_array();
      for (const HeldBox& held : tensor.boxes) {
        json_.begin_object();
        numbers("offsets", held.box.offsets);
        numbers("sizes", held.box.sizes);
        ranks(held.ranks);
        json_.end_object();
      }
      json_.end_array();
    }
    json_.end_object();
  }

  void write_object(const JobObject& object) {
    json_.begin_object().key("name").text(object.name);
    json_.key("bytes").number_unsigned(object.size_bytes);
    json_.key("kind").text(entry_kind_name(object.kind));
    write_layout(object.layout, false);
    json_.end_object();
  }

  void write_rules() {
    json_.key("rules").begin_array();
    for (const JobRule& rule : job_.rules) {
      json_.begin_object().key("match").text(rule.glob);
      json_.key("kind").text(entry_kind_name(rule.kind));
      write_layout(rule.layout, rule.kind == EntryKind::kSharded);
      json_.end_object();
    }
    json_.end_array();
  }

  const JobDescription& job_;
  JsonWriter json_;
};

}  // namespace

std::string job_description_json(const JobDescription& job) {
  return JobWriter(job).write();
}

}  // namespace shardwright::job_description
