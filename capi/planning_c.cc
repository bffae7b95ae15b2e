// SPDX-License-Identifier: Apache-2.0
//
// planning.h: flat arrays and plan buffers of descriptions.
#include "shardwright/planning.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/describe_options.h"
#include "capi/entry_batch.h"
#include "core/base/limits.h"
#include "core/integrity/digest.h"
#include "core/plan/describe/entry_columns.h"
#include "core/plan/entry_arrays.h"
#include "core/plan/load/entry_match.h"
#include "core/plan/save/merge_plans.h"
#include "core/plan/wire/wire.h"

namespace shardwright::capi {
namespace {

template <typename T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::span<const std::byte> span_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<plan::Bytes> describe(const shw_describe_options& options,
                             const plan::EntryArrays& entries) {
  SHW_ASSIGN_OR_RETURN(const plan::DescribeRules rules, read_describe_rules(options));
  if (options.kind == SHW_PLAN_MERGED_SAVE) {
    if (options.rank != 0 || options.world_size != 0 || options.agreement_size != 0) {
      return bad_argument("options", "a merged plan has no rank, world size or agreement");
    }
    SHW_ASSIGN_OR_RETURN(const auto merged, plan::describe_merged(entries, rules.kinds));
    return plan::encode(merged);
  }
  if (options.kind != SHW_PLAN_LOCAL_SAVE && options.kind != 0) {
    return bad_argument("kind", fmt::format("plans of kind {} are not described", options.kind));
  }
  SHW_ASSIGN_OR_RETURN(const auto local, plan::describe_local(entries, rules));
  return plan::encode(local);
}

Result<plan::MergeRules> read_merge_options(const shw_merge_options* given) {
  shw_merge_options options;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &options));
  SHW_RETURN_IF_ERROR(option_in_range(options.owner, SHW_OWNER_ALL, "owner"));
  SHW_RETURN_IF_ERROR(option_in_range(options.preset, SHW_PRESET_MEGATRON, "preset"));
  SHW_RETURN_IF_ERROR(option_in_range(options.cover, SHW_COVER_OFF, "cover"));
  SHW_RETURN_IF_ERROR(
      option_in_range(options.verify_replicas, SHW_VERIFY_REPLICAS_OFF, "verify_replicas"));
  plan::MergeRules rules;
  rules.owner = static_cast<plan::OwnerRule>(options.owner);
  rules.preset = static_cast<plan::Preset>(options.preset);
  rules.cover = static_cast<plan::CoverRule>(options.cover);
  rules.verify_replicas = static_cast<plan::VerifyReplicas>(options.verify_replicas);
  return rules;
}

Result<std::vector<std::span<const std::byte>>> read_plan_buffers(const void* const* plans,
                                                                  const uint64_t* sizes,
                                                                  uint64_t count) {
  if (count > static_cast<uint64_t>(kMaxWorldSize)) {
    return bad_argument("plan_count",
                        fmt::format("{} plans are more than {} ranks", count, kMaxWorldSize));
  }
  std::vector<std::span<const std::byte>> buffers(count);
  for (uint64_t i = 0; i < count; ++i) {
    SHW_ASSIGN_OR_RETURN(const auto bytes, bytes_argument(plans[i], sizes[i], "plans"));
    buffers[i] = bytes;
  }
  return buffers;
}

Result<plan::EntryMatchRules> read_match_options(const shw_match_options* given) {
  shw_match_options options;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &options));
  SHW_RETURN_IF_ERROR(option_in_range(options.order, SHW_MATCH_BY_SWEEP, "order"));
  SHW_RETURN_IF_ERROR(option_in_range(options.cover, SHW_COVER_OFF, "cover"));
  SHW_RETURN_IF_ERROR(option_in_range(options.missing, SHW_MISSING_REPORT, "missing"));
  plan::EntryMatchRules rules;
  rules.cover = static_cast<plan::CoverRule>(options.cover);
  rules.missing = static_cast<plan::MissingRule>(options.missing);
  if (options.order == SHW_MATCH_BY_SWEEP) {
    rules.boxes.order = plan::MatchOrder::kSweep;
    rules.boxes.empty = plan::EmptyMatch::kStrictlyInside;
  }
  if ((options.flags & SHW_MATCH_FIRST_REPLICA) != 0) rules.boxes.copies = plan::CopyMatch::kFirst;
  if ((options.flags & SHW_MATCH_RANK) != 0) {
    if (options.rank < 0 || options.rank >= kMaxWorldSize)
      return bad_argument("rank", fmt::format("rank {} does not exist", options.rank));
    rules.rank = options.rank;
  }
  return rules;
}

Status no_entries(const PlanImpl& plan) {
  return bad_argument(
      "plan", fmt::format("a plan of kind {} has no entries", static_cast<int32_t>(plan.kind)));
}

// A few bytes may say more chunks than arrays can hold.
Status check_box_count(const plan::Catalog& catalog) {
  if (catalog.chunk_count() <= kMaxListedBoxes) return {};
  return resource_exhausted("boxes", fmt::format("the plan has {} chunks, arrays hold up to {}",
                                                 catalog.chunk_count(), kMaxListedBoxes));
}

