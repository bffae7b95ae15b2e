// SPDX-License-Identifier: Apache-2.0
//
// Jobs of checkpoints, and one job laid out as another.
#include "core/job_description/job_description.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"

namespace shardwright::job_description {
namespace {

// Layouts in which the listed ranks hold everything, each made once.
class WholeLayouts {
 public:
  explicit WholeLayouts(JobDescription* job) : job_(job) {}

  Result<uint32_t> of(std::vector<int32_t> ranks) {
    const auto found = known_.find(ranks);
    if (found != known_.end()) return found->second;
    Mesh mesh;
    mesh.shape = Dims{static_cast<int64_t>(ranks.size())};
    mesh.axis_names = {"rank"};
    mesh.ranks = ranks;
    SHW_ASSIGN_OR_RETURN(auto layout, Layout::create(std::move(mesh), {Placement{}}));
    const auto number = static_cast<uint32_t>(job_->layouts.size());
    job_->layouts.push_back(
        {std::move(layout), fmt::format("rank={} Replicate", ranks.size()), "[\"Replicate\"]"});
    known_.emplace(std::move(ranks), number);
    return number;
  }

  Result<uint32_t> of_all() {
    std::vector<int32_t> ranks(static_cast<size_t>(job_->rank_count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return of(std::move(ranks));
  }

 private:
  JobDescription* job_;
  std::map<std::vector<int32_t>, uint32_t> known_;
};

Status add_stored_tensors(const StoredCheckpoint& stored, WholeLayouts* layouts,
                          JobDescription* job) {
  const plan::Catalog& catalog = stored.catalog;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const plan::TensorRecord& record = catalog.tensors[t];
    JobTensor tensor;
    tensor.name = catalog.tensor_name(t);
    tensor.dtype = record.dtype;
    tensor.shape = Dims(catalog.shape(t));
    if (record.kind == EntryKind::kRankLocal) {
      tensor.kind = EntryKind::kRankLocal;
      SHW_ASSIGN_OR_RETURN(tensor.layout, layouts->of({record.rank}));
    } else if (record.chunk_count == 0) {
      SHW_ASSIGN_OR_RETURN(tensor.layout, layouts->of({0}));  // nobody holds an element
    } else {
      for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c)
        tensor.boxes.push_back({catalog.chunk_box(c), {static_cast<int32_t>(catalog.place_of(c))}});
    }
    job->tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    const plan::ObjectRecord& record = catalog.objects[i];
    JobObject object;
    object.name = catalog.object_name(i);
    object.kind = record.kind;
    object.size_bytes = record.size_bytes;
    SHW_ASSIGN_OR_RETURN(
        object.layout,
        layouts->of({record.rank >= 0 ? record.rank : static_cast<int32_t>(record.place)}));
    job->objects.push_back(std::move(object));
  }
  return {};
}

// Entries of target by name; a name may stand for several that different ranks hold.
template <typename Entry>
std::unordered_map<std::string_view, std::vector<const Entry*>> by_name(
    const std::vector<Entry>& entries) {
  std::unordered_map<std::string_view, std::vector<const Entry*>> found;
  for (const Entry& entry : entries) found[entry.name].push_back(&entry);
  return found;
}

Status not_laid_out(std::string_view name) {
  return invalid_argument(
             fmt::format("the description to lay out on neither lists tensor '{}' nor has a rule "
                         "that matches it; add {{\"match\": \"*\", ...}} to its 'rules'",
                         escape_text(name)))
      .with_detail("tensor", name);
}

const JobRule* rule_of(const JobDescription& target, std::string_view name) {
  for (const JobRule& rule : target.rules) {
    if (glob_matches(rule.glob, name)) return &rule;
  }
  return nullptr;
}

// Placements were read without knowing the tensor.
Status check_rule_fits(const JobDescription& target, const JobRule& rule, const JobTensor& tensor) {
  const Status fits = target.layouts[rule.layout].layout->pieces(tensor.shape, 0).status();
  if (fits.ok()) return fits;
  return Status(fits)
      .with_detail("tensor", tensor.name)
      .annotated(fmt::format("lay out tensor '{}' of {} dimensions by the rule '{}'",
                             escape_text(tensor.name), tensor.shape.size(),
                             escape_text(rule.glob)));
}

// A target lists nothing that the source lacks.
template <typename Entry>
Status check_listed(const std::vector<Entry>& source, const std::vector<Entry>& target,
                    std::string_view noun) {
  std::unordered_set<std::string_view> known;
  std::vector<std::string_view> names;
  for (const Entry& entry : source) {
    if (known.insert(entry.name).second) names.push_back(entry.name);
  }
  for (const Entry& entry : target) {
    if (known.contains(entry.name)) continue;
    const std::string nearest = escape_text(
        fmt::format("{}", fmt::join(nearest_names(entry.name, names, kNearestNames), ", ")));
    return not_found(fmt::format("{} '{}' is wanted and not stored; nearest names: {}", noun,
                                 escape_text(entry.name), nearest))
        .with_detail("tensor", entry.name)
        .with_detail("hint", nearest);
  }
  return {};
}

Status check_equal(const JobTensor& stored, const JobTensor& wanted) {
  const auto differs = [&](std::string_view property, std::string stored_value,
                           std::string wanted_value) {
    return invalid_argument(fmt::format("tensor '{}' is stored with {} {} and wanted with {} {}",
                                        escape_text(stored.name), property, stored_value, property,
                                        wanted_value))
        .with_detail("tensor", stored.name)
        .with_detail("parameter", property)
        .with_detail("expected", wanted_value)
        .with_detail("found", stored_value);
  };
  if (stored.dtype != wanted.dtype) {
    return differs("dtype", std::string(dtype_name(stored.dtype)),
                   std::string(dtype_name(wanted.dtype)));
  }
  if (stored.shape == wanted.shape) return {};
  return differs("shape", fmt::format("[{}]", fmt::join(stored.shape, ", ")),
                 fmt::format("[{}]", fmt::join(wanted.shape, ", ")));
}

// Ranks of a rank_local entry that the made job still has.
std::vector<int32_t> ranks_below(const JobDescription& source, uint32_t layout,
                                 int32_t rank_count) {
  std::vector<int32_t> ranks = layout_ranks(*source.layouts[layout].layout);
  std::erase_if(ranks, [&](int32_t rank) { return rank >= rank_count; });
  return ranks;
}

Status lay_out_tensors(const JobDescription& source, const JobDescription& target,
                       WholeLayouts* layouts, JobDescription* made) {
  const auto listed = by_name(target.tensors);
  std::unordered_set<std::string_view> done;
  for (const JobTensor& tensor : source.tensors) {
    const auto found = listed.find(tensor.name);
    if (found != listed.end()) {
      if (!done.insert(tensor.name).second) continue;
      for (const JobTensor* each : found->second) {
        if (each->kind != EntryKind::kRankLocal) SHW_RETURN_IF_ERROR(check_equal(tensor, *each));
        made->tensors.push_back(*each);
      }
      continue;
    }
    JobTensor placed = tensor;
    placed.boxes.clear();
    if (tensor.kind == EntryKind::kRankLocal) {
      std::vector<int32_t> ranks = ranks_below(source, tensor.layout, made->rank_count);
      if (ranks.empty()) continue;
      SHW_ASSIGN_OR_RETURN(placed.layout, layouts->of(std::move(ranks)));
    } else {
      if (!done.insert(tensor.name).second) continue;
      const JobRule* rule = rule_of(target, tensor.name);
      if (rule == nullptr) return not_laid_out(tensor.name);
      SHW_RETURN_IF_ERROR(check_rule_fits(target, *rule, tensor));
      placed.layout = rule->layout;
      placed.kind = rule->kind;
    }
    made->tensors.push_back(std::move(placed));
  }
  return {};
}

Status lay_out_objects(const JobDescription& source, const JobDescription& target,
                       WholeLayouts* layouts, JobDescription* made) {
  const auto listed = by_name(target.objects);
  std::unordered_set<std::string_view> done;
  for (const JobObject& object : source.objects) {
    const auto found = listed.find(object.name);
    if (found != listed.end()) {
      if (!done.insert(object.name).second) continue;
      for (const JobObject* each : found->second) made->objects.push_back(*each);
      continue;
    }
    JobObject placed = object;
    if (object.kind == EntryKind::kRankLocal) {
      std::vector<int32_t> ranks = ranks_below(source, object.layout, made->rank_count);
      if (ranks.empty()) continue;
      SHW_ASSIGN_OR_RETURN(placed.layout, layouts->of(std::move(ranks)));
    } else {
      if (!done.insert(object.name).second) continue;
      SHW_ASSIGN_OR_RETURN(placed.layout, layouts->of_all());
    }
    made->objects.push_back(std::move(placed));
  }
  return {};
}

}  // namespace

std::vector<int32_t> layout_ranks(const Layout& layout) {
  std::vector<int32_t> ranks = layout.mesh().ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<size_t>(element_count_of(layout.mesh().shape)));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  std::ranges::sort(ranks);
  return ranks;
}

