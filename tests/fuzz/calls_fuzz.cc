// SPDX-License-Identifier: Apache-2.0
//
// Options and batches of whole calls as a careless host fills them: saves and loads with any
// options, batches of tensors with boxes and of objects, reads of boxes. Each call gives a status
// of the table; what a load or a read may not fill stays as it was.
#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/careless_host.h"

namespace {

using namespace shardwright::fuzz;

constexpr std::array<int64_t, 2> kShape = {2, 3};
constexpr std::array<uint64_t, 2> kNameOffsets = {0, 1};

shw_tensor sound_tensor(float* data) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.data = data;
  tensor.byte_size = 6 * sizeof(float);
  tensor.device_type = 1;
  tensor.dtype = SHW_FLOAT32;
  tensor.ndim = 2;
  tensor.shape = kShape.data();
  return tensor;
}

// One tensor "w" over this memory.
shw_state* state_of(float* data) {
  shw_error* error = nullptr;
  shw_state* state = nullptr;
  check(shw_state_create(&state, &error) == SHW_OK);
  const shw_tensor tensor = sound_tensor(data);
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = kNameOffsets.data();
  batch.tensors = &tensor;
  check(shw_state_add_tensors(state, &batch, &error) == SHW_OK);
  return state;
}

// What all inputs use: a checkpoint of the tensor "w" in memory.
struct Place {
  shw_context* context = nullptr;
  shw_storage* storage = nullptr;
  shw_checkpoint* checkpoint = nullptr;

  Place() {
    std::array<float, 6> stored = {1, 2, 3, 4, 5, 6};
    shw_context_options options = SHW_CONTEXT_OPTIONS_INIT;
    options.threads = 1;
    shw_error* error = nullptr;
    shw_report* report = nullptr;
    check(shw_context_create(&options, &context, &error) == SHW_OK);
    check(shw_storage_create_memory(&storage, &error) == SHW_OK);
    shw_state* state = state_of(stored.data());
    check(shw_save(context, state, storage, "c", nullptr, nullptr, &report, &error) == SHW_OK);
    check(shw_checkpoint_open(context, storage, "c", nullptr, &checkpoint, &error) == SHW_OK);
    shw_report_release(report);
    shw_state_release(state);
  }
};

const Place& place() {
  static const Place made;
  return made;
}

// A word of an option: mostly one that there is.
int32_t word(Host* host) {
  if (host->source.rarely()) return host->number<int32_t>();
  const int32_t choice = host->source.below(8);
  return choice < 7 ? choice % 2 : 2;
}

void give_save_options(Host* host) {
  shw_save_options options = SHW_SAVE_OPTIONS_INIT;
  options.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  options.overwrite = word(host) % 2;
  options.durability = word(host);
  options.digests = word(host);
  options.owner = word(host);
  options.verify_replicas = word(host);
  options.format = word(host);
  options.preset = word(host);
  options.threads = host->source.rarely() ? host->number<uint32_t>() : 0;
  options.file_mode = host->number<uint32_t>();
  options.keep_generations = host->number<uint32_t>();
  options.memory_budget = host->source.rarely() ? host->number<uint64_t>() : 0;
  options.deadline_ns = host->source.rarely() ? host->number<int64_t>() : 0;
  options.kind_globs = host->source.rarely() ? nullptr : kNames.data();
  options.kind_offsets = host->offsets(&host->name_offsets, kNames.size());
  options.kind_values = host->values(&host->kinds);
  options.kind_count = host->source.below<uint64_t>(4);
  options.metadata = host->source.rarely() ? nullptr : kNames.data();
  options.metadata_offsets = host->offsets(&host->shape_offsets, kNames.size());
  options.metadata_count = host->source.below<uint64_t>(4);
  shw_error* error = nullptr;
  shw_report* report = nullptr;
  shw_state* state = state_of(host->data.data());
  const shw_status status = shw_save(place().context, state, place().storage, "s", nullptr,
                                     host->sized(&host->room, options), &report, &error);
  check((report != nullptr) == (status == SHW_OK));
  check_outcome(status, error);
  shw_report_release(report);
  shw_state_release(state);
}

void give_load_options(Host* host) {
  shw_load_options options = SHW_LOAD_OPTIONS_INIT;
  options.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  options.missing = word(host);
  options.unexpected = word(host);
  options.cast = word(host);
  options.verify = word(host);
  options.format = word(host);
  options.preset = word(host);
  options.shape = word(host);
  options.threads = host->source.rarely() ? host->number<uint32_t>() : 0;
  options.memory_budget = host->source.rarely() ? host->number<uint64_t>() : 0;
  options.deadline_ns = host->source.rarely() ? host->number<int64_t>() : 0;
  options.strict_globs = host->source.rarely() ? nullptr : kNames.data();
  options.strict_offsets = host->offsets(&host->name_offsets, kNames.size());
  options.strict_rules = host->values(&host->kinds);
  options.strict_shapes = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->dtypes);
  options.strict_count = host->source.below<uint64_t>(4);
  shw_error* error = nullptr;
  shw_report* report = nullptr;
  host->data.fill(-1);
  shw_state* state = state_of(host->data.data());
  const shw_status status = shw_load(place().context, state, place().storage, "c", nullptr,
                                     host->sized(&host->room, options), &report, &error);
  check((report != nullptr) == (status == SHW_OK));
  check(host->data[0] == (status == SHW_OK ? 1 : host->data[0]) && host->data[6] == -1);
  check_outcome(status, error);
  shw_report_release(report);
  shw_state_release(state);
}

