// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/job_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/reshard/argument_sizes.h"
#include "core/reshard/value_tree.h"

namespace shardwright::reshard {
namespace {

constexpr std::string_view kOptimizer = "common.optimizer";
constexpr std::string_view kSharding = "common.content_metadata.distrib_optim_sharding_type";
constexpr std::string_view kShardingOfState = "param_state_sharding_type";
constexpr std::string_view kArguments = "common.args";
constexpr std::string_view kDistributed = "optimizer.distributed.dp_group_idx_";
// What tells groups of parameters apart when they are loaded.
constexpr std::string_view kIdentifiers[] = {"wd_mult", "lr_mult", "is_expert_parallel",
                                             "is_decoupled_lr"};
// Objects of single ranks, by how their keys begin.
constexpr std::string_view kOfRanks[] = {"rng_state", "rerun_state_machine_state"};

std::string_view layout_name(OptimizerLayout layout) {
  return layout == OptimizerLayout::kDpReshardable ? "dp_reshardable" : "fully_reshardable";
}

std::vector<PathPart> path_of(std::initializer_list<std::string_view> keys) {
  std::vector<PathPart> path;
  for (const std::string_view key : keys) path.push_back({PathPartKind::kText, std::string(key)});
  return path;
}

Status unknown_form(std::string_view object, std::string_view what) {
  return failed_precondition(fmt::format("object '{}': {}", escape_text(object), what))
      .with_detail("object", object);
}

// The groups of parameters of all optimizers of a job, experts apart.
class ParamGroups {
 public:
  // source: for messages.
  Status add(const Value& groups, std::string_view source) {
    if (groups.kind != Value::Kind::kList) return unknown_form(source, "no list of param_groups");
    for (const auto& [part, group] : groups.members) {
      if (group.kind != Value::Kind::kDict)
        return unknown_form(source, "a group of parameters that is no dict");
      Value kept = group;
      std::erase_if(kept.members, [](const auto& each) { return each.first.text == "params"; });
      SHW_RETURN_IF_ERROR(add_group(std::move(kept), source));
    }
    return {};
  }
  bool empty() const { return dense_.empty() && experts_.empty(); }

  // Of one optimizer: experts join the groups of equal multipliers.
  Value together() const {
    std::map<std::string, Value> all = dense_;
    Value list = Value::list();
    for (const auto& [id, group] : dense_) list.append(group);
    for (const auto& [id, group] : experts_) {
      Value joined = group;
      joined.set("is_expert_parallel", Value::leaf("false"));
      if (all.emplace(identity(joined), joined).second) list.append(std::move(joined));
    }
    return list;
  }
  Value dense() const {
    Value list = Value::list();
    for (const auto& [id, group] : dense_) list.append(group);
    return list;
  }
  // Where they were not apart, experts have the groups of all others.
  Value experts() const {
    Value list = Value::list();
    for (const auto& [id, group] : experts_.empty() ? dense_ : experts_) {
      Value expert = group;
      expert.set("is_expert_parallel", Value::leaf("true"));
      list.append(std::move(expert));
    }
    return list;
  }

 private:
  static std::string identity(const Value& group) {
    std::string id;
    for (const std::string_view key : kIdentifiers) {
      const Value* found = group.find(key);
      if (found == nullptr) found = group.find(fmt::format("pre_{}", key));
      id += fmt::format("{}={};", key, found == nullptr ? "" : found->json);
    }
    return id;
  }
  Status add_group(Value group, std::string_view source) {
    const Value* const expert = group.find("is_expert_parallel");
    auto& groups = expert != nullptr && expert->json == "true" ? experts_ : dense_;
    const auto [it, is_new] = groups.emplace(identity(group), group);
    if (is_new || it->second == group) return {};
    return unknown_form(source, fmt::format("a group of parameters ({}) differs from that of other "
                                            "ranks",
                                            it->first));
  }

