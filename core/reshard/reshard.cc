// SPDX-License-Identifier: Apache-2.0
//
// The source is looked at through a view that has the entries of the target; a conversion saves it.
#include "core/reshard/reshard.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/checkpoint_view.h"
#include "core/format/megatron/megatron_format.h"
#include "core/reshard/contents.h"
#include "core/reshard/gathered_buffers.h"
#include "core/reshard/job_state.h"
#include "core/reshard/target_grid.h"

namespace shardwright::reshard {
namespace {

std::string shape_text(const JobShape& shape) {
  return fmt::format("tp {} pp {} ep {}", shape.tensor, shape.pipeline, shape.expert);
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
    SHW_ASSIGN_OR_RETURN(const TargetGrid grid,
                         TargetGrid::create(source_->catalog(), from_, to_.shape));
    SHW_ASSIGN_OR_RETURN(exec::ViewContents contents, make_contents());
    SHW_ASSIGN_OR_RETURN(const auto view, exec::make_view(reading_, source_, std::move(contents)));
    SHW_ASSIGN_OR_RETURN(exec::Report report,
                         options_.dry_run ? planned(*view) : write(view, grid));
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
    or_source(&to_.shape.pipeline, from_.pipeline);
    or_source(&to_.shape.expert, from_.expert);
    or_source(&to_.shape.data, 1);
    SHW_RETURN_IF_ERROR(check_target_job(to_));
    notes_.push_back(fmt::format("{}, from {}", shape_text(to_.shape), shape_text(from_)));
    if (to_.optimizer != OptimizerLayout::kDpReshardable) return {};
    const bool is_same = from_.tensor == to_.shape.tensor && from_.pipeline == to_.shape.pipeline &&
                         from_.expert == to_.shape.expert;
    const bool has_none = buckets_.empty() || buckets_[0].is_gathered;
    if (is_same && !has_none) return {};
    return failed_precondition(has_none
                                   ? "the optimizer is not stored in buckets, so none can be kept"
                                   : fmt::format("buckets are of jobs with {}, not {}; ask for "
                                                 "'fully_reshardable', which any job loads",
                                                 shape_text(from_), shape_text(to_.shape)))
        .with_detail("parameter", "optimizer");
  }

  Result<exec::ViewContents> make_contents() {
    exec::ViewContents contents;
    const bool keeps_buckets = to_.optimizer == OptimizerLayout::kDpReshardable;
    std::set<size_t> replaced;
    if (!keeps_buckets) {
      for (const Bucket& bucket : buckets_) {
        for (const auto& [state, tensor] : bucket.states) replaced.insert(tensor);
      }
    }
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      if (!replaced.contains(i)) contents.tensors.push_back(as_it_is(i));
    }
    if (!replaced.empty()) SHW_RETURN_IF_ERROR(add_states(&contents.tensors));
    JobStateChange change{from_, to_, has_experts(), !buckets_.empty()};
    SHW_ASSIGN_OR_RETURN(JobState common, change_job_state(*source_, change));
    contents.objects = std::move(common.objects);
    notes_.insert(notes_.end(), common.notes.begin(), common.notes.end());
    contents.identity =
        fmt::format("{} dp {} {}", shape_text(to_.shape), to_.shape.data, keeps_buckets);
    for (const SaidPlace& said : options_.said) {
      contents.identity += fmt::format("\n{} {}", said.bucket, said.begin);
      for (const auto& [tensor, box] : said.parts)
        contents.identity += fmt::format(" {} {}", tensor, box_text(box));
    }
    return contents;
  }