// Boxes times dimensions must not pass the end of the arrays. Offsets that go backwards are refused
// before.
bool boxes_fit(const Host& host, bool has_ranges) {
  const uint64_t ndim = host.shape_offsets[1] - host.shape_offsets[0];
  const uint64_t boxes = has_ranges ? host.ranges[1] - host.ranges[0] : 1;
  return ndim > kMostValues || boxes > kMostValues || ndim * boxes <= kMostValues;
}

void give_tensors(Host* host) {
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  const shw_tensor tensor = sound_tensor(host->data.data());
  batch.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  batch.count = host->source.below<uint64_t>(2);
  batch.names = host->source.rarely() ? nullptr : kNames.data();
  batch.name_offsets = host->offsets(&host->name_offsets, kNames.size());
  batch.tensors = host->source.rarely() ? nullptr : &tensor;
  batch.global_shapes = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->shape);
  batch.global_shape_offsets = host->offsets(&host->shape_offsets, kMostValues);
  batch.box_ranges = host->source.byte() % 2 == 0 ? nullptr : host->offsets(&host->ranges, 3);
  batch.box_offsets = host->values(&host->strides);
  batch.box_sizes = host->values(&host->sizes);
  batch.local_offsets = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->fragments);
  batch.paths = host->source.byte() % 2 == 0 ? nullptr : "[\"a\"][\"b\",0]";
  batch.path_offsets = host->offsets(&host->numbers, 12);
  batch.kinds = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->kinds);
  batch.rank = host->number<int32_t>();
  if (!boxes_fit(*host, batch.box_ranges != nullptr)) return;
  shw_error* error = nullptr;
  shw_state* state = nullptr;
  check(shw_state_create(&state, &error) == SHW_OK);
  const shw_status status = shw_state_add_tensors(state, host->sized(&host->room, batch), &error);
  check_outcome(status, error);
  shw_state_release(state);
}

void give_objects(Host* host) {
  shw_object_batch batch = SHW_OBJECT_BATCH_INIT;
  batch.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  batch.count = host->source.below<uint64_t>(4);
  batch.names = host->source.rarely() ? nullptr : kNames.data();
  batch.name_offsets = host->offsets(&host->name_offsets, kNames.size());
  batch.data = host->source.rarely() ? nullptr : host->data.data();
  batch.data_offsets = host->offsets(&host->ranges, sizeof(host->data));
  batch.content_types = host->source.byte() % 2 == 0 ? nullptr : kNames.data();
  batch.content_type_offsets = host->offsets(&host->shape_offsets, kNames.size());
  batch.paths = host->source.byte() % 2 == 0 ? nullptr : "[\"a\"][\"b\",0]";
  batch.path_offsets = host->offsets(&host->numbers, 12);
  batch.kinds = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->kinds);
  shw_error* error = nullptr;
  shw_state* state = nullptr;
  check(shw_state_create(&state, &error) == SHW_OK);
  const shw_status status = shw_state_add_objects(state, host->sized(&host->room, batch), &error);
  check_outcome(status, error);
  shw_state_release(state);
}

void read_boxes(Host* host) {
  std::array<shw_tensor, 2> targets;
  shw_box_batch batch = SHW_BOX_BATCH_INIT;
  host->data.fill(-1);
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i] = sound_tensor(host->data.data() + 8 * i);
    targets[i].shape = host->values(&host->shape);
    targets[i].flags = host->source.rarely() ? SHW_TENSOR_READ_ONLY : 0;
  }
  batch.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  batch.count = host->source.below<uint64_t>(3);
  batch.tensors = host->source.rarely() ? nullptr : host->numbers.data();
  for (uint64_t& number : host->numbers)
    number = host->source.rarely() ? host->number<uint64_t>() : 0;
  batch.targets = host->source.rarely() ? nullptr : targets.data();
  batch.box_offsets = host->source.byte() % 3 == 0 ? nullptr : host->values(&host->strides);
  batch.box_sizes = host->source.byte() % 3 == 0 ? nullptr : host->values(&host->sizes);
  shw_error* error = nullptr;
  shw_report* report = nullptr;
  const shw_status status = shw_checkpoint_read_boxes(
      place().checkpoint, host->sized(&host->room, batch), &report, &error);
  check((report != nullptr) == (status == SHW_OK));
  check(host->data[6] == -1 && host->data[14] == -1);
  check_outcome(status, error);
  shw_report_release(report);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Host host({reinterpret_cast<const std::byte*>(data), size});
  static constexpr std::array kCalls = {give_save_options, give_load_options, give_tensors,
                                        give_objects, read_boxes};
  kCalls[host.source.below(kCalls.size())](&host);
  return 0;
}
