// SPDX-License-Identifier: Apache-2.0
//
// Local plans of the ranks of a job out of a row of choices: layouts over groups of ranks, and
// entries that follow one, are whole, are cut into boxes that each rank lists, or are objects.
// Ranks of one group differ by their place only, as in a regular job; rare choices make a rank
// another one.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layout/layout.h"
#include "core/plan/describe/builder.h"
#include "core/plan/options_text.h"
#include "tests/fuzz/byte_source.h"

namespace shardwright::fuzz {

// A mesh over groups of ranks that follow each other, and what its axes do.
struct JobLayout {
  std::vector<int64_t> axes;
  std::vector<Placement> placements;

  int32_t group_size() const {
    int64_t size = 1;
    for (const int64_t axis : axes) size *= axis;
    return static_cast<int32_t>(size);
  }
  // Of the group that the rank is in; refused where the placements or the ranks are wrong.
  Result<Layout::Ptr> of(int32_t rank) const {
    Mesh mesh;
    mesh.shape = Dims(axes);
    const int32_t first = rank / group_size() * group_size();
    for (int32_t i = 0; i < group_size(); ++i) mesh.ranks.push_back(first + i);
    return Layout::create(std::move(mesh), placements);
  }
};

inline JobLayout job_layout(ByteSource* source) {
  JobLayout layout;
  layout.axes.resize(1 + source->below<size_t>(3));
  for (int64_t& axis : layout.axes) {
    axis = 1 + source->below<int64_t>(4);
    Placement placement;
    const int what = source->below(8);
    placement.kind = what < 2   ? PlacementKind::kReplicate
                     : what < 6 ? PlacementKind::kShard
                     : what < 7 ? PlacementKind::kStridedShard
                                : PlacementKind::kFlat;
    placement.dim = source->below(4) - 1;
    placement.factor = 1 + source->below(3);
    layout.placements.push_back(placement);
  }
  return layout;
}

struct JobEntry {
  enum class Form : uint8_t { kWhole, kLayout, kBoxes, kObject };
  std::string name;
  Form form = Form::kWhole;
  DType dtype = DType::kFloat32;
  EntryKind kind = EntryKind::kAuto;
  Dims shape;
  size_t layout = 0;
  bool has_digest = false;
};

struct JobTable {
  std::vector<JobLayout> layouts;
  std::vector<JobEntry> entries;
};

inline JobTable job_table(ByteSource* source) {
  constexpr std::array<DType, 3> kDTypes = {DType::kFloat32, DType::kBfloat16, DType::kBool};
  JobTable table;
  table.layouts.resize(1 + source->below<size_t>(3));
  for (JobLayout& layout : table.layouts) layout = job_layout(source);
  table.entries.resize(1 + source->below<size_t>(6));
  for (size_t i = 0; i < table.entries.size(); ++i) {
    JobEntry& entry = table.entries[i];
    entry.name = "e" + std::to_string(i);
    entry.form = static_cast<JobEntry::Form>(source->below(4));
    entry.dtype = kDTypes[source->below(kDTypes.size())];
    const int kind = source->below(8);
    if (kind < 4) entry.kind = static_cast<EntryKind>(kind);
    std::vector<int64_t> shape(source->below<size_t>(4));
    for (int64_t& extent : shape) extent = source->below<int64_t>(13);
    entry.shape = Dims(shape);
    entry.layout = source->below(table.layouts.size());
    entry.has_digest = (source->byte() & 1) != 0;
  }
  return table;
}

// Describes one rank of the job.
class JobRank {
 public:
  JobRank(ByteSource* source, const JobTable& table, plan::RankPosition position)
      : source_(*source), table_(table), position_(position) {}

  Result<plan::LocalPlan> describe(const plan::SaveRules& rules) {
    SHW_ASSIGN_OR_RETURN(
        plan::DescriptionBuilder builder,
        plan::DescriptionBuilder::create(rules.kinds, plan::save_rules_text(rules), position_));
    const bool odd = source_.rarely();
    const uint8_t left_out = odd ? source_.byte() : 0;  // one bit per entry
    const size_t count = table_.entries.size();
    for (size_t i = 0; i < count; ++i) {
      const size_t entry = (left_out & 0x80) != 0 ? count - 1 - i : i;
      if ((left_out >> entry & 1) == 0)
        SHW_RETURN_IF_ERROR(add(table_.entries[entry], odd, &builder));
    }
    return builder.finish();
  }

 private:
  Status add(const JobEntry& entry, bool odd, plan::DescriptionBuilder* builder) {
    Digest128 digest{};
    if (entry.has_digest) digest[0] = std::byte{odd ? source_.byte() : uint8_t{1}};
    if (entry.form == JobEntry::Form::kObject) {
      const uint64_t size = entry.kind == EntryKind::kRankLocal || odd ? source_.byte() : 8;
      return builder->add_object(
          {entry.name, "", "application/octet-stream", entry.kind, size, digest});
    }
    const plan::DescriptionBuilder::Tensor tensor{entry.name, "",          entry.dtype,
                                                  entry.kind, entry.shape, digest};
    if (entry.form == JobEntry::Form::kLayout) {
      SHW_ASSIGN_OR_RETURN(const Layout::Ptr layout,
                           table_.layouts[entry.layout].of(position_.rank));
      return builder->add_sharded(tensor, *layout);
    }
    if (entry.form == JobEntry::Form::kWhole) return builder->add_whole(tensor);
    return builder->add_boxes(tensor, boxes_of(entry.shape));
  }

  // Rows of the rank, or any boxes.
  std::vector<Box> boxes_of(const Dims& shape) {
    if (!source_.rarely()) {
      Box rows = whole_box(shape);
      if (!shape.empty()) {
        rows.offsets[0] = shape[0] * position_.rank / position_.world_size;
        rows.sizes[0] = shape[0] * (position_.rank + 1) / position_.world_size - rows.offsets[0];
      }
      return {rows};
    }
    std::vector<Box> boxes(source_.below<size_t>(4), whole_box(shape));
    for (Box& box : boxes) {
      for (size_t d = 0; d < shape.size(); ++d) {
        box.offsets[d] = source_.below(shape[d] + 1);
        box.sizes[d] = source_.below(shape[d] - box.offsets[d] + 1);
      }
    }
    return boxes;
  }

  ByteSource& source_;
  const JobTable& table_;
  const plan::RankPosition position_;
};

// One per rank; none when a rank's description is refused, for which there is a reason in words.
inline std::vector<plan::LocalPlan> described_job(ByteSource* source, int32_t ranks,
                                                  const plan::SaveRules& rules) {
  const JobTable table = job_table(source);
  std::vector<plan::LocalPlan> locals;
  for (int32_t r = 0; r < ranks; ++r) {
    Result<plan::LocalPlan> local = JobRank(source, table, {r, ranks}).describe(rules);
    if (!local.ok() && local.status().message().empty()) __builtin_trap();
    if (!local.ok()) return {};
    locals.push_back(*std::move(local));
  }
  return locals;
}

}  // namespace shardwright::fuzz
