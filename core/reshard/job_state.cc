// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/job_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_export.h"
#include "core/format/megatron/unsharded_state.h"
#include "core/reshard/argument_sizes.h"
#include "core/reshard/buckets.h"
#include "core/reshard/gathered_buffers.h"

namespace shardwright::reshard {
namespace {

using format::megatron::kCommonKey;  // entries of common.pt
constexpr std::string_view kCommonObject = "common_state/shard_";
constexpr std::string_view kShardingOfState = "param_state_sharding_type";
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

Result<std::string> bytes_of(const exec::Checkpoint& source, size_t object) {
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, source.read_object(object, {}));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// The value of an object that holds a list with one.
Result<Value> only_value(const exec::Checkpoint& source, size_t object) {
  const plan::Catalog& catalog = source.catalog();
  const std::string_view name = catalog.object_name(object);
  const std::string_view type = catalog.texts.at(catalog.objects[object].content_type);
  SHW_ASSIGN_OR_RETURN(const std::string bytes, bytes_of(source, object));
  Result<Value> list = type == format::archive::kPickleType
                           ? value_of_pickle(std::as_bytes(std::span(bytes)))
                           : value_of_json(bytes);
  if (!list.ok() || list->kind != Value::Kind::kList || list->members.size() != 1)
    return unknown_form(name, list.ok() ? "it is no list with one value" : list.status().message());
  return std::move(list->members[0].second);
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
    SHW_ASSIGN_OR_RETURN(Value state, read_common_state(source_));
    for (size_t i = 0; i < catalog_.objects.size(); ++i) keep_or_leave_out(i);
    SHW_RETURN_IF_ERROR(change_common_state(&state));
    if (!state.members.empty()) add_entries(state, path_of({kCommonKey}), &result_.objects);
    for (const auto& [key, count] : left_out_)
      result_.notes.push_back(
          fmt::format("{} objects '{}' belong to ranks of the old job and were "
                      "left out",
                      count, escape_text(key)));
    return std::move(result_);
  }

 private:
  void keep_or_leave_out(size_t number) {
    const std::string_view name = catalog_.object_name(number);
    if (format::megatron::is_common(name) || name.starts_with(kCommonObject)) return;
    for (const std::string_view key : kOfRanks) {
      if (!name.starts_with(key) || change_.from == change_.to.shape) continue;
      ++left_out_[std::string(key)];
      return;
    }
    const bool is_of_buckets = name.find(kOfGroup) != std::string_view::npos;
    const bool says_sizes = is_of_buckets && name.find(kPaddedSizes) != std::string_view::npos;
    if (is_of_buckets && (says_sizes || change_.buckets != BucketObjects::kKept)) return;
    result_.objects.push_back(exec::as_stored(catalog_, number));
  }

  Status change_common_state(Value* state) {
    if (Value* const metadata = state->find("content_metadata"); metadata != nullptr) {
      if (Value* const kind = metadata->find("distrib_optim_sharding_type"); kind != nullptr)
        *kind = Value::leaf(fmt::format("\"{}\"", layout_name(change_.to.optimizer)));
    }
    if (Value* const arguments = state->find("args"); arguments != nullptr)
      SHW_RETURN_IF_ERROR(change_arguments(arguments));
    return change_.buckets == BucketObjects::kKept ? Status() : change_optimizer(state);
  }

  Status change_arguments(Value* arguments) {
    const JobShape& to = change_.to.shape;
    ArgumentSizes sizes = {
        {"tensor_model_parallel_size", to.tensor},
        {"pipeline_model_parallel_size", to.pipeline},
        {"expert_model_parallel_size", to.expert},
        {"expert_tensor_parallel_size", to.expert_tensor},
        {"data_parallel_size", to.data},
        {"world_size", to.tensor * to.pipeline * to.data},
    };
    if (change_.vocabulary > 0) sizes["padded_vocab_size"] = change_.vocabulary;
    if (arguments->kind == Value::Kind::kDict) {
      for (auto& [part, value] : arguments->members) {
        const auto found = sizes.find(part.text);
        if (found != sizes.end()) value = Value::leaf(std::to_string(found->second));
      }
      return {};
    }
    SHW_ASSIGN_OR_RETURN(const StoredLeaf leaf, read_leaf(source_, *arguments));
    const auto changed = set_argument_sizes(std::as_bytes(std::span(leaf.bytes)), leaf.type, sizes);
    if (!changed.ok()) {
      result_.notes.push_back(fmt::format("the arguments of the old job were kept as they are: {}",
                                          changed.status().message()));
      return {};
    }
    *arguments =
        Value::leaf(std::string(reinterpret_cast<const char*>(changed->data()), changed->size()));
    arguments->type = leaf.type;
    return {};
  }

  Status change_optimizer(Value* state) {
    const bool has_buckets = change_.buckets != BucketObjects::kNone;
    const Value* const before = state->find("optimizer");
    if (before == nullptr && !has_buckets) return {};
    ParamGroups groups;
    Others others;
    if (before != nullptr) SHW_RETURN_IF_ERROR(collect_common(*before, &groups, &others));
    SHW_RETURN_IF_ERROR(collect_objects(&groups, &others));
    // Of an ordinary optimizer, which no parallel size changes.
    if (groups.empty() && !has_buckets) return {};
    if (groups.empty())
      return unknown_form("optimizer", "there are no groups of parameters of the optimizer");
    const JobShape& to = change_.to.shape;
    Value optimizer = Value::dict();
    if (is_chained(to, change_.has_experts)) {
      SHW_ASSIGN_OR_RETURN(
          Value dense, one_optimizer({kOfDense, to.pipeline * to.tensor}, groups.dense(), others));
      const int64_t of_experts = to.pipeline * to.expert * to.expert_tensor;
      SHW_ASSIGN_OR_RETURN(Value experts,
                           one_optimizer({kOfExperts, of_experts}, groups.experts(), others));
      optimizer.set(0, std::move(dense));
      optimizer.set(1, std::move(experts));
    } else {
      SHW_ASSIGN_OR_RETURN(optimizer,
                           one_optimizer({"", to.pipeline * to.tensor}, groups.together(), others));
    }
    state->set("optimizer", std::move(optimizer));
    return {};
  }

