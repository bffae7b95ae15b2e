// SPDX-License-Identifier: Apache-2.0
//
// See planning.h.
#include "tests/bindings/c/planning.h"

#include <cstring>
#include <stdexcept>

#include "tests/bindings/c/entries.h"

namespace contract {
namespace {

void same(const Json& found, const Json& wanted, const std::string& what) {
  if (found != wanted)
    throw std::runtime_error(what + ": found " + found.dump() + ", expected " + wanted.dump());
}

// Calls a function of the shape (..., shw_buffer** out, shw_error** err).
template <typename Function, typename... Arguments>
Buffer call(Function function, Arguments... arguments) {
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  check(function(arguments..., &made, &error), &error);
  return Buffer(made);
}

std::string hex_of(const Buffer& buffer) {
  return contract::hex_of(shw_buffer_data(buffer.get()), shw_buffer_size(buffer.get()));
}

Bytes part_of(const shw_buffer* buffer, uint64_t index) {
  const auto* data = static_cast<const uint8_t*>(shw_buffer_part_data(buffer, index));
  return {data, data + shw_buffer_part_size(buffer, index)};
}

template <typename T>
std::vector<T> values_of(const shw_buffer* buffer, uint64_t index) {
  std::vector<T> values(shw_buffer_part_size(buffer, index) / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), shw_buffer_part_data(buffer, index), values.size() * sizeof(T));
  }
  return values;
}

template <typename T>
std::vector<T> numbers(const Json& step, const char* key) {
  return step.contains(key) ? step[key].get<std::vector<T>>() : std::vector<T>();
}

// [[offsets, sizes, local offset], ...] of boxes back to back.
Json pieces_of(const std::vector<int64_t>& boxes, const std::vector<int64_t>& starts, size_t ndim) {
  Json all = Json::array();
  auto at = boxes.begin();
  for (const int64_t start : starts) {
    const std::vector<int64_t> offsets(at, at + static_cast<int64_t>(ndim));
    at += static_cast<int64_t>(ndim);
    const std::vector<int64_t> sizes(at, at + static_cast<int64_t>(ndim));
    at += static_cast<int64_t>(ndim);
    all.push_back({offsets, sizes, start});
  }
  return all;
}

Json layout_pieces(const shw_layout* layout, const std::vector<int64_t>& shape, int32_t rank) {
  const auto ndim = static_cast<int32_t>(shape.size());
  shw_error* error = nullptr;
  uint64_t count = 0, size = 0;
  check(shw_layout_box_count(layout, shape.data(), ndim, rank, &count, &error), &error);
  std::vector<int64_t> boxes(count * 2 * shape.size()), starts(count);
  check(
      shw_layout_boxes(layout, shape.data(), ndim, rank, boxes.data(), boxes.size(), &size, &error),
      &error);
  check(shw_layout_local_offsets(layout, shape.data(), ndim, rank, starts.data(), count, &size,
                                 &error),
        &error);
  return pieces_of(boxes, starts, shape.size());
}

Json local_shape(const shw_layout* layout, const std::vector<int64_t>& shape, int32_t rank) {
  std::vector<int64_t> local(shape.size() + 1);
  uint64_t size = 0;
  shw_error* error = nullptr;
  check(shw_layout_local_shape(layout, shape.data(), static_cast<int32_t>(shape.size()), rank,
                               local.data(), local.size(), &size, &error),
        &error);
  local.resize(size);
  return local;
}

// Placement columns of a layout step.
struct Placements {
  explicit Placements(const Json& list) {
    static const std::map<std::string, int32_t> kKinds = {
        {"replicate", SHW_PLACEMENT_REPLICATE},
        {"shard", SHW_PLACEMENT_SHARD},
        {"strided_shard", SHW_PLACEMENT_STRIDED_SHARD},
        {"flat", SHW_PLACEMENT_FLAT}};
    for (const Json& placement : list) {
      const bool plain = placement.is_string();
      kinds.push_back(
          kKinds.at(plain ? placement.get<std::string>() : placement[0].get<std::string>()));
      dims.push_back(plain ? 0 : placement[1].get<int32_t>());
      factors.push_back(placement.size() > 2 ? placement[2].get<int32_t>() : 0);
    }
  }
  std::vector<int32_t> kinds, dims, factors;
};

