// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/target_buckets.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/reshard/bucket_layout.h"
#include "core/reshard/job_state.h"
#include "core/reshard/local_parameters.h"
#include "core/reshard/parameter_states.h"

namespace shardwright::reshard {
namespace {

constexpr std::string_view kEmbedding = "word_embeddings.weight";
constexpr std::string_view kOutput = "output_layer.weight";
// Of which each rank has all, where the source has one tensor-parallel rank and does not show it.
constexpr std::array<std::string_view, 6> kReplicated = {"norm",
                                                         "router.",
                                                         "position_embeddings.",
                                                         "tokentype_embeddings.",
                                                         "linear_proj.bias",
                                                         "linear_fc2.bias"};

// A part of a parameter that a rank holds: a box of a tensor of the target.
struct HeldPart {
  std::string_view tensor;
  Box box;
};

// The ranks that share buckets.
struct RankGroup {
  std::string prefix;
  uint32_t number = 0;
  int64_t stage = 0;
  int64_t place = 0;    // tensor-parallel, among those of experts where it is of them
  int64_t expert = -1;  // expert-parallel rank; -1: of what all of them hold
  int64_t data_parallel = 1;
};

class BucketMaker {
 public:
  BucketMaker(const TargetBucketsInput& input, BucketPlacement* placement)
      : input_(input), placement_(*placement), to_(input.to) {}

  Result<TargetBuckets> run() {
    SHW_RETURN_IF_ERROR(find_holders());
    SHW_RETURN_IF_ERROR(check_shape());
    for (int64_t stage = 0; stage < to_.pipeline; ++stage) {
      for (int64_t place = 0; place < to_.tensor; ++place)
        SHW_RETURN_IF_ERROR(add_group(dense_group(stage, place)));
    }
    for (int64_t stage = 0; is_chained_ && stage < to_.pipeline; ++stage) {
      for (int64_t rank = 0; rank < to_.expert * to_.expert_tensor; ++rank)
        SHW_RETURN_IF_ERROR(add_group(expert_group(stage, rank)));
    }
    return std::move(made_);
  }

 private:
  using Parameters = std::vector<DeclaredParameter>;
  const Parameters& parameters() const { return input_.declared.parameters(); }
  std::string_view tensor_name(size_t number) const {
    return input_.source.catalog().tensor_name(number);
  }
  std::string_view name(size_t parameter) const {
    return tensor_name(parameters()[parameter].tensors[0]);
  }
  bool is_expert(size_t parameter) const { return is_of_experts(name(parameter)); }
  Status refuse(size_t parameter, std::string_view what) const {
    return failed_precondition(fmt::format("'{}': {}; ask for 'fully_reshardable', which any job "
                                           "loads",
                                           escape_text(name(parameter)), what))
        .with_detail("tensor", name(parameter));
  }

  RankGroup dense_group(int64_t stage, int64_t place) const {
    return {std::string(is_chained_ ? kOfDense : ""),
            static_cast<uint32_t>(stage * to_.tensor + place),
            stage,
            place,
            -1,
            to_.data};
  }
  // rank: of those of a stage that hold other experts or other rows of them, rows first.
  RankGroup expert_group(int64_t stage, int64_t rank) const {
    return {std::string(kOfExperts),
            static_cast<uint32_t>(stage * to_.expert * to_.expert_tensor + rank),
            stage,
            rank % to_.expert_tensor,
            rank / to_.expert_tensor,
            to_.expert_data()};
  }

  Status find_holders();
  Status check_shape() const;
  Status check_experts() const;
  Status check_stages() const;
  Status check_blocks() const;
  Status check_sharing(size_t parameter, const std::vector<HeldBox>& held) const;
  std::vector<HeldPart> parts(size_t parameter, int64_t place) const;
  bool holds(const RankGroup& group, size_t parameter) const;
  bool is_shared_embedding(size_t parameter) const {
    return is_tied_ && to_.pipeline > 1 && name(parameter).ends_with(kEmbedding);
  }
  Status add_group(const RankGroup& group);
  Status add_buffer(const RankGroup& group, std::string_view dtypes, uint32_t number);
  Status add_bucket(const RankGroup& group, Bucket bucket, const BucketPlan& plan,
                    std::span<const size_t> order);
  Status add_state(const Bucket& bucket, std::string_view state, int64_t place,
                   std::span<const std::pair<size_t, int64_t>> places);