  using Others = std::vector<std::pair<std::string, Value>>;  // grad_scaler

  struct OptimizerPlace {
    std::string_view prefix;
    int64_t groups = 0;  // of ranks that share its buckets
  };

  // What the common state says of it; with new buckets the rest goes into objects of each group.
  Result<Value> one_optimizer(const OptimizerPlace& place, Value groups, const Others& others) {
    Value inner = Value::dict();
    inner.set("param_groups", std::move(groups));
    Value parts = Value::dict();
    parts.set("optimizer", std::move(inner));
    for (const auto& [key, value] : others) parts.set(key, value);
    Value optimizer = Value::dict();
    if (change_.buckets == BucketObjects::kOfNewBuckets) {
      SHW_RETURN_IF_ERROR(add_group_objects(place, parts));
    } else {
      optimizer = std::move(parts);
    }
    optimizer.set(kShardingOfState,
                  Value::leaf(fmt::format("\"{}\"", layout_name(change_.to.optimizer))));
    return optimizer;
  }

  Status add_group_objects(const OptimizerPlace& place, const Value& parts) {
    for (const auto& [part, value] : parts.members) {
      Value list = Value::list();
      list.append(value);
      SHW_ASSIGN_OR_RETURN(const std::string json, json_of_value(list));
      const auto bytes = std::as_bytes(std::span(json));
      for (int64_t group = 0; group < place.groups; ++group) {
        exec::ViewObject object;
        object.name = fmt::format("{}.{}/shard_0_1", group_name(place.prefix, group), part.text);
        object.content_type = format::archive::kJsonType;
        object.object = exec::ViewObject::kOwnBytes;
        object.bytes.assign(bytes.begin(), bytes.end());
        result_.objects.push_back(std::move(object));
      }
    }
    return {};
  }

  // One optimizer, or several by their numbers.
  static Status collect_common(const Value& optimizer, ParamGroups* groups, Others* others) {
    const bool is_chain = std::ranges::any_of(optimizer.members, [](const auto& member) {
      return member.first.kind != PathPartKind::kText;
    });
    if (!is_chain) return collect_one(optimizer, groups, others);
    for (const auto& [part, one] : optimizer.members)
      SHW_RETURN_IF_ERROR(collect_one(one, groups, others));
    return {};
  }

  static Status collect_one(const Value& one, ParamGroups* groups, Others* others) {
    for (const auto& [part, value] : one.members) {
      if (part.text == kShardingOfState || part.text == "param_state") continue;
      if (part.text != "optimizer") {
        add_other(part.text, value, others);
        continue;
      }
      const Value* const found = value.find("param_groups");
      if (found != nullptr) SHW_RETURN_IF_ERROR(groups->add(*found, "optimizer"));
    }
    return {};
  }

  static void add_other(const std::string& key, const Value& value, Others* others) {
    const bool is_there =
        std::ranges::any_of(*others, [&](const auto& each) { return each.first == key; });
    if (!is_there) others->emplace_back(key, value);
  }

  // "[chained_0.]optimizer.distributed.dp_group_idx_0.KEY/shard_0_1".
  Status collect_objects(ParamGroups* groups, Others* others) const {
    for (size_t i = 0; i < catalog_.objects.size(); ++i) {
      const std::string_view name = catalog_.object_name(i);
      const size_t at = name.find(kOfGroup);
      if (at == std::string_view::npos) continue;
      std::string_view key = name.substr(at + kOfGroup.size());
      const size_t dot = key.find('.');
      if (dot == std::string_view::npos) continue;
      key = key.substr(dot + 1);
      key = key.substr(0, key.rfind("/shard_"));
      if (key.starts_with(kPaddedSizes)) continue;
      if (holds_gathered_buffers(name)) continue;
      SHW_ASSIGN_OR_RETURN(const Value one, only_value(source_, i));
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

bool is_chained(const JobShape& shape, bool has_experts) {
  return has_experts && shape.expert > 1;
}

Result<Value> read_common_state(const exec::Checkpoint& source) {
  const plan::Catalog& catalog = source.catalog();
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    if (catalog.object_name(i).starts_with(kCommonObject)) return only_value(source, i);
  }
  return value_below(source, path_of({kCommonKey}));
}

Result<StoredLeaf> read_leaf(const exec::Checkpoint& source, const Value& leaf) {
  if (leaf.object == exec::ViewObject::kOwnBytes) return StoredLeaf{leaf.json, leaf.type};
  const plan::Catalog& catalog = source.catalog();
  SHW_ASSIGN_OR_RETURN(std::string bytes, bytes_of(source, leaf.object));
  return StoredLeaf{std::move(bytes),
                    std::string(catalog.texts.at(catalog.objects[leaf.object].content_type))};
}

Result<JobState> change_job_state(const exec::Checkpoint& source, const JobStateChange& change) {
  return JobStateChanger(source, change).run();
}

}  // namespace shardwright::reshard