const shw_megatron_api& megatron() {
  const void* functions = nullptr;
  shw_error* error = nullptr;
  check(shw_get_extension(SHW_MEGATRON_NAME, SHW_MEGATRON_VERSION, &functions, &error), &error);
  return *static_cast<const shw_megatron_api*>(functions);
}

void check_grid(const Json& step) {
  const auto local = numbers<int64_t>(step, "local_shape");
  shw_grid_shard shard = SHW_GRID_SHARD_INIT;
  shard.local_ndim = static_cast<int32_t>(local.size());
  shard.local_shape = local.data();
  shard.prepended = step.value("prepended", 0);
  const size_t axes = local.size() + static_cast<size_t>(shard.prepended);
  std::vector<int64_t> places, global(axes), offsets(axes), fragments(axes);
  for (const Json& place : step["places"])
    for (const Json& number : place) places.push_back(number.get<int64_t>());
  shw_error* error = nullptr;
  check(megatron().grid_place(&shard, places.data(), places.size() / 3, global.data(),
                              offsets.data(), fragments.data(), &error),
        &error);
  same(global, step["global_shape"], "global shape");
  same(offsets, step["offsets"], "offsets");
  shard.global_shape = global.data();
  shard.offsets = offsets.data();
  shard.fragments = fragments.data();
  if (step.contains("flat_range")) {
    shard.flags = SHW_GRID_FLAT;
    shard.flat_begin = step["flat_range"][0].get<int64_t>();
    shard.flat_size = step["flat_range"][1].get<int64_t>() - shard.flat_begin;
  }
  std::vector<int64_t> boxes(4 * axes * axes), starts(2 * axes);
  uint64_t size = 0;
  check(megatron().grid_boxes(&shard, boxes.data(), boxes.size(), &size, starts.data(), &error),
        &error);
  starts.resize(size / (2 * axes));
  same(pieces_of(boxes, starts, axes), step["expected"], "pieces");
}

void check_owners(const Json& step) {
  const auto weights = numbers<uint64_t>(step, "weights");
  const auto sets = numbers<uint32_t>(step, "sets");
  const auto cuts = numbers<uint64_t>(step, "set_offsets");
  const auto holders = numbers<int32_t>(step, "holders");
  const auto marks = numbers<uint8_t>(step, "secondary");
  std::vector<int32_t> owners(sets.size());
  shw_error* error = nullptr;
  check(megatron().plan_owners(sets.size(), weights.data(), sets.data(),
                               marks.empty() ? nullptr : marks.data(), cuts.size() - 1, cuts.data(),
                               holders.data(), step["rank_count"].get<int32_t>(), owners.data(),
                               &error),
        &error);
  same(owners, step["expected"], "owners");
}

shw_merge_options merge_options(const Json& words) {
  shw_merge_options options = SHW_MERGE_OPTIONS_INIT;
  set_words(words, {{"owner", &options.owner},
                    {"preset", &options.preset},
                    {"cover", &options.cover},
                    {"verify_replicas", &options.verify_replicas}});
  return options;
}

shw_match_options match_options(Json words) {
  if (words.is_null()) words = Json::object();
  shw_match_options options = SHW_MATCH_OPTIONS_INIT;
  options.flags = words.value("first_replica", false) ? SHW_MATCH_FIRST_REPLICA : 0;
  words.erase("first_replica");
  if (words.contains("rank")) options.flags |= SHW_MATCH_RANK;
  options.rank = words.value("rank", 0);
  words.erase("rank");
  set_words(words,
            {{"order", &options.order}, {"cover", &options.cover}, {"missing", &options.missing}});
  return options;
}

