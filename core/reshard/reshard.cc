// SPDX-License-Identifier: Apache-2.0
//
// The source is looked at through views, each over the one before, and a conversion saves the last:
//   1. states of the shapes of their parameters in the place of buckets, the state of the new job;
//   2. weights and states under the rules of the map;
//   3. buckets of the new job in the place of states.
#include "core/reshard/reshard.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/checkpoint_view.h"
#include "core/format/megatron/megatron_format.h"
#include "core/reshard/bucket_layout.h"
#include "core/reshard/bucket_sizes.h"
#include "core/reshard/contents.h"
#include "core/reshard/gathered_buffers.h"
#include "core/reshard/job_arguments.h"
#include "core/reshard/job_state.h"
#include "core/reshard/mapped_contents.h"
#include "core/reshard/parameter_states.h"
#include "core/reshard/stage_layers.h"
#include "core/reshard/target_buckets.h"

namespace shardwright::reshard {
namespace {

std::string shape_text(const JobShape& shape) {
  const std::string own =
      shape.expert_tensor == shape.tensor ? "" : fmt::format(" etp {}", shape.expert_tensor);
  return fmt::format("tp {} pp {} ep {}{}", shape.tensor, shape.pipeline, shape.expert, own);
}

class Resharding {
 public:
  Resharding(exec::Runtime& reading, exec::Runtime& writing, const format::Location& target,
             const ReshardOptions& options, const exec::CallContext& call)
      : reading_(reading), writing_(writing), target_(target), options_(options), call_(call) {}

  Result<exec::Report> run(const format::Location& place) {
    SHW_ASSIGN_OR_RETURN(source_, exec::Checkpoint::open(reading_, place));
    if (source_->opened().format_name() != format::megatron::kFormatName)
      return invalid_argument(fmt::format("'{}' is a checkpoint of format {}; only those of "
                                          "Megatron have parallel sizes to change",
                                          escape_text(format::shown_path(place)),
                                          source_->opened().format_name()))
          .with_detail("parameter", "source");
    SHW_ASSIGN_OR_RETURN(source_, with_gathered_buffers(reading_, source_, call_));
    SHW_ASSIGN_OR_RETURN(buckets_, find_buckets(*source_));
    from_ = shape_of_source(source_->catalog(), buckets_);
    SHW_RETURN_IF_ERROR(choose_target());
    // What does not fit is told before all weights are read.
    if (options_.map.mapping.empty()) {
      SHW_RETURN_IF_ERROR(TargetGrid::create(source_->catalog(), from_, to_).status());
    } else {
      SHW_RETURN_IF_ERROR(mapped_contents(*source_, options_.map.mapping).status());
    }
    SHW_ASSIGN_OR_RETURN(std::shared_ptr<const exec::Checkpoint> view, unbucketed());
    if (!options_.map.mapping.empty()) {
      SHW_ASSIGN_OR_RETURN(view, mapped(std::move(view)));
    }
    SHW_ASSIGN_OR_RETURN(const TargetGrid grid, grid_over(view->catalog()));
    BucketPlacement placement(grid);
    if (objects_ == BucketObjects::kOfNewBuckets) {
      SHW_ASSIGN_OR_RETURN(view, bucketed(std::move(view), grid, &placement));
    }
    for (const Bucket& bucket : buckets_) {
      if (objects_ == BucketObjects::kKept) placement.add(bucket, bucket.bounds, ranks_of(bucket));
    }
    SHW_ASSIGN_OR_RETURN(exec::Report report,
                         options_.dry_run ? planned(*view) : write(view, placement));
    report.operation = "reshard";
    report.notes.insert(report.notes.begin(), notes_.begin(), notes_.end());
    return report;
  }

 private:
  Status choose_target() {
    to_ = options_.target;
    const auto or_source = [](int64_t* size, int64_t source) {
      if (*size == 0) *size = source;
    };
    or_source(&to_.shape.tensor, from_.tensor);
    if (to_.shape.pipeline == 0)
      to_.shape.pipeline = static_cast<int64_t>(to_.pipeline_layers.size());
    or_source(&to_.shape.pipeline, from_.pipeline);
    or_source(&to_.shape.expert, from_.expert);
    or_source(&to_.shape.data, 1);
    choose_ranks_of_experts();
    SHW_RETURN_IF_ERROR(check_target_job(to_));
    notes_.push_back(fmt::format("{}, from {}", shape_text(to_.shape), shape_text(from_)));
    if (buckets_.empty() && to_.optimizer == OptimizerLayout::kDpReshardable)
      return failed_precondition(
                 "the optimizer is not stored in buckets, so none can be made of "
                 "them; ask for 'fully_reshardable', which any job loads")
          .with_detail("parameter", "optimizer");
    if (buckets_.empty()) return {};
    if (to_.optimizer != OptimizerLayout::kDpReshardable) {
      objects_ = BucketObjects::kIntoState;
      return {};
    }
    JobShape before = from_;
    before.data = to_.shape.data;
    const bool is_same = before == to_.shape && to_.pipeline_layers.empty();
    const bool stay = is_same && !buckets_[0].is_gathered && options_.map.mapping.empty();
    objects_ = stay ? BucketObjects::kKept : BucketObjects::kOfNewBuckets;
    rules_.for_bandwidth = are_padded_for_bandwidth();
    if (!stay) return read_rules();
    for (Bucket& bucket : buckets_)
      bucket.padded = padded_bucket(bucket.elements, ranks_of(bucket), rules_.for_bandwidth);
    return {};
  }

