// SPDX-License-Identifier: Apache-2.0
//
// make_load_plan: what each entry takes, then what is stored and not wanted, then the reads, in the
// order of the stored tensors, so that they come out in the order of stored chunks.
#include "core/plan/load/make_load_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/load/match_internal.h"

namespace shardwright::plan {
namespace {

constexpr size_t kShownUnexpected = 5;  // names in the message of an unexpected = error

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Status shape_differs(const TensorRef& wanted, std::span<const int64_t> stored) {
  const std::string_view hint =
      stored.size() == wanted.global_shape.size()
          ? "; pass shape = crop_and_pad to take the part that both have and zeros elsewhere"
          : "";
  return invalid_argument(
             fmt::format("tensor '{}' is stored with shape {} and wanted with shape {}{}",
                         escape_text(wanted.name), shape_text(stored),
                         shape_text(wanted.global_shape), hint))
      .with_detail("tensor", wanted.name)
      .with_detail("parameter", "shape")
      .with_detail("expected", shape_text(wanted.global_shape))
      .with_detail("found", shape_text(stored));
}

Status subbyte_shape_differs(const TensorRef& wanted, DType stored) {
  return unimplemented(fmt::format("tensor '{}' of dtype {} is stored with another shape; elements "
                                   "smaller than a byte cannot be cropped or padded",
                                   escape_text(wanted.name), dtype_name(stored)))
      .with_detail("tensor", wanted.name)
      .with_detail("parameter", "shape");
}

Status dtype_differs(const TensorRef& wanted, DType stored) {
  return invalid_argument(
             fmt::format(
                 "tensor '{}' is stored as {} and wanted as {}; pass cast = allow to convert it",
                 escape_text(wanted.name), dtype_name(stored), dtype_name(wanted.local.dtype)))
      .with_detail("tensor", wanted.name)
      .with_detail("parameter", "dtype")
      .with_detail("expected", dtype_name(wanted.local.dtype))
      .with_detail("found", dtype_name(stored));
}

class LoadPlanning {
 public:
  LoadPlanning(const State& state, const CatalogIndex& stored, const LoadRules& rules)
      : state_(state), stored_(stored), rules_(rules) {}

  Result<LoadPlan> run(int32_t rank) {
    plan_.rank = rank;
    for (uint32_t i = 0; i < state_.tensors().size(); ++i) SHW_RETURN_IF_ERROR(add_tensor(i));
    for (uint32_t i = 0; i < state_.objects().size(); ++i) SHW_RETURN_IF_ERROR(add_object(i));
    plan_.unexpected = internal::unexpected_names(state_, stored_.catalog(), rank);
    SHW_RETURN_IF_ERROR(check_unexpected());
    SHW_RETURN_IF_ERROR(add_reads());
    return std::move(plan_);
  }

 private:
  Status add_tensor(uint32_t entry) {
    const TensorRef wanted = state_.tensors()[entry];
    const internal::NameRules rules = internal::rules_of(rules_, wanted.name);
    const int64_t found = internal::stored_tensor(stored_, wanted, plan_.rank);
    if (found < 0) return add_missing(rules, "tensor", wanted.name);
    const auto tensor = static_cast<size_t>(found);
    const Catalog& catalog = stored_.catalog();
    const DType dtype = catalog.tensors[tensor].dtype;
    const std::span<const int64_t> shape = catalog.shape(tensor);
    if (!std::ranges::equal(shape, wanted.global_shape)) {
      if (rules.shape == ShapeRule::kError || shape.size() != wanted.global_shape.size())
        return shape_differs(wanted, shape);
      if (dtype_is_subbyte(dtype)) return subbyte_shape_differs(wanted, dtype);
      plan_.shapes.push_back({entry, tensor});
    }
    if (dtype != wanted.local.dtype) {
      if (rules.cast == CastRule::kError) return dtype_differs(wanted, dtype);
      plan_.casts.push_back({entry, dtype, wanted.local.dtype});
    }
    SHW_RETURN_IF_ERROR(internal::check_local_runs_apart(wanted));
    plan_.loaded.emplace_back(wanted.name);
    taken_.push_back({tensor, entry});
    return {};
  }

  // A stored tensor has one name, so it is taken by one entry.
  Status add_reads() {
    const auto before = [](const Taken& a, const Taken& b) { return a.tensor < b.tensor; };
    if (!std::ranges::is_sorted(taken_, before)) std::ranges::sort(taken_, before);
    uint64_t reads = 0;
    uint64_t numbers = 0;
    for (const Taken& each : taken_) {
      const TensorRef wanted = state_.tensors()[each.entry];
      const uint64_t more = internal::expected_reads(stored_, each.tensor, wanted);
      reads += more;
      numbers += 2 * more * wanted.global_shape.size();
    }
    plan_.reads.reserve(reads, numbers);
    for (const Taken& each : taken_) {
      SHW_RETURN_IF_ERROR(internal::match_pieces(stored_, each.tensor, state_.tensors()[each.entry],
                                                 each.entry, &plan_.reads));
    }
    return {};
  }

  Status add_object(uint32_t entry) {
    const ObjectEntry& wanted = state_.objects()[entry];
    const int64_t found = internal::stored_object(stored_, wanted, plan_.rank);
    if (found < 0)
      return add_missing(internal::rules_of(rules_, wanted.name), "object", wanted.name);
    plan_.objects.push_back({entry, static_cast<uint64_t>(found)});
    plan_.loaded.push_back(wanted.name);
    return {};
  }

  Status add_missing(const internal::NameRules& rules, std::string_view noun,
                     std::string_view name) {
    if (rules.missing == MissingRule::kError)
      return internal::not_stored(stored_, noun, name, plan_.rank);
    plan_.missing.emplace_back(name);
    return {};
  }

  Status check_unexpected() const {
    std::vector<std::string> refused;
    size_t count = 0;
    for (const std::string& name : plan_.unexpected) {
      if (internal::rules_of(rules_, name).unexpected != UnexpectedRule::kError) continue;
      if (++count <= kShownUnexpected) refused.push_back(fmt::format("'{}'", escape_text(name)));
    }
    if (count == 0) return {};
    return invalid_argument(
               fmt::format("{} stored name{} not wanted by rank {} (unexpected = error): {}{}",
                           count, count == 1 ? " is" : "s are", plan_.rank,
                           fmt::join(refused, ", "), count > kShownUnexpected ? ", ..." : ""))
        .with_detail("parameter", "unexpected")
        .with_detail("rank", std::to_string(plan_.rank));
  }

  // A stored tensor and the entry of the state that it fills.
  struct Taken {
    size_t tensor = 0;
    uint32_t entry = 0;
  };

  const State& state_;
  const CatalogIndex& stored_;
  const LoadRules& rules_;
  LoadPlan plan_;
  std::vector<Taken> taken_;
};

}  // namespace

Result<LoadPlan> make_load_plan(const State& state, const CatalogIndex& stored,
                                const LoadRules& rules, int32_t rank) {
  if (rank < 0) return invalid_argument(fmt::format("rank {} is negative", rank));
  return LoadPlanning(state, stored, rules).run(rank);
}

Result<LoadPlan> make_load_plan(const State& state, const Catalog& stored, const LoadRules& rules,
                                int32_t rank) {
  return make_load_plan(state, CatalogIndex(stored), rules, rank);
}

}  // namespace shardwright::plan
