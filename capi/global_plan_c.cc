// SPDX-License-Identifier: Apache-2.0
//
// global_plan.h: descriptions of flat arrays and layouts, and the plans made of them.
#include "shardwright/global_plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
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
#include "core/base/generation_id.h"
#include "core/base/json_writer.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/describe/describe_entries.h"
#include "core/plan/rank_plans.h"
#include "core/plan/save/global_plan.h"
#include "core/plan/wire/wire.h"

namespace shardwright::capi {

struct GlobalPlanImpl {
  int32_t rank_count() const { return static_cast<int32_t>(ranks.rank_count()); }

  static constexpr uint64_t kMagic = 0x7368772d73796d62;
  static constexpr const char* kNoun = "global plan";
  GlobalPlanImpl(plan::RankPlans all, plan::GlobalSavePlan made)
      : ranks(std::move(all)), plan(std::move(made)) {}
  plan::RankPlans ranks;
  plan::GlobalSavePlan plan;
};

}  // namespace shardwright::capi

struct shw_global_plan : shardwright::capi::Handle<shardwright::capi::GlobalPlanImpl> {};

namespace shardwright::capi {
namespace {

template <typename Values>
std::string_view bytes_of(const Values& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data())};
}

std::span<const std::byte> span_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Result<std::span<const Digest128>> read_digests(const void* digests, uint64_t rank_count) {
  if (rank_count == 0 || rank_count > static_cast<uint64_t>(kMaxWorldSize)) {
    return bad_argument("rank_count",
                        fmt::format("{} is not between 1 and {}", rank_count, kMaxWorldSize));
  }
  return list_argument(static_cast<const Digest128*>(digests), rank_count, "digests");
}

// One per entry, or none.
Result<std::vector<const Layout*>> read_layouts(const shw_layout* const* layouts, uint64_t count) {
  std::vector<const Layout*> read;
  if (layouts == nullptr) return read;
  read.resize(count, nullptr);
  for (uint64_t i = 0; i < count; ++i) {
    if (layouts[i] == nullptr) continue;
    SHW_ASSIGN_OR_RETURN(const auto impl, need(layouts[i], "layouts"));
    read[i] = impl->layout.get();
  }
  return read;
}

Result<shw_buffer*> describe(const shw_describe_options& options, const shw_entry_batch& batch,
                             const shw_layout* const* layouts) {
  if (options.kind != 0 && options.kind != SHW_PLAN_DESCRIPTION)
    return bad_argument("kind",
                        fmt::format("plans of kind {} are not described by layouts", options.kind));
  SHW_ASSIGN_OR_RETURN(const auto arrays, read_entry_batch(batch));
  SHW_ASSIGN_OR_RETURN(const auto read, read_layouts(layouts, batch.count));
  SHW_ASSIGN_OR_RETURN(const plan::DescribeRules rules, read_describe_rules(options));
  SHW_ASSIGN_OR_RETURN(const auto local, plan::describe_local(arrays, read, rules));
  SHW_ASSIGN_OR_RETURN(const plan::Bytes description, plan::encode(local.description));
  plan::Bytes part;
  if (!plan::view_of(local.part).empty()) {
    SHW_ASSIGN_OR_RETURN(part, plan::encode(local.part));
  }
  const std::string_view parts[] = {bytes_of(description), bytes_of(local.part.description_digest),
                                    bytes_of(part)};
  return buffer_of_parts(parts);
}

Result<plan::SaveRules> read_rules(const shw_merge_options* given) {
  shw_merge_options options;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &options));
  SHW_RETURN_IF_ERROR(option_in_range(options.owner, SHW_OWNER_ALL, "owner"));
  SHW_RETURN_IF_ERROR(option_in_range(options.preset, SHW_PRESET_MEGATRON, "preset"));
  SHW_RETURN_IF_ERROR(
      option_in_range(options.verify_replicas, SHW_VERIFY_REPLICAS_OFF, "verify_replicas"));
  if (options.cover != SHW_COVER_FULL)
    return bad_argument("cover", "the plan of a save is always proved to cover each tensor once");
  plan::SaveRules rules;
  rules.owner = static_cast<plan::OwnerRule>(options.owner);
  rules.preset = static_cast<plan::Preset>(options.preset);
  rules.verify_replicas = static_cast<plan::VerifyReplicas>(options.verify_replicas);
  return rules;
}

