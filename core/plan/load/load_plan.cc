// SPDX-License-Identifier: Apache-2.0
//
// make_load_plan: entry by entry, then what is stored and not wanted, then reads in the order of
// stored chunks.
#include "core/plan/load/load_plan.h"

#include <algorithm>
#include <tuple>

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
  return invalid_argument(
             fmt::format("tensor '{}' is stored with shape {} and wanted with shape {}",
                         escape_text(wanted.name), shape_text(stored),
                         shape_text(wanted.global_shape)))
      .with_detail("tensor", wanted.name)
      .with_detail("parameter", "shape")
      .with_detail("expected", shape_text(wanted.global_shape))
      .with_detail("found", shape_text(stored));
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
    const auto key = [](const ReadItem& read) {
      return std::tie(read.chunk, read.entry, read.piece);
    };
    const auto before = [&](const ReadItem& a, const ReadItem& b) { return key(a) < key(b); };
    if (!std::is_sorted(plan_.reads.begin(), plan_.reads.end(), before)) {
      std::sort(plan_.reads.begin(), plan_.reads.end(), before);
    }
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
    if (!std::ranges::equal(catalog.shape(tensor), wanted.global_shape)) {
      return shape_differs(wanted, catalog.shape(tensor));
    }
    const DType dtype = catalog.tensors[tensor].dtype;
    if (dtype != wanted.local.dtype) {
      if (rules.cast == CastRule::kError) return dtype_differs(wanted, dtype);
      plan_.casts.push_back({entry, dtype, wanted.local.dtype});
    }
    SHW_RETURN_IF_ERROR(internal::check_local_runs_apart(wanted));
    plan_.loaded.emplace_back(wanted.name);
    return internal::match_pieces(stored_, tensor, wanted, entry, &plan_.reads);
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

  const State& state_;
  const CatalogIndex& stored_;
  const LoadRules& rules_;
  LoadPlan plan_;
};

}  // namespace

Result<LoadPlan> make_load_plan(const State& state, const CatalogIndex& stored,
                                const LoadRules& rules, int32_t rank) {
  if (rank < 0) return invalid_argument(fmt::format("rank {} is negative", rank));
  if (rules.preset != Preset::kStandard)
    return unimplemented("only preset 'standard' can plan a load");
  return LoadPlanning(state, stored, rules).run(rank);
}

Result<LoadPlan> make_load_plan(const State& state, const Catalog& stored, const LoadRules& rules,
                                int32_t rank) {
  return make_load_plan(state, CatalogIndex(stored), rules, rank);
}

}  // namespace shardwright::plan
