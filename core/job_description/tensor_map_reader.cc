// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps as HyperParallel writes them: per dimension of the tensor an axis, a list of axes or
// none. Numbers count axes from the right, in the order of the mesh or in one that the map names.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/job_description/mesh_reader_internal.h"

namespace shardwright::job_description::internal {
namespace {

constexpr std::string_view kMapKeys[] = {"axes", "map"};
constexpr std::string_view kNoAxis = "None";
constexpr std::string_view kInterleavedAxis = "interleaved_parallel";  // as Layout::create_mapped
constexpr int32_t kNoEntry = -1;

class TensorMapReader {
 public:
  explicit TensorMapReader(std::span<const std::string> axes) : axes_(axes) {
    for (size_t axis = 0; axis < axes.size(); ++axis) counted_.push_back(axis);
    used_.assign(axes.size(), false);
  }

  Result<TensorMap> read(JsonValueView value, int64_t dimension_count) {
    JsonValueView map = value;
    if (value.type() == JsonType::kObject) {
      SHW_RETURN_IF_ERROR(value.check_keys("a tensor map", kMapKeys));
      map = value.member("map");
      if (!map.exists()) return value.wrong("a tensor map needs 'map'");
      if (value.member("axes").exists()) SHW_RETURN_IF_ERROR(read_order(value.member("axes")));
    }
    for (const std::string& axis : axes_) {
      if (axis == kInterleavedAxis) return interleaved(value);
    }
    SHW_RETURN_IF_ERROR(need_type(map, JsonType::kArray, "'tensor_map'"));
    if (dimension_count >= 0 && std::cmp_not_equal(map.size(), dimension_count)) {
      return map.wrong(fmt::format("a map of {} entries for a tensor of {} dimensions", map.size(),
                                   dimension_count));
    }
    if (map.size() > static_cast<size_t>(kMaxTensorRank))
      return map.wrong(fmt::format("a map of more than {} dimensions", kMaxTensorRank));
    TensorMap made;
    for (JsonValueView entry = map.first(); entry.exists(); entry = entry.next()) {
      made.emplace_back();
      const bool list = entry.type() == JsonType::kArray;
      for (JsonValueView at = list ? entry.first() : entry; at.exists();
           at = list ? at.next() : JsonValueView()) {
        SHW_ASSIGN_OR_RETURN(const int32_t axis, read_axis(at));
        if (axis != kNoEntry) made.back().push_back(axis);
      }
    }
    return made;
  }

 private:
  static Status interleaved(JsonValueView where) {
    return where.unsupported(fmt::format(
        "axis '{}' splits on one device, which tensor maps do not support", kInterleavedAxis));
  }

  Result<size_t> axis_of(JsonValueView name) const {
    const auto found = std::ranges::find(axes_, name.text());
    if (found != axes_.end()) return static_cast<size_t>(found - axes_.begin());
    if (name.text() == kInterleavedAxis) return interleaved(name);
    std::string known;
    for (const std::string& axis : axes_)
      known += fmt::format("{}'{}'", known.empty() ? "" : ", ", escape_text(axis));
    return name.wrong(fmt::format("the mesh has no axis '{}' that a map could use; it has {}",
                                  escape_text(name.text()), known.empty() ? "none" : known));
  }

  // The order in which numbers count.
  Status read_order(JsonValueView order) {
    SHW_RETURN_IF_ERROR(need_type(order, JsonType::kArray, "'axes' of a tensor map"));
    counted_.clear();
    for (JsonValueView at = order.first(); at.exists(); at = at.next()) {
      SHW_RETURN_IF_ERROR(need_type(at, JsonType::kText, "an axis"));
      SHW_ASSIGN_OR_RETURN(const size_t axis, axis_of(at));
      if (std::ranges::find(counted_, axis) != counted_.end())
        return at.wrong(fmt::format("axis '{}' is listed twice", escape_text(at.text())));
      counted_.push_back(axis);
    }
    return {};
  }

  // Counted from the right in the mesh; kNoEntry for none.
  Result<int32_t> read_axis(JsonValueView at) {
    size_t axis = 0;
    if (at.type() == JsonType::kText) {
      if (at.text() == kNoAxis) return kNoEntry;
      SHW_ASSIGN_OR_RETURN(axis, axis_of(at));
    } else {
      SHW_ASSIGN_OR_RETURN(const int64_t number,
                           read_integer(at, "an axis of the map", kNoEntry,
                                        static_cast<int64_t>(counted_.size()) - 1));
      if (number == kNoEntry) return kNoEntry;
      axis = counted_[counted_.size() - 1 - static_cast<size_t>(number)];
    }
    if (used_[axis]) return at.wrong(fmt::format("axis '{}' cuts twice", escape_text(axes_[axis])));
    used_[axis] = true;
    return static_cast<int32_t>(axes_.size() - 1 - axis);
  }

  std::span<const std::string> axes_;
  std::vector<size_t> counted_;  // axes, the first is the highest number
  std::vector<bool> used_;
};

}  // namespace

Result<TensorMap> read_tensor_map(JsonValueView value, std::span<const std::string> axes,
                                  int64_t dimension_count) {
  return TensorMapReader(axes).read(value, dimension_count);
}

std::string tensor_map_json(const TensorMap& map) {
  std::string json = "[";
  for (const std::vector<int32_t>& entry : map) {
    if (json.size() > 1) json += ",";
    if (entry.empty()) {
      json += "-1";
    } else if (entry.size() == 1) {
      json += fmt::to_string(entry[0]);
    } else {
      json += fmt::format("[{}]", fmt::join(entry, ","));
    }
  }
  return json + "]";
}

}  // namespace shardwright::job_description::internal