// Options of a describing step; the texts live as long as this.
struct DescribeOptions {
  explicit DescribeOptions(const Json& step) : agreement(text_of(step, "agreement")) {
    for (const Json& pair : member(step, "kinds")) {
      globs.add(text_of(pair[0]));
      values.push_back(word_of("kind", text_of(pair[1])));
    }
    if (text_of(step, "kind") == "merged_save") options.kind = SHW_PLAN_MERGED_SAVE;
    options.rank = step.value("rank", 0);
    options.world_size = step.value("world_size", 0);
    options.kind_globs = globs.blob.data();
    options.kind_offsets = globs.offsets.data();
    options.kind_values = values.data();
    options.kind_count = values.size();
    options.agreement = agreement.data();
    options.agreement_size = agreement.size();
  }
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  Texts globs;
  std::vector<int32_t> values;
  std::string agreement;
};

Plan open_plan(const Bytes& bytes) {
  shw_plan* plan = nullptr;
  shw_error* error = nullptr;
  check(shw_plan_create(bytes.data(), bytes.size(), &plan, &error), &error);
  return Plan(plan);
}

Json items_of(const shw_plan* plan) {
  const Buffer json = call(shw_plan_json, plan, uint64_t{1} << 31);
  const auto* text = static_cast<const char*>(shw_buffer_data(json.get()));
  const Json items = Json::parse(text, text + shw_buffer_size(json.get())).at("items");
  if (items.empty()) throw std::runtime_error("a plan without items");
  return items;
}

Bytes joined(const std::vector<const Bytes*>& parts, std::vector<uint64_t>* offsets) {
  Bytes blob;
  blob.reserve(1);  // never NULL
  for (const Bytes* part : parts) {
    blob.insert(blob.end(), part->begin(), part->end());
    offsets->push_back(blob.size());
  }
  return blob;
}

}  // namespace

Plan PlanningSteps::plan(const Json& id) const {
  return open_plan(plans_->at(text_of(id)));
}

void PlanningSteps::keep(const Json& ids, const shw_buffer* parts) {
  if (ids.is_null()) return;
  same(ids.size(), shw_buffer_part_count(parts), "parts");
  for (uint64_t i = 0; i < ids.size(); ++i) (*plans_)[text_of(ids[i])] = part_of(parts, i);
}

void PlanningSteps::make_layout(const Json& step) {
  const auto mesh = numbers<int64_t>(step, "mesh");
  const auto ranks = numbers<int32_t>(step, "ranks");
  const Placements placements(member(step, "placements"));
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  spec.mesh_ndim = static_cast<int32_t>(mesh.size());
  spec.mesh_shape = mesh.data();
  spec.ranks = ranks.empty() ? nullptr : ranks.data();
  spec.rank_count = ranks.size();
  std::vector<int32_t> map;
  std::vector<uint64_t> cuts = {0};
  if (step.contains("tensor_map")) {
    for (const Json& axes : step["tensor_map"]) {
      for (const Json& axis : axes) map.push_back(axis.get<int32_t>());
      cuts.push_back(map.size());
    }
    map.reserve(1);
    spec.tensor_map = map.data();
    spec.tensor_map_offsets = cuts.data();
    spec.tensor_ndim = static_cast<int32_t>(cuts.size()) - 1;
  } else {
    spec.placement_kinds = placements.kinds.data();
    spec.placement_dims = placements.dims.data();
    spec.placement_factors = placements.factors.data();
  }
  shw_layout* layout = nullptr;
  shw_error* error = nullptr;
  check(shw_layout_create(&spec, &layout, &error), &error);
  layouts_[text_of(step, "id")].reset(layout);
}

void PlanningSteps::check_pieces(const Json& step) {
  const shw_layout* layout = layouts_.at(text_of(step, "layout")).get();
  const auto shape = numbers<int64_t>(step, "shape");
  for (size_t rank = 0; rank < step["expected"].size(); ++rank) {
    const std::string what = "rank " + std::to_string(rank);
    same(layout_pieces(layout, shape, static_cast<int32_t>(rank)), step["expected"][rank], what);
    same(local_shape(layout, shape, static_cast<int32_t>(rank)), step["local_shapes"][rank], what);
  }
}

void PlanningSteps::describe(const Json& step) {
  const Entries entries(step);
  const DescribeOptions options(step);
  const shw_entry_batch batch = entries.batch();
  const Buffer made = call(shw_plan_describe, &options.options, &batch);
  (*plans_)[text_of(step, "id")] = part_of(made.get(), 0);
}

