// SPDX-License-Identifier: Apache-2.0
//
// Structs as a careless host fills them, through the C interface: wrong sizes, dirty tails, NULL
// where an array belongs, unknown words, extents that overflow, offsets that go backwards. A
// pointer is NULL or an array of as many values as the struct says, because no library can check
// more. Each call gives a status of the table, an error with words and place whenever it fails, and
// leaves its out-parameters alone then. Tensors are described, not read.
#include <cstddef>
#include <cstdint>

#include <shardwright/shardwright.h>

#include "tests/capi/support/dlpack.h"
#include "tests/fuzz/careless_host.h"

namespace {

using namespace shardwright::fuzz;

shw_tensor tensor_of(Host* host) {
  shw_tensor tensor = SHW_TENSOR_INIT;
  tensor.flags = host->number<uint32_t>();
  tensor.data = host->source.rarely() ? nullptr : host->data.data();
  tensor.byte_offset = host->number<uint64_t>();
  tensor.byte_size = host->source.rarely() ? host->number<uint64_t>() : 0;
  tensor.device_type = host->source.rarely() ? host->number<int32_t>() : 1;
  tensor.device_id = host->source.rarely() ? host->number<int32_t>() : 0;
  tensor.dtype = host->source.rarely() ? host->number<int32_t>() : host->source.below(31);
  tensor.ndim = held_count(host);
  tensor.shape = host->values(&host->shape);
  tensor.strides = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->strides);
  tensor.reserved0 = host->source.rarely() ? 1 : 0;
  return tensor;
}

void give_tensor(Host* host) {
  shw_error* error = nullptr;
  const shw_tensor tensor = tensor_of(host);
  const shw_status status = shw_tensor_check(host->sized(&host->room, tensor), &error);
  check_outcome(status, error);
}

void give_layout(Host* host) {
  shw_layout_spec spec = SHW_LAYOUT_SPEC_INIT;
  shw_error* error = nullptr;
  shw_layout* layout = nullptr;
  spec.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  spec.mesh_ndim = held_count(host) % 4;
  spec.mesh_shape = host->values(&host->shape);
  spec.axis_names = host->source.byte() % 2 == 0 ? nullptr : kNames.data();
  spec.axis_name_offsets = host->offsets(&host->name_offsets, kNames.size());
  spec.rank_count = host->source.byte() % 2 == 0 ? 0 : host->source.below<uint64_t>(kMostValues);
  spec.ranks = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->places);
  spec.placement_kinds = host->values(&host->kinds);
  spec.placement_dims = host->values(&host->dtypes);
  const shw_status status = shw_layout_create(host->sized(&host->room, spec), &layout, &error);
  check((layout != nullptr) == (status == SHW_OK));
  check_outcome(status, error);
  shw_layout_release(layout);
}

const shw_megatron_api& megatron() {
  const void* functions = nullptr;
  check(shw_get_extension(SHW_MEGATRON_NAME, SHW_MEGATRON_VERSION, &functions, nullptr) == SHW_OK);
  return *static_cast<const shw_megatron_api*>(functions);
}

void give_grid(Host* host) {
  shw_grid_shard shard = SHW_GRID_SHARD_INIT;
  shw_error* error = nullptr;
  uint64_t count = 0;
  shard.flags = host->number<uint32_t>();
  shard.local_ndim = held_count(host) / 2;
  shard.prepended = host->source.rarely() ? host->number<int32_t>() : host->source.below(4);
  if (shard.prepended > 4) shard.prepended = 4;
  shard.local_shape = host->values(&host->shape);
  shard.global_shape = host->values(&host->strides);
  shard.offsets = host->values(&host->sizes);
  shard.fragments = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->fragments);
  shard.flat_begin = host->number<int64_t>();
  shard.flat_size = host->number<int64_t>();
  const shw_status status =
      megatron().grid_boxes(host->sized(&host->room, shard), nullptr, 0, &count, nullptr, &error);
  check_outcome(status, error);
}

