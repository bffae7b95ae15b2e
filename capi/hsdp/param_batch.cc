// SPDX-License-Identifier: Apache-2.0
#include "capi/hsdp/param_batch.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/tensor_argument.h"
#include "core/base/limits.h"
#include "core/device/devices.h"
#include "core/tensor/tensor_view.h"

namespace shardwright::capi {
namespace {

constexpr uint32_t kParamFlags =
    SHW_HSDP_PARAM_FROZEN | SHW_HSDP_PARAM_REPLICATE | SHW_HSDP_PARAM_IGNORE;

// The arrays of a batch, checked.
struct Columns {
  TextArray names;
  std::span<const shw_tensor> tensors;
  std::span<const int32_t> shard_dims;
  std::span<const uint32_t> flags;
  TextArray aliases;
  std::span<const uint64_t> alias_ranges;
};

Status read_aliases(const shw_hsdp_param_batch& batch, Columns* columns) {
  if (batch.alias_ranges == nullptr) return {};
  columns->alias_ranges = {batch.alias_ranges, batch.count + 1};
  for (uint64_t each = 0; each < batch.count; ++each) {
    if (columns->alias_ranges[each] <= columns->alias_ranges[each + 1]) continue;
    return bad_argument("alias_ranges", fmt::format("it does not ascend at {}", each));
  }
  if (columns->alias_ranges.front() != 0)
    return bad_argument("alias_ranges", "it does not begin with 0");
  SHW_ASSIGN_OR_RETURN(columns->aliases,
                       text_list_argument(batch.aliases, batch.alias_offsets,
                                          columns->alias_ranges.back(), "aliases"));
  return {};
}

Result<Columns> read_columns(const shw_hsdp_param_batch& batch) {
  Columns columns;
  SHW_ASSIGN_OR_RETURN(columns.names,
                       text_list_argument(batch.names, batch.name_offsets, batch.count, "names"));
  SHW_ASSIGN_OR_RETURN(columns.tensors, list_argument(batch.tensors, batch.count, "tensors"));
  if (batch.shard_dims != nullptr) columns.shard_dims = {batch.shard_dims, batch.count};
  if (batch.param_flags != nullptr) columns.flags = {batch.param_flags, batch.count};
  SHW_RETURN_IF_ERROR(read_aliases(batch, &columns));
  return columns;
}

// Shape and dtype of a tensor that may have no data.
Result<hsdp::ParameterSpec> read_spec(const shw_tensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > kMaxTensorRank)
    return bad_argument("tensors",
                        fmt::format("ndim is {}, not 0 to {}", tensor.ndim, kMaxTensorRank));
  hsdp::ParameterSpec spec;
  SHW_ASSIGN_OR_RETURN(const auto shape,
                       list_argument(tensor.shape, static_cast<uint64_t>(tensor.ndim), "shape"));
  spec.shape = Dims(shape);
  if (tensor.dtype <= 0 || !dtype_is_valid(static_cast<DType>(tensor.dtype)))
    return bad_argument("tensors", fmt::format("{} is no dtype", tensor.dtype));
  spec.dtype = static_cast<DType>(tensor.dtype);
  return spec;
}

Result<hsdp::ParameterInput> read_param(const Columns& columns, uint64_t index,
                                        const device::LaneDevice& device) {
  shw_tensor tensor;
  SHW_RETURN_IF_ERROR(read_element(columns.tensors.data(), index, "tensors", &tensor));
  hsdp::ParameterInput input;
  SHW_ASSIGN_OR_RETURN(input.spec, read_spec(tensor));
  if (tensor.data != nullptr) {
    SHW_ASSIGN_OR_RETURN(const GivenTensor full, read_tensor(tensor, device, "tensors"));
    input.full = full.bytes;
    input.on_device = full.on_device;
  }
  input.spec.fqn = columns.names.at(index);
  if (!columns.shard_dims.empty()) input.spec.shard_dim = columns.shard_dims[index];
  if (!columns.flags.empty()) {
    input.spec.frozen = (columns.flags[index] & SHW_HSDP_PARAM_FROZEN) != 0;
    input.spec.replicate = (columns.flags[index] & SHW_HSDP_PARAM_REPLICATE) != 0;
  }
  if (!columns.alias_ranges.empty())
    for (uint64_t each = columns.alias_ranges[index]; each < columns.alias_ranges[index + 1];
         ++each)
      input.spec.aliases.emplace_back(columns.aliases.at(each));
  return input;
}

bool lies_on(const TensorSpan& tensor, const device::LaneDevice& device) {
  const device::DeviceNumber number = device.number();
  return !device.is_host() && tensor.device_type == number.type && tensor.device_id == number.id;
}

Status elsewhere(const TensorSpan& tensor, const device::LaneDevice& device) {
  const device::DeviceNumber number = device.number();
  return unimplemented(
             fmt::format("the tensor lies on {}, and the context has its memory on {}: copy it "
                         "there or to host memory",
                         device::device_text(tensor.device_type, tensor.device_id),
                         device::device_text(number.type, number.id)))
      .with_detail("plugin", "device");
}

Result<DType> option_dtype(int32_t value, const char* option) {
  if (value == 0) return DType::kInvalid;
  const bool known = value > 0 && value <= SHW_UINT4 && dtype_is_valid(static_cast<DType>(value));
  if (!known) return bad_argument("options", fmt::format("{} is {}, no dtype", option, value));
  return static_cast<DType>(value);
}

}  // namespace