void PlanningSteps::merge(const Json& step) {
  std::vector<const Bytes*> plans;
  for (const Json& id : step["plans"]) plans.push_back(&plans_->at(text_of(id)));
  std::vector<uint64_t> offsets = {0};
  const Bytes blob = joined(plans, &offsets);
  const shw_merge_options options = merge_options(member(step, "options"));
  const Buffer made = call(shw_plan_merge, &options, static_cast<const void*>(blob.data()),
                           static_cast<const uint64_t*>(offsets.data()), uint64_t{plans.size()});
  same(shw_buffer_part_count(made.get()), 1 + plans.size(), "parts");
  if (step.contains("digest")) {
    const Plan merged = open_plan(part_of(made.get(), 0));
    same(hex_of(call(shw_plan_digest, merged.get())), step["digest"], "digest");
  }
  for (uint64_t rank = 0; rank < member(step, "kept").size(); ++rank) {
    const Plan local = open_plan(*plans[rank]);
    same(kept_names(local.get(), values_of<uint32_t>(made.get(), 1 + rank)), step["kept"][rank],
         "kept by " + std::to_string(rank));
  }
  if (step.contains("id")) (*plans_)[text_of(step, "id")] = part_of(made.get(), 0);
}

void PlanningSteps::match(const Json& step) {
  const Entries entries(step);
  const shw_entry_batch batch = entries.batch();
  const shw_match_options options = match_options(member(step, "options"));
  const Plan stored = plan(step["stored"]);
  const Buffer made = call(shw_plan_match, &options, stored.get(), &batch);
  same(values_of<uint64_t>(made.get(), 0), step["wanted"], "wanted");
  same(values_of<uint64_t>(made.get(), 1), step["chunks"], "chunks");
  same(values_of<int64_t>(made.get(), 2), step["wanted_offsets"], "wanted_offsets");
  same(values_of<int64_t>(made.get(), 3), step["stored_offsets"], "stored_offsets");
  same(values_of<int64_t>(made.get(), 4), step["sizes"], "sizes");
  same(values_of<uint64_t>(made.get(), 5), step["entry_begins"], "entry_begins");
}

void PlanningSteps::compare(const Json& step) {
  const Plan first = plan(step["plans"][0]);
  const Plan second = plan(step["plans"][1]);
  if (text_of(step, "op") == "same_items")
    return same(items_of(first.get()), items_of(second.get()), "items");
  same(box_lines(first.get()), box_lines(second.get()), "entries");
}

void PlanningSteps::describe_rank(const Json& step) {
  const Entries entries(step);
  const DescribeOptions options(step);
  const shw_entry_batch batch = entries.batch();
  std::vector<const shw_layout*> layouts;
  for (const Json& entry : step["entries"]) {
    layouts.push_back(entry.contains("layout") ? layouts_.at(text_of(entry, "layout")).get()
                                               : nullptr);
  }
  const Buffer made = call(shw_global_plan_describe, &options.options, &batch,
                           static_cast<const shw_layout* const*>(layouts.data()));
  const Described described = {part_of(made.get(), 0), part_of(made.get(), 1),
                               part_of(made.get(), 2)};
  if (step.contains("digest"))
    same(contract::hex_of(described.digest.data(), described.digest.size()), step["digest"],
         "digest");
  described_[text_of(step, "id")] = described;
}

void PlanningSteps::make_global_plan(const Json& step) {
  Bytes digests;
  std::vector<const Bytes*> descriptions, parts;
  for (const Json& id : step["descriptions"]) {
    const Described& each = described_.at(text_of(id));
    digests.insert(digests.end(), each.digest.begin(), each.digest.end());
    if (!each.part.empty()) parts.push_back(&each.part);
  }
  const uint64_t ranks = step["descriptions"].size();
  const void* all = digests.data();
  const Buffer chosen = call(shw_global_plan_representatives, all, ranks);
  const auto representatives = values_of<int32_t>(chosen.get(), 0);
  same(representatives, step["representatives"], "representatives");
  for (const int32_t rank : representatives) {
    const Json& id = step["descriptions"][static_cast<size_t>(rank)];
    descriptions.push_back(&described_.at(text_of(id)).description);
  }
  std::vector<uint64_t> offsets = {0}, part_offsets = {0};
  const Bytes blob = joined(descriptions, &offsets), part_blob = joined(parts, &part_offsets);
  const shw_merge_options options = merge_options(member(step, "options"));
  shw_global_plan* made = nullptr;
  shw_error* error = nullptr;
  check(
      shw_global_plan_create(&options, all, ranks, blob.data(), offsets.data(), descriptions.size(),
                             part_blob.data(), part_offsets.data(), parts.size(), &made, &error),
      &error);
  global_plans_[text_of(step, "id")].reset(made);
  check_global_plan(step);
}