void give_entries(Host* host) {
  shw_entry_batch batch = SHW_ENTRY_BATCH_INIT;
  shw_describe_options options = SHW_DESCRIBE_OPTIONS_INIT;
  shw_error* error = nullptr;
  shw_buffer* described = nullptr;
  batch.flags = host->source.rarely() ? host->number<uint32_t>() : 0;
  batch.count = host->source.below<uint64_t>(4);
  batch.names = host->source.rarely() ? nullptr : kNames.data();
  batch.name_offsets = host->offsets(&host->name_offsets, kNames.size());
  batch.dtypes = host->values(&host->dtypes);
  for (int32_t& dtype : host->dtypes) dtype = dtype % 2 == 0 ? SHW_FLOAT32 : dtype;
  batch.kinds = host->source.byte() % 2 == 0 ? nullptr : host->values(&host->kinds);
  batch.shapes = host->values(&host->shape);
  batch.shape_offsets = host->offsets(&host->shape_offsets, kMostValues);
  batch.box_ranges = host->source.byte() % 2 == 0 ? nullptr : host->offsets(&host->ranges, 3);
  batch.box_offsets = host->values(&host->strides);
  batch.box_sizes = host->values(&host->sizes);
  options.kind = host->number<int32_t>();
  // Boxes times dimensions must not pass the end of the arrays. Offsets that go backwards are
  // refused before.
  uint64_t values = 0;
  for (size_t i = 0; batch.shape_offsets != nullptr && i < batch.count; ++i) {
    const uint64_t ndim = host->shape_offsets[i + 1] - host->shape_offsets[i];
    const uint64_t boxes = batch.box_ranges == nullptr ? 1 : host->ranges[i + 1] - host->ranges[i];
    if (ndim <= kMostValues && boxes <= kMostValues) values += ndim * boxes;
  }
  if (values > kMostValues) return;
  const shw_status status =
      shw_plan_describe(&options, host->sized(&host->room, batch), &described, &error);
  check((described != nullptr) == (status == SHW_OK));
  check_outcome(status, error);
  if (status == SHW_OK) {
    shw_plan* plan = nullptr;
    error = nullptr;
    check(shw_plan_create(shw_buffer_data(described), shw_buffer_size(described), &plan, &error) ==
          SHW_OK);
    shw_plan_release(plan);
  }
  shw_buffer_release(described);
}

// What a producer of DLPack may hand over. On failure it stays the host's, on success it is given
// back once.
template <typename Managed, typename Add>
void give_dlpack(Host* host, Managed* managed, const Add& add) {
  static int released;
  released = 0;
  managed->deleter = [](Managed*) { ++released; };
  if (host->source.rarely()) managed->deleter = nullptr;
  DLTensor& tensor = managed->dl_tensor;
  tensor.data = host->source.rarely() ? nullptr : host->data.data();
  tensor.device_type = host->source.rarely() ? host->number<int32_t>() : 1;
  tensor.ndim = held_count(host);
  tensor.code = host->number<uint8_t>();
  tensor.bits = host->source.rarely() ? host->number<uint8_t>() : 32;
  tensor.lanes = host->source.rarely() ? host->number<uint16_t>() : 1;
  tensor.shape = const_cast<int64_t*>(host->values(&host->shape));
  tensor.strides =
      host->source.byte() % 2 == 0 ? nullptr : const_cast<int64_t*>(host->values(&host->strides));
  tensor.byte_offset = host->number<uint64_t>();
  shw_error* error = nullptr;
  shw_state* state = nullptr;
  check(shw_state_create(&state, &error) == SHW_OK);
  const uint64_t name_offsets[] = {0, 1};
  shw_tensor_batch batch = SHW_TENSOR_BATCH_INIT;
  batch.count = 1;
  batch.names = "w";
  batch.name_offsets = name_offsets;
  const shw_status status = add(state, host->sized(&host->room, batch), &managed, &error);
  check_outcome(status, error);
  check(released == 0);
  shw_state_release(state);
  check(released == (status == SHW_OK && managed->deleter != nullptr ? 1 : 0));
}

void give_versioned(Host* host) {
  DLManagedTensorVersioned managed{};
  managed.major = host->source.rarely() ? host->number<uint32_t>() : 1;
  managed.flags = host->source.rarely() ? host->number<uint64_t>() : 0;
  give_dlpack(host, &managed, shw_state_add_dlpack);
}

void give_legacy(Host* host) {
  DLManagedTensor managed{};
  give_dlpack(host, &managed, shw_state_add_dlpack_legacy);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Host host({reinterpret_cast<const std::byte*>(data), size});
  switch (host.source.below(6)) {
    case 0:
      give_tensor(&host);
      break;
    case 1:
      give_layout(&host);
      break;
    case 2:
      give_grid(&host);
      break;
    case 3:
      give_entries(&host);
      break;
    case 4:
      give_versioned(&host);
      break;
    default:
      give_legacy(&host);
  }
  return 0;
}