// The plan's arrays, made once.
Result<const plan::EntryColumns*> entries_of(const PlanImpl& plan) {
  const std::scoped_lock lock(plan.mutex);
  if (plan.entries == nullptr) {
    if (plan.local.has_value()) {
      plan.entries = std::make_unique<const plan::EntryColumns>(*plan.local);
    } else if (plan.merged.has_value()) {
      SHW_RETURN_IF_ERROR(check_box_count(plan.merged->catalog));
      plan.entries = std::make_unique<const plan::EntryColumns>(*plan.merged);
    } else {
      return no_entries(plan);
    }
  }
  return plan.entries.get();
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace integrity = shardwright::integrity;
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

void shw_entry_batch_init(shw_entry_batch* batch, uint32_t struct_size) noexcept {
  capi::init_struct(batch, struct_size);
}

void shw_describe_options_init(shw_describe_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

void shw_merge_options_init(shw_merge_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

void shw_match_options_init(shw_match_options* options, uint32_t struct_size) noexcept {
  capi::init_struct(options, struct_size);
}

shw_status shw_plan_describe(const shw_describe_options* options, const shw_entry_batch* entries,
                             shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_describe_options rules;
    SHW_RETURN_IF_ERROR(capi::read_struct(options, "options", &rules));
    shw_entry_batch batch;
    SHW_RETURN_IF_ERROR(capi::read_struct(entries, "entries", &batch));
    SHW_ASSIGN_OR_RETURN(const auto arrays, capi::read_entry_batch(batch));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::describe(rules, arrays));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(bytes)));
    return {};
  });
}

shw_status shw_plan_entries(const shw_plan* plan, shw_entry_batch* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto* columns, capi::entries_of(*impl));
    capi::write_out(capi::batch_of(columns->arrays()), out);
    return {};
  });
}

shw_status shw_plan_merge(const shw_merge_options* options, const void* plans,
                          const uint64_t* plan_offsets, uint64_t plan_count, shw_buffer** out,
                          shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plans, "plans"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plan_offsets, "plan_offsets"));
    SHW_ASSIGN_OR_RETURN(const auto rules, capi::read_merge_options(options));
    SHW_ASSIGN_OR_RETURN(const auto list,
                         capi::text_list_argument(plans, plan_offsets, plan_count, "plans"));
    std::vector<std::span<const std::byte>> buffers(plan_count);
    for (uint64_t i = 0; i < plan_count; ++i) buffers[i] = capi::span_of(list.at(i));
    SHW_ASSIGN_OR_RETURN(auto parts, plan::merge_plans(buffers, rules));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(std::move(parts)));
    return {};
  });
}

shw_status shw_plan_merge_buffers(const shw_merge_options* options, const void* const* plans,
                                  const uint64_t* plan_sizes, uint64_t plan_count, shw_buffer** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plans, "plans"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(plan_sizes, "plan_sizes"));
    SHW_ASSIGN_OR_RETURN(const auto rules, capi::read_merge_options(options));
    SHW_ASSIGN_OR_RETURN(const auto buffers,
                         capi::read_plan_buffers(plans, plan_sizes, plan_count));
    SHW_ASSIGN_OR_RETURN(auto parts, plan::merge_plans(buffers, rules));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(std::move(parts)));
    return {};
  });
}

shw_status shw_plan_match(const shw_match_options* options, const shw_plan* stored,
                          const shw_entry_batch* wanted, shw_buffer** out,
                          shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(stored, "stored"));
    SHW_ASSIGN_OR_RETURN(const auto rules, capi::read_match_options(options));
    shw_entry_batch batch;
    SHW_RETURN_IF_ERROR(capi::read_struct(wanted, "wanted", &batch));
    SHW_ASSIGN_OR_RETURN(const auto arrays, capi::read_entry_batch(batch));
    if (!impl->merged.has_value()) return capi::bad_argument("stored", "it is no merged plan");
    SHW_ASSIGN_OR_RETURN(const auto matches,
                         plan::match_entries(impl->merged->catalog, arrays, rules));
    const std::string_view parts[] = {
        capi::bytes_of(matches.wanted),         capi::bytes_of(matches.chunks),
        capi::bytes_of(matches.wanted_offsets), capi::bytes_of(matches.stored_offsets),
        capi::bytes_of(matches.lengths),        capi::bytes_of(matches.entry_begins)};
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(parts));
    return {};
  });
}

shw_status shw_plan_digest(const shw_plan* plan, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    if (impl->local.has_value()) {
      SHW_ASSIGN_OR_RETURN(const auto digest, plan::items_digest(*impl->local));
      SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(digest)));
      return {};
    }
    if (!impl->merged.has_value()) return capi::no_entries(*impl);
    const auto digest = integrity::xxh3_128(impl->bytes);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(digest)));
    return {};
  });
}

shw_status shw_content_digest(const void* data, uint64_t size, shw_buffer** out,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, capi::bytes_argument(data, size, "data"));
    const auto digest = integrity::xxh3_128(bytes);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(digest)));
    return {};
  });
}

}  // extern "C"