  bool has_experts() const {
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      const std::string_view name = catalog.tensor_name(i);
      if (is_of_model(name) && name.find(".experts.") != std::string_view::npos) return true;
    }
    return false;
  }

  exec::ViewTensor as_it_is(size_t number) const {
    exec::ViewTensor tensor = exec::named_as_stored(source_->catalog(), number);
    tensor.pieces.push_back({whole_box(tensor.shape), number, Dims(tensor.shape.size(), 0)});
    return tensor;
  }

  // States of the shapes of their parameters.
  Status add_states(std::vector<exec::ViewTensor>* tensors) {
    const plan::Catalog& catalog = source_->catalog();
    parameters_ = find_local_parameters(catalog);
    StoredContents contents(*source_, parameters_, call_);
    const AssignInput input{catalog, buckets_, parameters_, options_.said};
    SHW_ASSIGN_OR_RETURN(const std::vector<Assigned> assigned, assign_buckets(input, &contents));
    using PieceKey = std::pair<std::string, size_t>;  // state and tensor
    std::map<PieceKey, std::map<Box, exec::ViewPiece>> pieces;
    std::set<size_t> differing;
    for (const Assigned& each : assigned) {
      const LocalParameter& parameter = parameters_[each.parameter];
      for (const auto& [state, bucket_tensor] : buckets_[each.bucket].states) {
        int64_t begin = each.begin;
        for (const LocalPart& part : parameter.parts) {
          const exec::ViewPiece piece{part.box, bucket_tensor, {begin}};
          const auto [it, is_new] = pieces[{state, part.tensor}].emplace(part.box, piece);
          if (!is_new) {
            SHW_ASSIGN_OR_RETURN(const bool equal, are_equal(it->second, piece, &contents));
            if (!equal) differing.insert(part.tensor);
          }
          begin += box_element_count(part.box);
        }
      }
    }
    for (const size_t tensor : differing)
      notes_.push_back(
          fmt::format("replicas of the states of '{}' differ; those of the first "
                      "group were taken",
                      escape_text(catalog.tensor_name(tensor))));
    for (auto& [key, boxes] : pieces) {
      exec::ViewTensor tensor;
      tensor.name =
          fmt::format("optimizer.state.{}.{}", key.first, catalog.tensor_name(key.second));
      tensor.shape = Dims(catalog.shape(key.second));
      for (auto& [box, piece] : boxes) tensor.pieces.push_back(std::move(piece));
      SHW_RETURN_IF_ERROR(check_whole(tensor, key.second));
      tensors->push_back(std::move(tensor));
    }
    note_without_states(pieces);
    return {};
  }

  Result<bool> are_equal(const exec::ViewPiece& a, const exec::ViewPiece& b,
                         Contents* contents) const {
    const int64_t elements = box_element_count(a.box);
    const DType dtype = source_->catalog().tensors[a.tensor].dtype;
    SHW_ASSIGN_OR_RETURN(const ContentDigest first,
                         contents->of_run({a.tensor, a.offsets[0], elements}, dtype));
    SHW_ASSIGN_OR_RETURN(const ContentDigest second,
                         contents->of_run({b.tensor, b.offsets[0], elements}, dtype));
    return first == second;
  }

  Status check_whole(const exec::ViewTensor& tensor, size_t parameter) const {
    int64_t elements = 0;
    for (const exec::ViewPiece& piece : tensor.pieces) elements += box_element_count(piece.box);
    const int64_t wanted = box_element_count(whole_box(tensor.shape));
    if (elements == wanted) return {};
    return failed_precondition(
               fmt::format("buckets hold {} of the {} elements of '{}': those of some ranks are "
                           "missing",
                           elements, wanted,
                           escape_text(source_->catalog().tensor_name(parameter))))
        .with_detail("tensor", source_->catalog().tensor_name(parameter));
  }

  template <typename Pieces>
  void note_without_states(const Pieces& pieces) {
    std::set<size_t> with;
    for (const auto& [key, boxes] : pieces) with.insert(key.second);
    std::vector<std::string_view> without;
    const plan::Catalog& catalog = source_->catalog();
    for (size_t i = 0; i < catalog.tensors.size(); ++i) {
      if (is_of_model(catalog.tensor_name(i)) && !with.contains(i))
        without.push_back(catalog.tensor_name(i));
    }
    if (without.empty()) return;
    notes_.push_back(
        fmt::format("{} tensors of the model are in no bucket (frozen, or no "
                    "parameters), '{}' first",
                    without.size(), escape_text(without[0])));
  }

  Result<exec::Report> write(const std::shared_ptr<const exec::Checkpoint>& view,
                             const TargetGrid& grid) {
    exec::ConvertOptions convert = options_.convert;
    convert.format = format::megatron::kFormatName;
    return exec::convert(writing_, view, &grid, target_, convert, call_);
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
  JobShape from_;
  TargetJob to_;
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