  // Where nothing is said: as megatron-core has it, unless the source has it in another way.
  void choose_ranks_of_experts() {
    JobShape& shape = to_.shape;
    if (!has_experts()) shape.expert_tensor = shape.tensor;
    if (shape.expert_tensor != 0) return;
    const bool stays = shape.tensor == from_.tensor && shape.expert == from_.expert;
    const bool follows = shape.expert == 1 || from_.expert_tensor == from_.tensor;
    shape.expert_tensor = stays || !follows ? from_.expert_tensor : shape.tensor;
  }

  // Data-parallel ranks of the target that share a bucket which stays.
  int64_t ranks_of(const Bucket& bucket) const {
    const bool has_experts_only = bucket.prefix == kOfExperts;
    return std::max<int64_t>(1, has_experts_only ? to_.shape.expert_data() : to_.shape.data);
  }

  bool are_padded_for_bandwidth() const {
    return std::ranges::all_of(
        buckets_, [](const Bucket& bucket) { return is_padded_for_bandwidth(bucket.padded); });
  }

  // What decides over new buckets, before anything large is read.
  Status read_rules() {
    SHW_ASSIGN_OR_RETURN(const JobArguments arguments, read_job_arguments(*source_));
    SHW_ASSIGN_OR_RETURN(rules_.bucket_size,
                         bucket_size_of(options_.map, arguments, to_.shape.data));
    grouped_ = has_grouped_experts(options_.map, arguments);
    return {};
  }

  // The source with states of the shapes of their parameters, unless its buckets stay.
  Result<std::shared_ptr<const exec::Checkpoint>> unbucketed() {
    exec::ViewContents contents;
    std::set<size_t> replaced;
    if (objects_ != BucketObjects::kKept) {
      for (const Bucket& bucket : buckets_) {
        for (const auto& [state, tensor] : bucket.states) replaced.insert(tensor);
      }
    }
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      if (!replaced.contains(i)) contents.tensors.push_back(exec::tensor_as_stored(catalog, i));
    }
    if (!replaced.empty()) {
      parameters_ = find_local_parameters(catalog);
      StoredContents stored(*source_, parameters_, call_);
      const AssignInput input{catalog, buckets_, parameters_, options_.map.places};
      SHW_ASSIGN_OR_RETURN(assigned_, assign_buckets(input, &stored));
      SHW_ASSIGN_OR_RETURN(ParameterStates states,
                           parameter_states({*source_, buckets_, parameters_, assigned_}, &stored));
      std::ranges::move(states.tensors, std::back_inserter(contents.tensors));
      notes_.insert(notes_.end(), states.notes.begin(), states.notes.end());
    }
    SHW_ASSIGN_OR_RETURN(const int64_t vocabulary, mapped_vocabulary());
    const JobStateChange change{from_, to_, has_experts(), objects_, vocabulary};
    SHW_ASSIGN_OR_RETURN(JobState common, change_job_state(*source_, change));
    contents.objects = std::move(common.objects);
    if (objects_ == BucketObjects::kKept)
      std::ranges::move(bucket_size_objects(buckets_), std::back_inserter(contents.objects));
    notes_.insert(notes_.end(), common.notes.begin(), common.notes.end());
    contents.identity = fmt::format("{} dp {} {}\n{}", shape_text(to_.shape), to_.shape.data,
                                    static_cast<int32_t>(objects_), options_.map.text);
    return exec::make_view(reading_, source_, std::move(contents));
  }

  // Stages have the layers that they had where nothing else is said and there are as many.
  Result<TargetGrid> grid_over(const plan::Catalog& catalog) {
    auto grid = TargetGrid::create(catalog, from_, to_);
    if (!grid.ok() || !to_.pipeline_layers.empty() || assigned_.empty() ||
        to_.shape.pipeline != from_.pipeline)
      return grid;
    const AssignInput known{source_->catalog(), buckets_, parameters_, options_.map.places};
    std::vector<int64_t> layers = stage_layers_of(known, assigned_, from_);
    if (std::accumulate(layers.begin(), layers.end(), int64_t{0}) != grid->layers()) return grid;
    to_.pipeline_layers = std::move(layers);
    return TargetGrid::create(catalog, from_, to_);
  }

