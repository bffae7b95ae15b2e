// SPDX-License-Identifier: Apache-2.0
//
// The steps of the contract that make things, save, load and compare.
#include "tests/bindings/c/interpreter.h"

#include <algorithm>
#include <stdexcept>

#include "tests/bindings/c/entries.h"
#include "tests/bindings/c/files.h"

namespace contract {
namespace {

// Calls a function of the shape (..., T** out, shw_error** err).
template <typename OwnedType, typename Function, typename... Arguments>
OwnedType make(Function function, Arguments... arguments) {
  typename OwnedType::pointer out = nullptr;
  shw_error* error = nullptr;
  const shw_status status = function(arguments..., &out, &error);
  check(status, &error);
  return OwnedType(out);
}

void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

// Every method of the failing storage.
shw_status fail(shw_error** err) {
  static constexpr char kMessage[] = "the host storage fails on purpose";
  return shw_error_create(SHW_HOST_EXCEPTION, kMessage, sizeof(kMessage) - 1, nullptr, 0, nullptr,
                          err);
}

Storage failing_storage() {
  shw_storage_vtable table = SHW_STORAGE_VTABLE_INIT;
  table.name = "failing";
  table.capabilities =
      SHW_STORAGE_ATOMIC_COMMIT;  // else a save is refused before it calls anything
  table.open = [](void*, const char*, uint64_t, int32_t, void**, shw_error** err) {
    return fail(err);
  };
  table.close = [](void*, void*) {};
  table.stat = [](void*, const char*, uint64_t, shw_storage_list_fn, void*, shw_error** err) {
    return fail(err);
  };
  table.list = [](void*, const char*, uint64_t, int32_t, shw_storage_list_fn, void*,
                  shw_error** err) { return fail(err); };
  table.read_at = [](void*, void*, uint64_t, void*, uint64_t, uint64_t*, shw_error** err) {
    return fail(err);
  };
  table.write_at = [](void*, void*, uint64_t, const void*, uint64_t, shw_error** err) {
    return fail(err);
  };
  table.sync = [](void*, void*, shw_error** err) { return fail(err); };
  table.commit = [](void*, void*, int32_t, const char*, uint64_t, shw_error** err) {
    return fail(err);
  };
  table.abort = [](void*, void*) {};
  table.remove = [](void*, const char*, uint64_t, shw_error** err) { return fail(err); };
  return make<Storage>(shw_storage_create, &table);
}

}  // namespace

Interpreter::Interpreter(shw_context* context, std::filesystem::path root)
    : context_(context), root_(std::move(root)), last_save_({{"path", "p"}}) {}

void Interpreter::run(const Json& step) {
  if (run_file_step(root_, step)) return;
  const std::string op = text_of(step, "op");
  if (op == "tensor") return make_tensor(step);
  if (op == "state") return make_state(step);
  if (op == "storage") return make_storage(step);
  if (op == "save" || op == "load") return save_or_load(step);
  if (op == "save_ranks" || op == "load_ranks") return run_ranks(step);
  if (op == "save_async" || op == "load_async") return start_job(step);
  if (op == "prepare") {
    shw_error* error = nullptr;
    const shw_status status =
        shw_prepare(context_, states_.at(text_of(step, "state")).get(), &error);
    return check(status, &error);
  }
  if (op == "wait") {
    shw_error* error = nullptr;
    const shw_status status = shw_job_wait(jobs_.at(text_of(step, "job")).get(), -1, &error);
    return check(status, &error);
  }
  if (op == "open") {
    checkpoints_[text_of(step, "id")] = make<Checkpoint>(
        shw_checkpoint_open, context_, storage_of(step), path_of(step).c_str(), nullptr);
    views_[text_of(step, "id")] = step.value("rank", -1);
    return;
  }
  if (op == "load_all") return load_all(step);
  if (op == "latest") return latest(step);
  if (op == "convert") return convert(step);
  if (op == "expect_tensor") return expect_tensor(step);
  if (op == "torch_items") return write_items(step);
  if (op == "torch_digests") return write_item_digests(step);
  if (!planning_.run(step) && !run_planner(step)) look(step);
}

std::string Interpreter::path_of(const Json& step) const {
  const std::string path = text_of(step, "path");
  return storage_of(step) != nullptr ? path : (root_ / path).string();
}

shw_storage* Interpreter::storage_of(const Json& step) const {
  const Json& id = member(step, "storage");
  return id.is_string() ? storages_.at(id.get<std::string>()).get() : nullptr;
}

void Interpreter::make_tensor(const Json& step) {
  auto tensor = std::make_unique<HostTensor>();
  shw_error* error = nullptr;
  check(shw_dtype_parse(text_of(step, "dtype").c_str(), &tensor->dtype, &error), &error);
  tensor->shape = numbers_of(member(step, "shape"));
  tensor->bytes = pattern_bytes(step, tensor->dtype, tensor->shape);
  tensor->read_only = member(step, "read_only") == true;
  if (text_of(step, "order") == "column") {
    tensor->bytes = reorder(tensor->bytes, tensor->shape, true);
    tensor->strides = {1, tensor->shape[0]};
  }
  tensors_[text_of(step, "id")] = tensor.get();
  memory_.push_back(std::move(tensor));
}

void Interpreter::make_state(const Json& step) {
  State state = make<State>(shw_state_create);
  for (const Json& entry : member(step, "entries")) {
    if (entry.contains("tensor")) {
      add_tensor(state.get(), entry);
    } else {
      add_object(state.get(), entry);
    }
  }
  if (step.contains("mapping")) state = mapped(state, member(step, "mapping"));
  states_[text_of(step, "id")] = std::move(state);
}

void Interpreter::add_tensor(shw_state* state, const Json& entry) {
  HostTensor& host = *tensors_.at(text_of(entry, "tensor"));
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.flags = host.read_only ? SHW_TENSOR_READ_ONLY : 0;
  tensor.data = host.bytes.data();
  tensor.byte_size = host.bytes.size();
  tensor.device_type = 1;
  tensor.dtype = host.dtype;
  tensor.ndim = static_cast<int32_t>(host.shape.size());
  tensor.shape = host.shape.data();
  tensor.strides = host.strides.empty() ? nullptr : host.strides.data();
  const std::string name = text_of(entry, "name");
  const std::string path = text_of(entry, "path");
  const std::vector<int64_t> global = numbers_of(member(entry, "shape"));
  const std::vector<int64_t> offsets = numbers_of(member(entry, "offsets"));
  const uint64_t name_offsets[] = {0, name.size()};
  const uint64_t path_offsets[] = {0, path.size()};
  const uint64_t shape_offsets[] = {0, global.size()};
  const uint64_t box_ranges[] = {0, 1};
  const Json grid = entry.value("grid", Json::object());
  const Json& cut = entry.contains("fragments") ? entry : grid;
  const std::vector<int64_t> sizes = numbers_of(member(entry, "sizes"));
  const std::vector<int64_t> fragments = numbers_of(member(cut, "fragments"));
  const std::vector<int64_t> indices = numbers_of(member(grid, "index"));
  const uint64_t grid_offsets[] = {0, fragments.size()};
  const int32_t replica_ids[] = {entry.value("replica", false) ? 1 : 0};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = name.data();
  batch.name_offsets = name_offsets;
  batch.tensors = &tensor;
  batch.paths = path.data();
  batch.path_offsets = path_offsets;
  if (entry.contains("shape")) {
    batch.global_shapes = global.data();
    batch.global_shape_offsets = shape_offsets;
    batch.box_ranges = box_ranges;
    batch.box_offsets = offsets.data();
    batch.box_sizes = entry.contains("sizes") ? sizes.data() : host.shape.data();
  }
  if (!fragments.empty()) {
    batch.grid_fragments = fragments.data();
    batch.grid_indices = indices.empty() ? nullptr : indices.data();
    batch.grid_offsets = grid_offsets;
  }
  batch.replica_ids = replica_ids;
  shw_error* error = nullptr;
  check(shw_state_add_tensors(state, &batch, &error), &error);
}

// The state that the rules make of this one, which goes.
State Interpreter::mapped(const State& state, const Json& rules) {
  Texts names;
  std::vector<int64_t> values;
  const Json parameters = rules.value("parameters", Json::object());
  for (const auto& [name, value] : parameters.items()) {
    names.add(name);
    values.push_back(value.get<int64_t>());
  }
  const std::string json = text_of(rules, "json");
  const std::string shipped = text_of(rules, "shipped");
  shw_mapping_spec spec = SHW_MAPPING_SPEC_INIT;
  if (rules.contains("shipped")) {
    spec.shipped = shipped.c_str();
  } else {
    spec.json = json.data();
    spec.json_size = json.size();
  }
  spec.parameter_names = names.blob.data();
  spec.parameter_name_offsets = names.offsets.data();
  spec.parameter_values = values.data();
  spec.parameter_count = values.size();
  shw_error* error = nullptr;
  shw_mapping* mapping = nullptr;
  check(shw_mapping_create(&spec, &mapping, &error), &error);
  shw_state* made = nullptr;
  const shw_status status = shw_state_map(state.get(), mapping, &made, &error);
  shw_mapping_release(mapping);
  check(status, &error);
  return State(made);
}

void Interpreter::add_object(shw_state* state, const Json& entry) {
  const std::string name = text_of(entry, "name");
  const std::string path = text_of(entry, "path");
  const bool is_json = entry.contains("json");
  const std::string type = is_json ? "application/json" : "application/octet-stream";
  Bytes data = bytes_of_hex(text_of(entry, "hex"));
  const std::string text = text_of(entry, "json");
  if (is_json) data.assign(text.begin(), text.end());
  if (entry.contains("zeros")) data.assign(member(entry, "zeros").get<size_t>(), 0);
  const uint64_t name_offsets[] = {0, name.size()};
  const uint64_t path_offsets[] = {0, path.size()};
  const uint64_t type_offsets[] = {0, type.size()};
  const uint64_t data_offsets[] = {0, data.size()};
  shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
  batch.count = 1;
  batch.names = name.data();
  batch.name_offsets = name_offsets;
  batch.data = data.data();
  batch.data_offsets = data_offsets;
  batch.content_types = type.data();
  batch.content_type_offsets = type_offsets;
  batch.paths = path.data();
  batch.path_offsets = path_offsets;
  const Json grid = entry.value("grid", Json::object());
  const std::vector<int64_t> shape = numbers_of(member(grid, "fragments"));
  const std::vector<int64_t> indices = numbers_of(member(grid, "index"));
  const uint64_t grid_offsets[] = {0, shape.size()};
  const int32_t replica_ids[] = {entry.value("replica", false) ? 1 : 0};
  batch.grid_shapes = shape.data();
  batch.grid_indices = indices.data();
  batch.grid_offsets = grid_offsets;
  batch.replica_ids = replica_ids;
  shw_error* error = nullptr;
  check(shw_state_add_objects(state, &batch, &error), &error);
}

void Interpreter::make_storage(const Json& step) {
  const bool memory = text_of(step, "kind") == "memory";
  storages_[text_of(step, "id")] =
      memory ? make<Storage>(shw_storage_create_memory) : failing_storage();
}

void Interpreter::save_or_load(const Json& step) {
  shw_state* state = states_.at(text_of(step, "state")).get();
  const std::string path = path_of(step);
  if (text_of(step, "op") == "save") {
    last_save_ = step;
    const SaveOptions options(member(step, "options"));
    make<Report>(shw_save, context_, state, storage_of(step), path.c_str(), nullptr,
                 &options.options);
  } else {
    const shw_load_options options = load_options(member(step, "options"));
    make<Report>(shw_load, context_, state, storage_of(step), path.c_str(), nullptr, &options);
  }
}

void Interpreter::start_job(const Json& step) {
  shw_state* state = states_.at(text_of(step, "state")).get();
  const std::string path = path_of(step);
  const std::string id = text_of(step, "id");
  if (text_of(step, "op") == "save_async") {
    last_save_ = step;
    const SaveOptions options(member(step, "options"));
    jobs_[id] = make<Job>(shw_save_async, context_, state, storage_of(step), path.c_str(), nullptr,
                          &options.options);
  } else {
    const shw_load_options options = load_options(member(step, "options"));
    jobs_[id] = make<Job>(shw_load_async, context_, state, storage_of(step), path.c_str(), nullptr,
                          &options);
  }
}

void Interpreter::expect_tensor(const Json& step) {
  const HostTensor& host = *tensors_.at(text_of(step, "id"));
  const Bytes found = host.strides.empty() ? host.bytes : reorder(host.bytes, host.shape, false);
  require(found == pattern_bytes(step, host.dtype, host.shape),
          "tensor " + text_of(step, "id") + " holds other bytes");
}

void Interpreter::check_digests(const Json& wanted) {
  if (!wanted.is_object()) return;
  // The scenario's last storage, if it made one, at that save's path.
  shw_storage* storage = storage_of(last_save_);
  const std::string path =
      storage != nullptr ? text_of(last_save_, "path") : (root_ / "p").string();
  const Checkpoint checkpoint =
      make<Checkpoint>(shw_checkpoint_open, context_, storage, path.c_str(), nullptr);
  for (const auto& [name, value] : wanted.items()) {
    require(digest(checkpoint.get(), name, -1, "xxh3") == text_of(value),
            "another digest of " + name);
  }
}

}  // namespace contract