void PlanningSteps::check_global_plan(const Json& step) {
  const shw_global_plan* plan = global_plans_.at(text_of(step, "id")).get();
  if (step.contains("digest")) {
    same(hex_of(call(shw_global_plan_digest, plan)), step["digest"], "digest");
    const Buffer bytes = call(shw_global_plan_rank_bytes, plan);
    same(values_of<uint64_t>(bytes.get(), 0), step["rank_bytes"], "rank_bytes");
  }
  for (const auto& [name, owners] : member(step, "owners").items()) {
    const Buffer found =
        call(shw_global_plan_owners, plan, name.data(), static_cast<uint64_t>(name.size()));
    same(values_of<int32_t>(found.get(), 0), owners, "owners of " + name);
  }
  const Buffer text = call(shw_global_plan_json, plan);
  const auto* json = static_cast<const char*>(shw_buffer_data(text.get()));
  const Json totals = Json::parse(json, json + shw_buffer_size(text.get()));
  for (const auto& [key, count] : member(step, "totals").items()) same(totals.at(key), count, key);
}

void PlanningSteps::write_list(const Json& step) {
  const shw_global_plan* plan = global_plans_.at(text_of(step, "plan")).get();
  const std::string generation = text_of(step, "generation");
  const void* no_digest = nullptr;
  const Buffer made = call(shw_global_plan_write_list, plan, step["rank"].get<int32_t>(),
                           generation.c_str(), no_digest);
  (*plans_)[text_of(step, "id")] = part_of(made.get(), 0);
}

void PlanningSteps::expand(const Json& step) {
  const shw_global_plan* plan = global_plans_.at(text_of(step, "plan")).get();
  const std::string generation = text_of(step, "generation");
  keep(step["ids"], call(shw_global_plan_expand, plan, generation.c_str()).get());
}

bool PlanningSteps::run(const Json& step) {
  using Method = void (PlanningSteps::*)(const Json&);
  static const std::map<std::string, Method> kMethods = {
      {"layout", &PlanningSteps::make_layout},
      {"pieces", &PlanningSteps::check_pieces},
      {"describe", &PlanningSteps::describe},
      {"merge", &PlanningSteps::merge},
      {"match", &PlanningSteps::match},
      {"same_entries", &PlanningSteps::compare},
      {"same_items", &PlanningSteps::compare},
      {"rank_description", &PlanningSteps::describe_rank},
      {"described_global_plan", &PlanningSteps::make_global_plan},
      {"write_list", &PlanningSteps::write_list},
      {"expand", &PlanningSteps::expand}};
  const std::string op = text_of(step, "op");
  if (const auto found = kMethods.find(op); found != kMethods.end()) {
    (this->*found->second)(step);
  } else if (op == "grid") {
    check_grid(step);
  } else if (op == "plan_owners") {
    check_owners(step);
  } else if (op == "entries") {
    same(box_lines(plan(step["plan"]).get()), step["expected"], "entries");
  } else if (op == "plan_digest") {
    const Plan described = plan(step["plan"]);
    same(hex_of(call(shw_plan_digest, described.get())), step["expected"], "digest");
  } else if (op == "content_digest") {
    const std::string text = text_of(step, "text");
    const void* data = text.data();
    same(hex_of(call(shw_content_digest, data, uint64_t{text.size()})), step["expected"], "digest");
  } else {
    return false;
  }
  return true;
}

}  // namespace contract
