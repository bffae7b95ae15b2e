// SPDX-License-Identifier: Apache-2.0
//
// The steps of the contract that look into an open checkpoint, and those of the planners.
#include <algorithm>
#include <set>
#include <stdexcept>

#include "tests/bindings/c/interpreter.h"

namespace contract {
namespace {

void compare(const std::string& wanted, const std::string& found) {
  if (wanted != found) throw std::runtime_error("expected " + wanted + ", found " + found);
}

std::string sized(const char* text, uint64_t size) {
  return text != nullptr ? std::string(text, size) : "";
}

Bytes bytes_of(const Buffer& buffer) {
  const auto* data = static_cast<const uint8_t*>(shw_buffer_data(buffer.get()));
  return {data, data + shw_buffer_size(buffer.get())};
}

void check_names(shw_checkpoint* checkpoint, int32_t rank, const Json& step) {
  std::vector<std::string> wanted, found;
  for (const Json& name : member(step, "expected")) wanted.push_back(text_of(name));
  for (uint64_t i = 0; i < shw_checkpoint_tensor_count(checkpoint); ++i) {
    uint64_t size = 0, stands_for = 0;
    const char* name = shw_checkpoint_tensor_name(checkpoint, i, &size);
    const shw_status status =
        shw_checkpoint_find_tensor(checkpoint, name, size, rank, &stands_for, nullptr);
    if (status == SHW_OK && stands_for == i) found.push_back(sized(name, size));
  }
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  if (wanted != found) throw std::runtime_error("other tensor names");
}

uint64_t find(shw_checkpoint* checkpoint, const std::string& name, int32_t rank) {
  uint64_t index = 0;
  shw_error* error = nullptr;
  check(shw_checkpoint_find_tensor(checkpoint, name.data(), name.size(), rank, &index, &error),
        &error);
  return index;
}

void check_ranks(shw_checkpoint* checkpoint, const Json& step) {
  const std::string name = text_of(step, "name");
  std::set<int32_t> found;
  for (uint64_t i = 0; i < shw_checkpoint_tensor_count(checkpoint); ++i) {
    shw_tensor_info info = SHW_TENSOR_INFO_INIT;
    shw_error* error = nullptr;
    check(shw_checkpoint_tensor_infos(checkpoint, i, 1, &info, &error), &error);
    uint64_t size = 0;
    const char* listed = shw_checkpoint_tensor_name(checkpoint, i, &size);
    if (sized(listed, size) == name) found.insert(info.rank);
  }
  for (uint64_t i = 0; i < shw_checkpoint_object_count(checkpoint); ++i) {
    uint64_t size = 0;
    const char* listed = shw_checkpoint_object_name(checkpoint, i, &size);
    if (sized(listed, size) == name) found.insert(shw_checkpoint_object_rank(checkpoint, i));
  }
  found.erase(-1);
  compare(member(step, "expected").dump(), Json(found).dump());
}

void check_read(shw_checkpoint* checkpoint, int32_t rank, const Json& step) {
  const uint64_t index = find(checkpoint, text_of(step, "tensor"), rank);
  const std::vector<int64_t> offsets = numbers_of(member(step, "offsets"));
  const std::vector<int64_t> sizes = numbers_of(member(step, "sizes"));
  shw_owned_tensor* made = nullptr;
  shw_error* error = nullptr;
  check(shw_checkpoint_read_tensor(checkpoint, index, offsets.data(), sizes.data(),
                                   static_cast<int32_t>(sizes.size()), &made, &error),
        &error);
  const Owned<shw_owned_tensor, shw_owned_tensor_release> tensor(made);
  shw_tensor view = SHW_TENSOR_INIT;
  check(shw_owned_tensor_describe(tensor.get(), &view, &error), &error);
  if (step.contains("hex")) compare(text_of(step, "hex"), hex_of(view.data, view.byte_size));
}

void check_object(shw_checkpoint* checkpoint, int32_t rank, const Json& step) {
  const std::string name = text_of(step, "name");
  uint64_t index = 0;
  shw_error* error = nullptr;
  check(shw_checkpoint_find_object(checkpoint, name.data(), name.size(), rank, &index, &error),
        &error);
  shw_buffer* made = nullptr;
  check(shw_checkpoint_read_objects(checkpoint, &index, 1, &made, &error), &error);
  const Buffer buffer(made);
  uint64_t size = 0;
  const char* type = shw_checkpoint_object_content_type(checkpoint, index, &size);
  compare(text_of(step, "content_type"), sized(type, size));
  const std::string text = text_of(step, "text");
  const std::string wanted =
      step.contains("hex") ? text_of(step, "hex") : hex_of(text.data(), text.size());
  compare(wanted, hex_of(shw_buffer_data(buffer.get()), shw_buffer_size(buffer.get())));
}

std::string hex_of_tensor(shw_checkpoint* checkpoint, uint64_t index) {
  shw_tensor_info info = SHW_TENSOR_INFO_INIT;
  shw_error* error = nullptr;
  check(shw_checkpoint_tensor_infos(checkpoint, index, 1, &info, &error), &error);
  shw_owned_tensor* made = nullptr;
  check(shw_checkpoint_read_tensor(checkpoint, index, nullptr, nullptr, info.ndim, &made, &error),
        &error);
  const Owned<shw_owned_tensor, shw_owned_tensor_release> tensor(made);
  shw_tensor view = SHW_TENSOR_INIT;
  check(shw_owned_tensor_describe(tensor.get(), &view, &error), &error);
  return hex_of(view.data, view.byte_size);
}

std::string text_of_object(shw_checkpoint* checkpoint, uint64_t index) {
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  check(shw_checkpoint_read_objects(checkpoint, &index, 1, &made, &error), &error);
  const Buffer buffer(made);
  return sized(static_cast<const char*>(shw_buffer_data(made)), shw_buffer_size(made));
}

void check_metadata(shw_checkpoint* checkpoint, const Json& step) {
  Json found = Json::object();
  for (uint64_t i = 0; i < shw_checkpoint_metadata_count(checkpoint); ++i) {
    uint64_t key_size = 0, value_size = 0;
    const char* key = shw_checkpoint_metadata_key(checkpoint, i, &key_size);
    const char* value = shw_checkpoint_metadata_value(checkpoint, i, &value_size);
    found[sized(key, key_size)] = sized(value, value_size);
  }
  compare(member(step, "expected").dump(), found.dump());
}

}  // namespace

std::string Interpreter::digest(shw_checkpoint* checkpoint, const std::string& name, int32_t rank,
                                const std::string& algorithm) {
  const uint64_t index = find(checkpoint, name, rank);
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  const int32_t number = algorithm == "sha256" ? SHW_DIGEST_SHA256 : SHW_DIGEST_XXH3;
  check(shw_checkpoint_digests(checkpoint, &index, 1, number, &made, &error), &error);
  const Buffer buffer(made);
  return {static_cast<const char*>(shw_buffer_data(buffer.get())), shw_buffer_size(buffer.get())};
}

void Interpreter::look(const Json& step) {
  shw_checkpoint* checkpoint = checkpoints_.at(text_of(step, "checkpoint")).get();
  const std::string op = text_of(step, "op");
  const int32_t rank = views_.at(text_of(step, "checkpoint"));
  if (op == "names") return check_names(checkpoint, rank, step);
  if (op == "ranks") return check_ranks(checkpoint, step);
  if (op == "read") return check_read(checkpoint, rank, step);
  if (op == "object") return check_object(checkpoint, rank, step);
  if (op == "metadata") return check_metadata(checkpoint, step);
  if (op == "digest") {
    const std::string found =
        digest(checkpoint, text_of(step, "tensor"), rank, text_of(step, "algorithm"));
    return compare(text_of(step, "expected"), found);
  }
  const bool lists = op == "find_damage";
  if (!lists && op != "verify") throw std::runtime_error("unknown step " + op);
  shw_report* report = nullptr;
  shw_error* error = nullptr;
  const uint64_t flags = member(step, "deep") == true ? SHW_VERIFY_DEEP : 0;
  const auto verifies = lists ? shw_checkpoint_find_damage : shw_checkpoint_verify;
  check(verifies(checkpoint, flags, &report, &error), &error);
  const uint64_t found = shw_report_name_count(report, SHW_REPORT_FINDING);
  shw_report_release(report);
  if (lists) compare(member(step, "expected").dump(), std::to_string(found));
}

void Interpreter::latest(const Json& step) {
  shw_buffer* made = nullptr;
  shw_error* error = nullptr;
  const std::string path = path_of(step);
  check(shw_checkpoint_latest(context_, storage_of(step), path.c_str(), &made, &error), &error);
  const Buffer buffer(made);
  const std::string found =
      sized(static_cast<const char*>(shw_buffer_data(made)), shw_buffer_size(made));
  compare((path.empty() ? "" : path + "/") + text_of(step, "expected"), found);
}

void Interpreter::convert(const Json& step) {
  const Json target = {{"path", member(step, "to")}, {"storage", member(step, "to_storage")}};
  Json words = step.value("options", Json::object());
  shw_convert_options options = SHW_CONVERT_OPTIONS_INIT;
  options.max_shard_size = words.value("max_shard_size", uint64_t{0});
  words.erase("max_shard_size");
  set_words(words, {{"format", &options.format}, {"overwrite", &options.overwrite}});
  const std::string from = path_of(step);
  const std::string to = path_of(target);
  shw_report* report = nullptr;
  shw_error* error = nullptr;
  check(shw_convert(context_, storage_of(step), from.c_str(), storage_of(target), to.c_str(),
                    &options, &report, &error),
        &error);
  shw_report_release(report);
}

// What a host does to load everything: the entries that find gives to its rank, read one by one.
void Interpreter::load_all(const Json& step) {
  shw_checkpoint* made = nullptr;
  shw_error* error = nullptr;
  check(shw_checkpoint_open(context_, storage_of(step), path_of(step).c_str(), nullptr, &made,
                            &error),
        &error);
  const Checkpoint checkpoint(made);
  const Json& expected = member(step, "expected");
  for (int32_t rank = 0; rank < static_cast<int32_t>(expected.size()); ++rank) {
    Json found = {{"tensors", Json::object()}, {"objects", Json::object()}};
    for (uint64_t i = 0; i < shw_checkpoint_tensor_count(made); ++i) {
      uint64_t size = 0, mine = 0;
      const char* name = shw_checkpoint_tensor_name(made, i, &size);
      if (shw_checkpoint_find_tensor(made, name, size, rank, &mine, nullptr) == SHW_OK)
        found["tensors"][sized(name, size)] = hex_of_tensor(made, mine);
    }
    for (uint64_t i = 0; i < shw_checkpoint_object_count(made); ++i) {
      uint64_t size = 0, mine = 0;
      const char* name = shw_checkpoint_object_name(made, i, &size);
      if (shw_checkpoint_find_object(made, name, size, rank, &mine, nullptr) == SHW_OK)
        found["objects"][sized(name, size)] = text_of_object(made, mine);
    }
    compare(expected[static_cast<size_t>(rank)].dump(), found.dump());
  }
}

Bytes Interpreter::join(const Json& ids, std::vector<uint64_t>* offsets) {
  Bytes joined;
  joined.reserve(1);  // never NULL, also when every part is empty
  offsets->assign(1, 0);
  for (const Json& id : ids) {
    if (id.is_string()) {
      const Bytes& part = plans_.at(id.get<std::string>());
      joined.insert(joined.end(), part.begin(), part.end());
    }
    offsets->push_back(joined.size());
  }
  return joined;
}

bool Interpreter::run_planner(const Json& step) {
  const std::string op = text_of(step, "op");
  if (op == "cut_plan") {
    Bytes& plan = plans_.at(text_of(step, "plan"));
    plan.resize(plan.size() - member(step, "drop").get<size_t>());
    return true;
  }
  return run_save_planner(step) || run_load_planner(step);
}

bool Interpreter::run_save_planner(const Json& step) {
  const std::string op = text_of(step, "op");
  const std::string id = text_of(step, "id");
  const std::string path = path_of(step);
  shw_error* error = nullptr;
  shw_buffer* made = nullptr;
  if (op == "save_planner") {
    const SaveOptions options(member(step, "options"));
    shw_save_planner* planner = nullptr;
    check(shw_save_planner_create(context_, states_.at(text_of(step, "state")).get(),
                                  member(step, "rank").get<int32_t>(),
                                  member(step, "world_size").get<int32_t>(), &options.options,
                                  &planner, &error),
          &error);
    save_planners_[id] = SavePlanner(planner);
    return true;
  }
  const auto found = save_planners_.find(text_of(step, "planner"));
  if (found == save_planners_.end()) return false;
  shw_save_planner* planner = found->second.get();
  if (op == "local_plan") {
    check(shw_save_planner_local_plan(planner, &made, &error), &error);
    plans_[id] = bytes_of(Buffer(made));
  } else if (op == "global_plan") {
    std::vector<uint64_t> offsets;
    const Bytes plans = join(member(step, "plans"), &offsets);
    last_save_ = step;
    check(shw_save_planner_global_plan(planner, storage_of(step), path.c_str(), plans.data(),
                                       offsets.data(), offsets.size() - 1, &made, &error),
          &error);
    const Buffer parts(made);
    for (uint64_t i = 0; i < member(step, "ids").size(); ++i) {
      const auto* data = static_cast<const uint8_t*>(shw_buffer_part_data(parts.get(), i));
      plans_[text_of(member(step, "ids")[i])] =
          Bytes(data, data + shw_buffer_part_size(parts.get(), i));
    }
  } else if (op == "finish") {
    const Bytes& mine = plans_.at(text_of(step, "plan"));
    shw_plan* plan = nullptr;
    check(shw_save_planner_finish(planner, mine.data(), mine.size(), &plan, &error), &error);
    const Plan owned(plan);
    const auto* data = static_cast<const uint8_t*>(shw_plan_data(plan));
    plans_[id] = Bytes(data, data + shw_plan_size(plan));
  } else if (op == "save_execute") {
    const Bytes& bytes = plans_.at(text_of(step, "plan"));
    shw_plan* plan = nullptr;
    check(shw_plan_create(bytes.data(), bytes.size(), &plan, &error), &error);
    const Plan owned(plan);
    check(shw_save_execute(planner, plan, storage_of(step), path.c_str(), &made, &error), &error);
    plans_[id] = bytes_of(Buffer(made));
  } else {  // commit
    std::vector<uint64_t> offsets;
    const Bytes results = join(member(step, "results"), &offsets);
    shw_report* report = nullptr;
    check(shw_save_commit(planner, results.data(), offsets.data(), offsets.size() - 1, &report,
                          &error),
          &error);
    shw_report_release(report);
  }
  return true;
}

bool Interpreter::run_load_planner(const Json& step) {
  const std::string op = text_of(step, "op");
  shw_error* error = nullptr;
  if (op == "load_planner") {
    const shw_load_options options = load_options(member(step, "options"));
    shw_load_planner* planner = nullptr;
    check(shw_load_planner_create(checkpoints_.at(text_of(step, "checkpoint")).get(),
                                  states_.at(text_of(step, "state")).get(),
                                  member(step, "rank").get<int32_t>(), &options, &planner, &error),
          &error);
    load_planners_[text_of(step, "id")] = LoadPlanner(planner);
    return true;
  }
  const auto found = load_planners_.find(text_of(step, "planner"));
  if (found == load_planners_.end()) return false;
  shw_plan* plan = nullptr;
  if (op == "load_plan") {
    check(shw_load_planner_local_plan(found->second.get(), &plan, &error), &error);
    const Plan owned(plan);
    const auto* data = static_cast<const uint8_t*>(shw_plan_data(plan));
    plans_[text_of(step, "id")] = Bytes(data, data + shw_plan_size(plan));
    return true;
  }
  const Bytes& bytes = plans_.at(text_of(step, "plan"));
  check(shw_plan_create(bytes.data(), bytes.size(), &plan, &error), &error);
  const Plan owned(plan);
  shw_report* report = nullptr;
  check(shw_load_execute(found->second.get(), plan, &report, &error), &error);
  shw_report_release(report);
  return true;
}

}  // namespace contract