  std::map<std::string, Value> dense_;
  std::map<std::string, Value> experts_;
};

class JobStateChanger {
 public:
  JobStateChanger(const exec::Checkpoint& source, const JobStateChange& change)
      : source_(source), catalog_(source.catalog()), change_(change) {}

  Result<JobState> run() {
    for (size_t i = 0; i < catalog_.objects.size(); ++i) SHW_RETURN_IF_ERROR(change_object(i));
    SHW_RETURN_IF_ERROR(change_optimizer());
    for (const auto& [key, count] : left_out_)
      result_.notes.push_back(
          fmt::format("{} objects '{}' belong to ranks of the old job and were "
                      "left out",
                      count, escape_text(key)));
    return std::move(result_);
  }

 private:
  bool keeps_buckets() const { return change_.to.optimizer == OptimizerLayout::kDpReshardable; }
  bool is_chained() const { return change_.has_experts && change_.to.shape.expert > 1; }

  Status change_object(size_t number) {
    const std::string_view name = catalog_.object_name(number);
    for (const std::string_view key : kOfRanks) {
      if (!name.starts_with(key) || change_.from == change_.to.shape) continue;
      ++left_out_[std::string(key)];
      return {};
    }
    if (name == kSharding) return add_text(number, layout_name(change_.to.optimizer));
    if (name == kArguments) return change_arguments(number);
    const bool is_optimizer =
        name.find(kDistributed) != std::string_view::npos || name.starts_with(kOptimizer);
    if (is_optimizer && !keeps_buckets()) return {};  // change_optimizer says it anew
    keep(number);
    return {};
  }

  void keep(size_t number) {
    exec::ViewObject object;
    object.name = catalog_.object_name(number);
    object.path = catalog_.texts.at(catalog_.objects[number].path);
    object.object = number;
    result_.objects.push_back(std::move(object));
  }

  exec::ViewObject in_place_of(size_t number, std::string_view content_type,
                               std::span<const std::byte> bytes) const {
    exec::ViewObject object;
    object.name = catalog_.object_name(number);
    object.path = catalog_.texts.at(catalog_.objects[number].path);
    object.content_type = content_type;
    object.object = exec::ViewObject::kOwnBytes;
    object.bytes.assign(bytes.begin(), bytes.end());
    return object;
  }

  Status add_text(size_t number, std::string_view text) {
    const std::string json = fmt::format("\"{}\"", text);
    result_.objects.push_back(
        in_place_of(number, "application/json", std::as_bytes(std::span(json))));
    return {};
  }

  Status change_arguments(size_t number) {
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, source_.read_object(number, {}));
    const JobShape& to = change_.to.shape;
    const ArgumentSizes sizes = {
        {"tensor_model_parallel_size", to.tensor},
        {"pipeline_model_parallel_size", to.pipeline},
        {"expert_model_parallel_size", to.expert},
        {"data_parallel_size", to.data},
        {"world_size", to.tensor * to.pipeline * to.data},
    };
    const std::string_view type = catalog_.texts.at(catalog_.objects[number].content_type);
    const auto changed = set_argument_sizes(bytes, type, sizes);
    if (!changed.ok()) {
      result_.notes.push_back(fmt::format("the arguments of the old job were kept as they are: {}",
                                          changed.status().message()));
      keep(number);
      return {};
    }
    result_.objects.push_back(in_place_of(number, type, *changed));
    return {};
  }

  Status change_optimizer() {
    if (keeps_buckets()) return {};
    SHW_ASSIGN_OR_RETURN(const Value common,
                         value_below(source_, path_of({"common", "optimizer"})));
    if (common.members.empty() && !change_.has_buckets) return {};
    ParamGroups groups;
    std::vector<std::pair<std::string, Value>> others;  // grad_scaler
    SHW_RETURN_IF_ERROR(collect_common(common, &groups, &others));
    SHW_RETURN_IF_ERROR(collect_objects(&groups, &others));
    if (groups.empty())
      return unknown_form(kOptimizer, "there are no groups of parameters of the optimizer");
    Value optimizer = Value::dict();
    if (is_chained()) {
      optimizer.set(0, one_optimizer(groups.dense(), others));
      optimizer.set(1, one_optimizer(groups.experts(), others));
    } else {
      optimizer = one_optimizer(groups.together(), others);
    }
    add_entries(optimizer, path_of({"common", "optimizer"}), &result_.objects);
    return {};
  }