Result<std::vector<plan::Description>> read_descriptions(const void* blob, const uint64_t* offsets,
                                                         uint64_t count) {
  SHW_ASSIGN_OR_RETURN(const auto list, text_list_argument(blob, offsets, count, "descriptions"));
  std::vector<plan::Description> descriptions;
  for (uint64_t i = 0; i < count; ++i) {
    SHW_ASSIGN_OR_RETURN(auto description, plan::decode<plan::Description>(span_of(list.at(i))));
    descriptions.push_back(std::move(description));
  }
  return descriptions;
}

Result<std::vector<plan::LocalPart>> read_parts(const void* blob, const uint64_t* offsets,
                                                uint64_t count) {
  std::vector<plan::LocalPart> parts;
  if (count == 0) return parts;
  SHW_ASSIGN_OR_RETURN(const auto list, text_list_argument(blob, offsets, count, "parts"));
  for (uint64_t i = 0; i < count; ++i) {
    SHW_ASSIGN_OR_RETURN(auto part, plan::decode<plan::LocalPart>(span_of(list.at(i))));
    parts.push_back(std::move(part));
  }
  return parts;
}

// Entries of all ranks.
uint64_t item_count(const plan::RankPlans& ranks) {
  uint64_t items = 0;
  for (const uint32_t number : ranks.description_of_rank) {
    const plan::Catalog& catalog = ranks.descriptions[number].catalog;
    items += catalog.tensors.size() + catalog.objects.size();
  }
  return items;
}

std::string totals_json(const GlobalPlanImpl& impl) {
  const plan::Catalog& catalog = impl.plan.catalog;
  const plan::RankWrites& writes = impl.plan.writes;
  const auto shared = std::ranges::count(catalog.tensors, -1, &plan::TensorRecord::rank);
  const auto nothing = std::ranges::count(writes.item_counts, 0U);
  JsonWriter json;
  json.begin_object().key("schema").number(1);
  json.key("ranks").number(impl.rank_count());
  json.key("descriptions").number_unsigned(impl.ranks.descriptions.size());
  json.key("tensors").number(shared);
  json.key("items").number_unsigned(item_count(impl.ranks));
  json.key("chunks").number_unsigned(catalog.chunk_count());
  json.key("objects").number_unsigned(catalog.objects.size());
  json.key("writers").number(impl.rank_count() - nothing);
  json.key("bytes").number_unsigned(std::reduce(writes.bytes.begin(), writes.bytes.end()));
  json.key("most_bytes").number_unsigned(*std::ranges::max_element(writes.bytes));
  json.end_object();
  return json.take();
}

Result<std::vector<int32_t>> owners_of(const plan::Catalog& catalog, std::string_view name) {
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const plan::TensorRecord& tensor = catalog.tensors[t];
    if (tensor.rank >= 0 || catalog.tensor_name(t) != name) continue;
    std::vector<int32_t> owners;
    for (uint64_t c = tensor.chunk_begin; c < tensor.chunk_begin + tensor.chunk_count; ++c)
      owners.push_back(static_cast<int32_t>(catalog.place_of(t, c)));
    return owners;
  }
  return not_found(fmt::format("the plan has no shared tensor '{}'", escape_text(name)))
      .with_detail("tensor", name);
}

Status check_rank_and_generation(const GlobalPlanImpl& impl, int32_t rank,
                                 std::string_view generation) {
  if (!is_generation_id(generation)) {
    return invalid_argument(fmt::format("generation '{}' is not 32 lower-case hex digits",
                                        escape_text(generation)))
        .with_detail("generation", generation);
  }
  if (rank >= 0 && rank < impl.rank_count()) return {};
  return invalid_argument(fmt::format("the plan has no rank {} of {}", rank, impl.rank_count()))
      .with_detail("rank", fmt::to_string(rank));
}

plan::WriteList list_of(const GlobalPlanImpl& impl, int32_t rank, std::string generation) {
  plan::WriteList list = plan::write_list_of(impl.plan, impl.ranks.of(static_cast<uint32_t>(rank)));
  list.generation = std::move(generation);
  return list;
}