  // Elements of the vocabulary where the mapping changes them, else 0.
  Result<int64_t> mapped_vocabulary() const {
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      const std::string_view name = catalog.tensor_name(i);
      const std::span<const int64_t> shape = catalog.shape(i);
      if (!is_of_model(name) || !name.ends_with("word_embeddings.weight") || shape.empty())
        continue;
      SHW_ASSIGN_OR_RETURN(const std::vector<MappedBox> boxes,
                           options_.map.mapping.apply(
                               {name, catalog.tensors[i].dtype, shape, {}, whole_box(shape)}));
      const bool is_one = !boxes.empty() && !boxes[0].global_shape.empty();
      return is_one && boxes[0].global_shape[0] != shape[0] ? boxes[0].global_shape[0] : 0;
    }
    return 0;
  }

  bool has_experts() const {
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      const std::string_view name = catalog.tensor_name(i);
      if (is_of_model(name) && is_of_experts(name)) return true;
    }
    return false;
  }

  Result<std::shared_ptr<const exec::Checkpoint>> mapped(
      std::shared_ptr<const exec::Checkpoint> view) {
    SHW_ASSIGN_OR_RETURN(exec::ViewContents contents, mapped_contents(*view, options_.map.mapping));
    contents.identity = "mapped";
    auto made = exec::make_view(reading_, std::move(view), std::move(contents));
    if (made.ok()) return made;
    return Status(made.status()).annotated("the rules of the map do not make whole tensors");
  }

  // Buckets in the place of states.
  Result<std::shared_ptr<const exec::Checkpoint>> bucketed(
      std::shared_ptr<const exec::Checkpoint> view, const TargetGrid& grid,
      BucketPlacement* placement) {
    const AssignInput known{source_->catalog(), buckets_, parameters_, options_.map.places};
    const DeclaredLists declared({known, assigned_, from_, grouped_});
    SHW_ASSIGN_OR_RETURN(TargetBuckets made, make_target_buckets({*source_, *view, declared, grid,
                                                                  from_, to_.shape, rules_},
                                                                 placement));
    std::set<std::string, std::less<>> replaced;
    for (const DeclaredParameter& parameter : declared.parameters()) {
      for (const size_t tensor : parameter.tensors) {
        for (const std::string& state : parameter.states)
          replaced.insert(state_name(state, source_->catalog().tensor_name(tensor)));
      }
    }
    exec::ViewContents contents;
    const plan::Catalog& catalog = view->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      if (!replaced.contains(catalog.tensor_name(i)))
        contents.tensors.push_back(exec::tensor_as_stored(catalog, i));
    }
    std::ranges::move(made.tensors, std::back_inserter(contents.tensors));
    for (size_t i = 0; i < catalog.objects.size(); ++i)
      contents.objects.push_back(exec::as_stored(catalog, i));
    std::ranges::move(bucket_size_objects(made.buckets), std::back_inserter(contents.objects));
    contents.identity = fmt::format("bucket size {} {}", rules_.bucket_size, rules_.for_bandwidth);
    notes_.push_back(fmt::format("{} buckets were made for the new shape", made.buckets.size()));
    return exec::make_view(reading_, std::move(view), std::move(contents));
  }

  Result<exec::Report> write(const std::shared_ptr<const exec::Checkpoint>& view,
                             const exec::FilePlacement& placement) {
    exec::ConvertOptions convert = options_.convert;
    convert.format = format::megatron::kFormatName;
    return exec::convert(writing_, view, &placement, target_, convert, call_);
  }

  Result<exec::Report> planned(const exec::Checkpoint& view) const {
    exec::Report report;
    report.format = format::megatron::kFormatName;
    report.path = format::shown_path(target_);
    report.tensors = view.catalog().tensors.size();
    report.objects = view.catalog().objects.size();
    report.bytes_total = view.catalog().payload_bytes();
    report.notes.emplace_back("nothing was written: a dry run");
    return report;
  }

  exec::Runtime& reading_;
  exec::Runtime& writing_;
  const format::Location& target_;
  const ReshardOptions& options_;
  const exec::CallContext& call_;
  std::shared_ptr<const exec::Checkpoint> source_;  // co-owned with the view
  std::vector<Bucket> buckets_;
  std::vector<LocalParameter> parameters_;
  std::vector<Assigned> assigned_;
  JobShape from_;
  TargetJob to_;
  BucketObjects objects_ = BucketObjects::kNone;
  BucketRules rules_;
  std::optional<bool> grouped_;  // experts
  std::vector<std::string> notes_;
};

}  // namespace

Result<exec::Report> reshard(exec::Runtime& reading, exec::Runtime& writing,
                             const format::Location& source, const format::Location& target,
                             const ReshardOptions& options, const exec::CallContext& call) {
  const int64_t begin = writing.clock().monotonic_ns();
  Result<exec::Report> report = Resharding(reading, writing, target, options, call).run(source);
  if (report.ok()) report->elapsed_ns = writing.clock().monotonic_ns() - begin;
  return report;
}

}  // namespace shardwright::reshard