  Value one_optimizer(Value groups,
                      const std::vector<std::pair<std::string, Value>>& others) const {
    Value inner = Value::dict();
    inner.set("param_groups", std::move(groups));
    Value optimizer = Value::dict();
    optimizer.set("optimizer", std::move(inner));
    for (const auto& [key, value] : others) optimizer.set(key, value);
    optimizer.set(kShardingOfState,
                  Value::leaf(fmt::format("\"{}\"", layout_name(change_.to.optimizer))));
    return optimizer;
  }

  // One optimizer, or several by their numbers.
  Status collect_common(const Value& common, ParamGroups* groups,
                        std::vector<std::pair<std::string, Value>>* others) const {
    const bool is_chain = std::ranges::any_of(common.members, [](const auto& member) {
      return member.first.kind != PathPartKind::kText;
    });
    if (!is_chain) return collect_one(common, groups, others);
    for (const auto& [part, one] : common.members)
      SHW_RETURN_IF_ERROR(collect_one(one, groups, others));
    return {};
  }

  Status collect_one(const Value& one, ParamGroups* groups,
                     std::vector<std::pair<std::string, Value>>* others) const {
    for (const auto& [part, value] : one.members) {
      if (part.text == kShardingOfState || part.text == "param_state") continue;
      if (part.text != "optimizer") {
        add_other(part.text, value, others);
        continue;
      }
      const Value* const found = value.find("param_groups");
      if (found != nullptr) SHW_RETURN_IF_ERROR(groups->add(*found, kOptimizer));
    }
    return {};
  }

  static void add_other(const std::string& key, const Value& value,
                        std::vector<std::pair<std::string, Value>>* others) {
    const bool is_there =
        std::ranges::any_of(*others, [&](const auto& each) { return each.first == key; });
    if (!is_there) others->emplace_back(key, value);
  }

  // "[chained_0.]optimizer.distributed.dp_group_idx_0.KEY/shard_0_1": a list with one value.
  Status collect_objects(ParamGroups* groups,
                         std::vector<std::pair<std::string, Value>>* others) const {
    for (size_t i = 0; i < catalog_.objects.size(); ++i) {
      const std::string_view name = catalog_.object_name(i);
      const size_t at = name.find(kDistributed);
      if (at == std::string_view::npos) continue;
      std::string_view key = name.substr(at + kDistributed.size());
      const size_t dot = key.find('.');
      if (dot == std::string_view::npos) continue;
      key = key.substr(dot + 1);
      key = key.substr(0, key.rfind("/shard_"));
      if (key.starts_with("per_bucket_numel") || key == "param_state") continue;
      SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, source_.read_object(i, {}));
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const auto value = value_of_json(text);
      if (!value.ok() || value->kind != Value::Kind::kList || value->members.size() != 1)
        return unknown_form(name, "it is no list with one plain value");
      const Value& one = value->members[0].second;
      if (key != "optimizer") {
        add_other(std::string(key), one, others);
        continue;
      }
      const Value* const found = one.find("param_groups");
      if (found == nullptr) return unknown_form(name, "there are no param_groups");
      SHW_RETURN_IF_ERROR(groups->add(*found, name));
    }
    return {};
  }

  const exec::Checkpoint& source_;
  const plan::Catalog& catalog_;
  const JobStateChange& change_;
  JobState result_;
  std::map<std::string, int> left_out_;
};

}  // namespace

Result<JobState> change_job_state(const exec::Checkpoint& source, const JobStateChange& change) {
  return JobStateChanger(source, change).run();
}

}  // namespace shardwright::reshard