Result<std::vector<Box>> held_boxes(const JobDescription& job, const JobTensor& tensor,
                                    int32_t rank) {
  std::vector<Box> boxes;
  if (tensor.layout == kHeldByBoxes) {
    for (const HeldBox& held : tensor.boxes) {
      if (std::ranges::binary_search(held.ranks, rank) && !box_is_empty(held.box))
        boxes.push_back(held.box);
    }
    return boxes;
  }
  SHW_ASSIGN_OR_RETURN(std::vector<Piece> pieces,
                       job.layouts[tensor.layout].layout->pieces(tensor.shape, rank));
  for (Piece& piece : pieces) {
    if (!box_is_empty(piece.box)) boxes.push_back(std::move(piece.box));
  }
  return boxes;
}

Result<JobDescription> job_of_checkpoint(std::shared_ptr<const StoredCheckpoint> stored,
                                         int32_t world_size) {
  const auto stranger = [world_size](const auto& record) { return record.rank >= world_size; };
  if (std::ranges::any_of(stored->catalog.tensors, stranger) ||
      std::ranges::any_of(stored->catalog.objects, stranger)) {
    return data_loss(
        fmt::format("an entry belongs to a rank that is none of {} ranks", world_size));
  }
  JobDescription job;
  job.rank_count = world_size;
  WholeLayouts layouts(&job);
  SHW_RETURN_IF_ERROR(add_stored_tensors(*stored, &layouts, &job));
  job.stored = std::move(stored);
  return job;
}

Result<JobDescription> lay_out(const JobDescription& source, const JobDescription& target) {
  JobDescription made;
  made.description = target.description;
  made.rank_count = target.rank_count;
  made.layouts = target.layouts;
  SHW_RETURN_IF_ERROR(check_listed(source.tensors, target.tensors, "tensor"));
  SHW_RETURN_IF_ERROR(check_listed(source.objects, target.objects, "object"));
  WholeLayouts layouts(&made);
  SHW_RETURN_IF_ERROR(lay_out_tensors(source, target, &layouts, &made));
  SHW_RETURN_IF_ERROR(lay_out_objects(source, target, &layouts, &made));
  return made;
}

}  // namespace shardwright::job_description