  const TargetBucketsInput& input_;
  BucketPlacement& placement_;
  const JobShape to_;
  std::vector<std::vector<HeldBox>> holders_;  // by parameter: of its tensors, one after the other
  std::vector<std::vector<std::string_view>> held_tensors_;  // of the boxes
  bool has_experts_ = false;
  bool is_chained_ = false;
  bool is_tied_ = false;  // the output layer has the weights of the embedding
  int64_t experts_ = 1;
  TargetBuckets made_;
};

Status BucketMaker::find_holders() {
  bool has_output = false;
  for (size_t p = 0; p < parameters().size(); ++p) {
    const DeclaredParameter& parameter = parameters()[p];
    std::vector<HeldBox>& holders = holders_.emplace_back();
    std::vector<std::string_view>& tensors = held_tensors_.emplace_back();
    for (const size_t tensor : parameter.tensors) {
      const int64_t number = input_.states.index().find_tensor_of_any(tensor_name(tensor));
      if (number < 0)
        return refuse(p,
                      "it is not stored under this name any more, so nothing says which bucket "
                      "it comes to lie in");
      for (HeldBox& each : input_.grid.held(input_.states.catalog(), static_cast<size_t>(number))) {
        if (each.leading != parameter.leading(each.leading.size())) continue;
        holders.push_back(std::move(each));
        tensors.push_back(tensor_name(tensor));
      }
    }
    if (holders.empty()) return refuse(p, "which ranks hold it is not known");
    SHW_RETURN_IF_ERROR(check_sharing(p, holders));
    has_output = has_output || name(p).ends_with(kOutput);
    has_experts_ = has_experts_ || is_expert(p);
    if (is_expert(p) && parameter.place) experts_ = std::max(experts_, parameter.place->expert + 1);
  }
  is_tied_ = !has_output;
  is_chained_ = is_chained(to_, has_experts_);
  return {};
}

// A mistake in who shares out what is one that only Megatron would find.
Status BucketMaker::check_sharing(size_t parameter, const std::vector<HeldBox>& held) const {
  if (is_expert(parameter) && !parameters()[parameter].place)
    return refuse(parameter, "which expert it is of is not known");
  const int64_t before = is_expert(parameter) ? input_.from.expert_tensor : input_.from.tensor;
  const int64_t after = is_expert(parameter) ? to_.expert_tensor : to_.tensor;
  if (after == 1 || held[0].place != HeldBox::kAllPlaces) return {};
  const std::string_view which = name(parameter);
  if (which.ends_with(kEmbedding) || which.ends_with(kOutput))
    return refuse(parameter, fmt::format("its vocabulary is not shared out by {} ranks; a mapping "
                                         "can pad it",
                                         to_.tensor));
  const bool is_known = std::ranges::any_of(kReplicated, [&](std::string_view word) {
    return which.find(word) != std::string_view::npos;
  });
  if (before > 1 || is_known) return {};
  return refuse(parameter, "whether tensor-parallel ranks share it out is not known");
}

Status BucketMaker::check_shape() const {
  SHW_RETURN_IF_ERROR(check_experts());
  if (to_.pipeline == 1) return {};
  SHW_RETURN_IF_ERROR(check_stages());
  return check_blocks();
}

Status BucketMaker::check_experts() const {
  // megatron-core adds up their gradients as those of all else, over ranks that hold other rows.
  if (has_experts_ && !is_chained_ && to_.expert_tensor != to_.tensor)
    return invalid_argument(fmt::format("experts under etp {} and all else under tp {} with ep 1: "
                                        "megatron-core trains experts with another tensor-parallel "
                                        "size only where expert-parallel ranks share them out",
                                        to_.expert_tensor, to_.tensor))
        .with_detail("parameter", "etp")
        .with_detail("hint", "leave etp out, or ask for more than one expert-parallel rank");
  if (is_chained_ && to_.expert_data() == 0)
    return invalid_argument(fmt::format("the {} ranks of a pipeline stage (tp {}, dp {}) are not "
                                        "shared out by the {} of experts (ep {}, etp {})",
                                        to_.tensor * to_.data, to_.tensor, to_.data,
                                        to_.expert * to_.expert_tensor, to_.expert,
                                        to_.expert_tensor))
        .with_detail("parameter", "dp")
        .with_detail("hint", "ask for a dp with which tp x dp is a multiple of ep x etp");
  return {};
}

Status BucketMaker::check_stages() const {
  if (!input_.grid.stage_layers().empty() || input_.grid.layers() % to_.pipeline == 0) return {};
  return failed_precondition(fmt::format("{} layers are not shared out evenly by {} pipeline "
                                         "stages, so which stage has which is not known",
                                         input_.grid.layers(), to_.pipeline))
      .with_detail("parameter", "pp")
      .with_detail("hint",
                   "say how many each stage has (pipeline_layers), or ask for "
                   "'fully_reshardable', which any job loads");
}

Status BucketMaker::check_blocks() const {
  std::string_view block;  // of layers
  for (size_t p = 0; p < parameters().size(); ++p) {
    if (!parameters()[p].layer) {
      if (!parameters()[p].place) return refuse(p, "which pipeline stage has it is not known");
      continue;
    }
    const std::string_view front = name(p).substr(0, name(p).find("layers."));
    if (block.empty()) block = front;
    if (front != block)
      return refuse(p, fmt::format("how layers of '{}' and of '{}' are shared out by pipeline "
                                   "stages is not known",
                                   escape_text(block), escape_text(front)));
  }
  return {};
}

std::vector<HeldPart> BucketMaker::parts(size_t parameter, int64_t place) const {
  std::vector<HeldPart> parts;
  for (size_t i = 0; i < holders_[parameter].size(); ++i) {
    const HeldBox& held = holders_[parameter][i];
    if (held.place == place || held.place == HeldBox::kAllPlaces)
      parts.push_back({held_tensors_[parameter][i], held.box});
  }
  return parts;
}

bool BucketMaker::holds(const RankGroup& group, size_t parameter) const {
  const bool is_shared_out = is_expert(parameter) && is_chained_;
  if (is_shared_out != (group.expert >= 0)) return false;
  if (is_shared_embedding(parameter)) return group.stage == 0 || group.stage == to_.pipeline - 1;
  if (holders_[parameter][0].stage != group.stage) return false;
  if (!is_shared_out) return true;
  return parameters()[parameter].place->expert * to_.expert / experts_ == group.expert;
}

Status BucketMaker::add_group(const RankGroup& group) {
  uint32_t buffers = 0;
  const size_t of_others = made_.buckets.size();
  for (const std::string& dtypes : input_.declared.dtypes()) {
    const size_t before = made_.buckets.size();
    SHW_RETURN_IF_ERROR(add_buffer(group, dtypes, buffers));
    if (made_.buckets.size() > before) ++buffers;
  }
  if (made_.buckets.size() > of_others) return {};
  return invalid_argument(fmt::format("stage {} of the pipeline would have no {}, which "
                                      "megatron-core does not save in buckets",
                                      group.stage, group.expert >= 0 ? "experts" : "parameters"))
      .with_detail("parameter", "pipeline_layers")
      .with_detail("hint",
                   "give each stage a layer that has some (pipeline_layers), or ask for "
                   "'fully_reshardable'");
}

Status BucketMaker::add_buffer(const RankGroup& group, std::string_view dtypes, uint32_t number) {
  std::vector<bool> wanted(parameters().size(), false);
  for (size_t p = 0; p < wanted.size(); ++p)
    wanted[p] = parameters()[p].dtypes == dtypes && holds(group, p);
  SHW_ASSIGN_OR_RETURN(std::vector<size_t> order, input_.declared.in_order(wanted));
  // The last stage declares the shared embedding as its output layer.
  if (group.stage > 0)
    std::ranges::stable_partition(order, [this](size_t p) { return !is_shared_embedding(p); });
  std::ranges::reverse(order);
  std::vector<BufferParameter> buffer;
  for (const size_t p : order) {
    BufferParameter& each = buffer.emplace_back();
    for (const HeldPart& part : parts(p, group.place)) each.elements += box_element_count(part.box);
    each.is_alone = is_shared_embedding(p);
  }
  Bucket bucket;
  bucket.prefix = group.prefix;
  bucket.group = group.number;
  bucket.buffer = number;
  bucket.dtypes = dtypes;
  const int64_t size = group.stage == 0 ? input_.rules.bucket_size : INT64_MAX;
  for (const BucketPlan& plan : plan_buckets(buffer, size)) {
    SHW_RETURN_IF_ERROR(add_bucket(group, bucket, plan, order));
    ++bucket.number;
  }
  return {};
}

Status BucketMaker::add_bucket(const RankGroup& group, Bucket bucket, const BucketPlan& plan,
                               std::span<const size_t> order) {
  bucket.elements = plan.elements;
  bucket.padded = padded_bucket(plan.elements, group.data_parallel, input_.rules.for_bandwidth);
  std::vector<std::pair<size_t, int64_t>> places;
  bucket.bounds = {0, plan.elements};
  for (size_t i = 0; i < plan.begins.size(); ++i) {
    const size_t parameter = order[plan.first + i];
    places.emplace_back(parameter, plan.begins[i]);
    int64_t end = plan.begins[i];
    for (const HeldPart& part : parts(parameter, group.place)) end += box_element_count(part.box);
    bucket.bounds.push_back(plan.begins[i]);
    bucket.bounds.push_back(end);
  }
  for (const std::string& state : parameters()[places[0].first].states)
    SHW_RETURN_IF_ERROR(add_state(bucket, state, group.place, places));
  placement_.add(bucket, bucket.bounds, group.data_parallel);
  made_.buckets.push_back(std::move(bucket));
  return {};
}

// Between parameters, and behind the last one, are zeros.
Status BucketMaker::add_state(const Bucket& bucket, std::string_view state, int64_t place,
                              std::span<const std::pair<size_t, int64_t>> places) {
  exec::ViewTensor tensor;
  tensor.name = fmt::format("{}.{}", bucket.name(), state);
  tensor.shape = {bucket.elements};
  int64_t end = 0;
  const auto add_zeros = [&](int64_t until) {
    if (end < until) tensor.pieces.push_back({{{end}, {until - end}}, exec::ViewPiece::kZeros});
    end = until;
  };
  for (const auto& [parameter, begin] : places) {
    add_zeros(begin);
    for (HeldPart& part : parts(parameter, place)) {
      const std::string stored = state_name(state, part.tensor);
      const int64_t number = input_.states.index().find_tensor_of_any(stored);
      if (number < 0) return refuse(parameter, fmt::format("it has no state '{}'", state));
      const int64_t elements = box_element_count(part.box);
      tensor.pieces.push_back({{{end}, {elements}},
                               static_cast<size_t>(number),
                               std::move(part.box.offsets),
                               std::move(part.box.sizes)});
      end += elements;
    }
  }
  add_zeros(bucket.elements);
  made_.tensors.push_back(std::move(tensor));
  return {};
}

}  // namespace

Result<TargetBuckets> make_target_buckets(const TargetBucketsInput& input,
                                          BucketPlacement* placement) {
  return BucketMaker(input, placement).run();
}

}  // namespace shardwright::reshard