Result<shw_buffer*> expand(const GlobalPlanImpl& impl, const std::string& generation) {
  SHW_RETURN_IF_ERROR(check_rank_and_generation(impl, 0, generation));
  plan::GlobalSavePlan merged = impl.plan;
  merged.generation = generation;
  std::vector<plan::Bytes> plans;
  SHW_ASSIGN_OR_RETURN(plan::Bytes first, plan::encode(merged));
  plans.push_back(std::move(first));
  for (int32_t rank = 0; rank < impl.rank_count(); ++rank) {
    SHW_ASSIGN_OR_RETURN(plan::Bytes bytes, plan::encode(list_of(impl, rank, generation)));
    plans.push_back(std::move(bytes));
  }
  return buffer_of_parts(plans);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace plan = shardwright::plan;
using shardwright::Status;

extern "C" {

shw_status shw_global_plan_describe(const shw_describe_options* options,
                                    const shw_entry_batch* entries,
                                    const shw_layout* const* layouts, shw_buffer** out,
                                    shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_describe_options rules;
    SHW_RETURN_IF_ERROR(capi::read_struct(options, "options", &rules));
    shw_entry_batch batch;
    SHW_RETURN_IF_ERROR(capi::read_struct(entries, "entries", &batch));
    SHW_ASSIGN_OR_RETURN(*out, capi::describe(rules, batch, layouts));
    return {};
  });
}

shw_status shw_global_plan_representatives(const void* digests, uint64_t rank_count,
                                           shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto read, capi::read_digests(digests, rank_count));
    const std::vector<int32_t> ranks = plan::representative_ranks(read);
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::as_bytes(std::span(ranks))));
    return {};
  });
}

shw_status shw_global_plan_create(const shw_merge_options* options, const void* digests,
                                  uint64_t rank_count, const void* descriptions,
                                  const uint64_t* description_offsets, uint64_t description_count,
                                  const void* parts, const uint64_t* part_offsets,
                                  uint64_t part_count, shw_global_plan** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto rules, capi::read_rules(options));
    SHW_ASSIGN_OR_RETURN(const auto read, capi::read_digests(digests, rank_count));
    SHW_RETURN_IF_ERROR(capi::need_pointer(descriptions, "descriptions"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(description_offsets, "description_offsets"));
    SHW_ASSIGN_OR_RETURN(
        auto representatives,
        capi::read_descriptions(descriptions, description_offsets, description_count));
    SHW_ASSIGN_OR_RETURN(auto of_ranks, capi::read_parts(parts, part_offsets, part_count));
    SHW_ASSIGN_OR_RETURN(
        auto world, plan::make_rank_plans(read, std::move(representatives), std::move(of_ranks)));
    SHW_ASSIGN_OR_RETURN(auto made, plan::make_global_plan(world, rules));
    *out = capi::make_handle<shw_global_plan>(
        std::make_shared<capi::GlobalPlanImpl>(std::move(world), std::move(made)));
    return {};
  });
}

shw_status shw_global_plan_write_list(const shw_global_plan* plan, int32_t rank,
                                      const char* generation, const void* plan_digest,
                                      shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_ASSIGN_OR_RETURN(std::string text, capi::path_argument(generation, "generation"));
    SHW_RETURN_IF_ERROR(capi::check_rank_and_generation(*impl, rank, text));
    plan::WriteList list = capi::list_of(*impl, rank, std::move(text));
    if (plan_digest != nullptr)
      std::memcpy(list.plan_digest.data(), plan_digest, list.plan_digest.size());
    SHW_ASSIGN_OR_RETURN(const plan::Bytes bytes, plan::encode(list));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(bytes)));
    return {};
  });
}

shw_status shw_global_plan_rank_bytes(const shw_global_plan* plan, shw_buffer** out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::as_bytes(std::span(impl->plan.writes.bytes))));
    return {};
  });
}

shw_status shw_global_plan_owners(const shw_global_plan* plan, const char* name, uint64_t name_size,
                                  shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(name, "name"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(name, name_size, "name"));
    SHW_ASSIGN_OR_RETURN(const auto owners, capi::owners_of(impl->plan.catalog, text));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::as_bytes(std::span(owners))));
    return {};
  });
}

shw_status shw_global_plan_json(const shw_global_plan* plan, shw_buffer** out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(capi::totals_json(*impl)));
    return {};
  });
}

shw_status shw_global_plan_digest(const shw_global_plan* plan, shw_buffer** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    const auto digest = impl->plan.plan_digest;
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::span<const std::byte>(digest)));
    return {};
  });
}

shw_status shw_global_plan_expand(const shw_global_plan* plan, const char* generation,
                                  shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(plan, "plan"));
    SHW_ASSIGN_OR_RETURN(const std::string text, capi::path_argument(generation, "generation"));
    SHW_ASSIGN_OR_RETURN(*out, capi::expand(*impl, text));
    return {};
  });
}

void shw_global_plan_release(shw_global_plan* plan) noexcept {
  capi::release_handle(plan);
}

}  // extern "C"