Result<UnitDescription> read_unit_options(const shw_hsdp_unit_options* given) {
  shw_hsdp_unit_options copy;
  SHW_RETURN_IF_ERROR(read_options(given, "options", &copy));
  UnitDescription description;
  hsdp::UnitOptions& options = description.options;
  SHW_ASSIGN_OR_RETURN(options.parameter_dtype, option_dtype(copy.param_dtype, "param_dtype"));
  SHW_ASSIGN_OR_RETURN(options.reduce_dtype, option_dtype(copy.reduce_dtype, "reduce_dtype"));
  SHW_ASSIGN_OR_RETURN(options.output_dtype, option_dtype(copy.output_dtype, "output_dtype"));
  SHW_ASSIGN_OR_RETURN(options.gradient_dtype, option_dtype(copy.grad_dtype, "grad_dtype"));
  SHW_RETURN_IF_ERROR(option_in_range(copy.layout, SHW_HSDP_LAYOUT_RAGGED, "layout"));
  SHW_RETURN_IF_ERROR(option_in_range(copy.reshard_after_forward, SHW_HSDP_RESHARD_SECONDARY,
                                      "reshard_after_forward"));
  SHW_RETURN_IF_ERROR(option_in_range(copy.unused, SHW_HSDP_UNUSED_SKIP, "unused"));
  options.layout_mode = static_cast<hsdp::LayoutMode>(copy.layout);
  options.offload = (copy.flags & SHW_HSDP_UNIT_OFFLOAD) != 0;
  description.host_memory = (copy.flags & SHW_HSDP_UNIT_HOST_MEMORY) != 0;
  hsdp::UnitSettings& settings = description.settings;
  settings.reshard_after_forward = static_cast<hsdp::ReshardPolicy>(copy.reshard_after_forward);
  if (copy.secondary_size < 0 || copy.secondary_size > INT32_MAX)
    return bad_argument("options", fmt::format("secondary_size is {}", copy.secondary_size));
  settings.secondary_size = static_cast<int32_t>(copy.secondary_size);
  settings.unused = static_cast<hsdp::UnusedPolicy>(copy.unused);
  return description;
}

Result<std::vector<hsdp::ParameterInput>> read_param_batch(
    const shw_hsdp_param_batch& batch, std::span<const std::shared_ptr<const void>> owners,
    const device::LaneDevice& device) {
  SHW_ASSIGN_OR_RETURN(const Columns columns, read_columns(batch));
  std::vector<hsdp::ParameterInput> inputs;
  for (uint64_t index = 0; index < batch.count; ++index) {
    const uint32_t flags = columns.flags.empty() ? 0 : columns.flags[index];
    if ((flags & ~kParamFlags) != 0)
      return unimplemented(fmt::format("param_flags[{}] has unknown bits ({})", index, flags));
    if ((flags & SHW_HSDP_PARAM_IGNORE) != 0) continue;
    auto input = read_param(columns, index, device);
    if (!input.ok())
      return input.status().annotated(
          fmt::format("parameter '{}' (entry {})", columns.names.at(index), index));
    if (!owners.empty()) input->owner = owners[index];
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

Result<GivenTensor> read_tensor(const shw_tensor& tensor, const device::LaneDevice& device,
                                const char* parameter) {
  SHW_ASSIGN_OR_RETURN(const TensorSpan span, span_of_tensor(tensor));
  const bool on_device = lies_on(span, device);
  if (!on_device && !device_is_host_accessible(span.device_type)) return elsewhere(span, device);
  // Work of a stream may still write it, and nothing here waits for a stream.
  if (on_device && span.stream != 0)
    return unimplemented(fmt::format(
        "stream is {}: streams of '{}' are not waited for, wait for what writes the tensor and "
        "give 0",
        span.stream, device.name()));
  if (!span.is_contiguous()) return bad_argument(parameter, "the tensor is not contiguous");
  const uint64_t bytes = shw_dtype_byte_size(static_cast<int32_t>(span.dtype),
                                             static_cast<uint64_t>(span.element_count()));
  return GivenTensor{span.dtype, {span.data, bytes}, on_device};
}

template <typename T>
Result<ImportedTensors<T>> import_tensors(T* const* managed, uint64_t count) {
  SHW_RETURN_IF_ERROR(need_pointer(managed, "managed"));
  SHW_ASSIGN_OR_RETURN(const auto list, list_argument(managed, count, "managed"));
  ImportedTensors<T> imported;
  for (size_t each = 0; each < list.size(); ++each) {
    auto tensor = describe_dlpack(list[each]);
    if (!tensor.ok()) return tensor.status().annotated(fmt::format("managed[{}]", each));
    imported.described.push_back(*tensor);
    auto owner = std::make_shared<DLPackOwner<T>>(std::vector<T*>{list[each]});
    imported.owners.push_back(owner);
    imported.armed_later.push_back(std::move(owner));
  }
  return imported;
}

template Result<ImportedTensors<DLManagedTensor>> import_tensors(DLManagedTensor* const* managed,
                                                                 uint64_t count);
template Result<ImportedTensors<DLManagedTensorVersioned>> import_tensors(
    DLManagedTensorVersioned* const* managed, uint64_t count);

}  // namespace shardwright::capi
