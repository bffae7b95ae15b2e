// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_entries.h, the part that reads payload: boxes into memory of the caller or of the
// library, objects, digests.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/tensor_argument.h"
#include "capi/call_options.h"
#include "capi/owned_tensor.h"
#include "core/base/text.h"
#include "core/format/describe_object.h"
#include "shardwright/checkpoint_entries.h"

namespace shardwright::capi {
namespace {

Status check_tensor_number(const plan::Catalog& catalog, uint64_t tensor) {
  if (tensor < catalog.tensors.size()) return {};
  return out_of_range(fmt::format("the checkpoint has {} tensors, there is no number {}",
                                  catalog.tensors.size(), tensor));
}

// Box of a tensor with these values; both NULL = the whole tensor.
Result<Box> read_box(const plan::Catalog& catalog, size_t tensor, const int64_t* offsets,
                     const int64_t* sizes) {
  const std::span<const int64_t> shape = catalog.shape(tensor);
  if (offsets == nullptr && sizes == nullptr) return whole_box(shape);
  Box box;
  if (!shape.empty()) {
    SHW_RETURN_IF_ERROR(need_pointer(offsets, "box_offsets"));
    SHW_RETURN_IF_ERROR(need_pointer(sizes, "box_sizes"));
    box.offsets = Dims({offsets, shape.size()});
    box.sizes = Dims({sizes, shape.size()});
  }
  const std::string_view name = catalog.tensor_name(tensor);
  Status inside = check_box(box, shape);
  if (inside.ok()) return box;
  return std::move(inside)
      .with_detail("tensor", name)
      .with_detail("box", box_text(box))
      .annotated(
          fmt::format("cannot read box {} of tensor '{}'", box_text(box), escape_text(name)));
}

Status check_target(const plan::Catalog& catalog, const exec::BoxRead& read) {
  const plan::TensorRecord& record = catalog.tensors[read.tensor];
  const std::string_view name = catalog.tensor_name(read.tensor);
  if (read.target.read_only) {
    return invalid_argument(fmt::format("the target of '{}' is read-only", escape_text(name)));
  }
  if (read.target.dtype != record.dtype) {
    return invalid_argument(fmt::format("'{}' is stored as {}, the target is {}", escape_text(name),
                                        dtype_name(record.dtype), dtype_name(read.target.dtype)))
        .with_detail("expected", dtype_name(record.dtype))
        .with_detail("found", dtype_name(read.target.dtype));
  }
  if (!(read.target.shape == read.box.sizes)) {
    return invalid_argument(fmt::format("the target of '{}' has shape [{}], its box has [{}]",
                                        escape_text(name), fmt::join(read.target.shape, ", "),
                                        fmt::join(read.box.sizes, ", ")))
        .with_detail("tensor", name);
  }
  return {};
}

Result<std::vector<exec::BoxRead>> read_box_batch(const CheckpointImpl& impl,
                                                  const shw_box_batch& batch) {
  const plan::Catalog& catalog = impl.checkpoint->catalog();
  SHW_ASSIGN_OR_RETURN(const auto tensors, list_argument(batch.tensors, batch.count, "tensors"));
  if (batch.count != 0) {
    SHW_RETURN_IF_ERROR(need_pointer(batch.targets, "targets"));
    SHW_RETURN_IF_ERROR(
        check_struct_size(batch.targets->struct_size, rules_of<shw_tensor>(), "targets"));
  }
  const bool whole = batch.box_offsets == nullptr && batch.box_sizes == nullptr;
  uint64_t value = 0;  // where the next box begins
  std::vector<exec::BoxRead> reads;
  reads.reserve(batch.count);
  for (uint64_t i = 0; i < batch.count; ++i) {
    exec::BoxRead read;
    SHW_RETURN_IF_ERROR(check_tensor_number(catalog, tensors[i]));
    read.tensor = tensors[i];
    SHW_ASSIGN_OR_RETURN(read.box, whole ? read_box(catalog, tensors[i], nullptr, nullptr)
                                         : read_box(catalog, tensors[i], batch.box_offsets + value,
                                                    batch.box_sizes + value));
    value += catalog.shape(read.tensor).size();
    shw_tensor target;
    SHW_RETURN_IF_ERROR(read_element(batch.targets, i, "targets", &target));
    SHW_ASSIGN_OR_RETURN(const TensorSpan memory, host_span_of_tensor(target));
    read.target = view_of(memory);
    SHW_RETURN_IF_ERROR(check_target(catalog, read));
    reads.push_back(std::move(read));
  }
  return reads;
}

exec::Report read_report(const CheckpointImpl& impl, const exec::ReadOutcome& outcome,
                         size_t count) {
  exec::Report report;
  report.operation = "read";
  report.format = impl.format;
  report.generation = impl.generation;
  report.verify = impl.reading.verify == exec::VerifyRule::kOff ? "off" : "on_read";
  report.tensors = count;
  report.files = impl.checkpoint->opened().files().size();
  report.bytes_total = impl.payload_bytes;
  report.bytes_read = outcome.bytes_read;
  report.bytes_over_read = outcome.bytes_over_read;
  report.bytes_cached = outcome.bytes_cached;
  report.bytes_unverified = outcome.bytes_unverified;
  return report;
}

// 0, 1, ... when no numbers are given.
Result<std::vector<uint64_t>> read_indices(const uint64_t* indices, uint64_t count, uint64_t total,
                                           const char* noun) {
  if (indices == nullptr && count > total) {
    return out_of_range(fmt::format("the checkpoint has {} {}, not {}", total, noun, count));
  }
  std::vector<uint64_t> made(count);
  for (uint64_t i = 0; i < count; ++i) {
    made[i] = indices == nullptr ? i : indices[i];
    if (made[i] >= total) {
      return out_of_range(
          fmt::format("the checkpoint has {} {}, there is no number {}", total, noun, made[i]));
    }
  }
  return made;
}

Result<shw_buffer*> texts_buffer(const std::vector<std::string>& texts) {
  const std::vector<std::string_view> parts(texts.begin(), texts.end());
  return buffer_of_parts(parts);
}

Result<shw_buffer*> bytes_buffer(const std::vector<std::vector<std::byte>>& list) {
  std::vector<std::string_view> parts;
  parts.reserve(list.size());
  for (const auto& bytes : list) {
    parts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return buffer_of_parts(parts);
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
using shardwright::Status;

extern "C" {

shw_status shw_checkpoint_read_objects(const shw_checkpoint* checkpoint, const uint64_t* indices,
                                       uint64_t count, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const uint64_t total = impl->checkpoint->catalog().objects.size();
    SHW_ASSIGN_OR_RETURN(const auto list, capi::read_indices(indices, count, total, "objects"));
    std::vector<std::vector<std::byte>> objects;
    objects.reserve(list.size());
    for (const uint64_t index : list) {
      SHW_ASSIGN_OR_RETURN(auto bytes, impl->checkpoint->read_object(index, impl->reading));
      objects.push_back(std::move(bytes));
    }
    SHW_ASSIGN_OR_RETURN(*out, capi::bytes_buffer(objects));
    return {};
  });
}

shw_status shw_checkpoint_describe_object(const shw_checkpoint* checkpoint, uint64_t index,
                                          shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto bytes, impl->checkpoint->read_object(index, impl->reading));
    const auto& catalog = impl->checkpoint->catalog();
    SHW_ASSIGN_OR_RETURN(const std::string described,
                         shardwright::format::describe_object(
                             bytes, catalog.texts.at(catalog.objects[index].content_type),
                             catalog.object_name(index)));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(described));
    return {};
  });
}

shw_status shw_checkpoint_read_object_part(const shw_checkpoint* checkpoint, uint64_t index,
                                           uint64_t offset, uint64_t size, shw_buffer** out,
                                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const auto& objects = impl->checkpoint->catalog().objects;
    const uint64_t end = index < objects.size() ? objects[index].size_bytes : 0;
    std::vector<std::vector<std::byte>> part(1);
    part[0].resize(std::min(size, end - std::min(offset, end)));
    SHW_RETURN_IF_ERROR(impl->checkpoint->read_object_part(index, offset, part[0], impl->reading,
                                                           capi::call_on(*impl)));
    SHW_ASSIGN_OR_RETURN(*out, capi::bytes_buffer(part));
    return {};
  });
}

shw_status shw_checkpoint_read_boxes(const shw_checkpoint* checkpoint, const shw_box_batch* batch,
                                     shw_report** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_box_batch copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(batch, "batch", &copy));
    SHW_ASSIGN_OR_RETURN(const auto reads, capi::read_box_batch(*impl, copy));
    SHW_ASSIGN_OR_RETURN(const auto outcome,
                         impl->checkpoint->read_boxes(reads, impl->reading, capi::call_on(*impl)));
    *out = capi::report_of(capi::read_report(*impl, outcome, reads.size()));
    return {};
  });
}

shw_status shw_checkpoint_read_tensor(const shw_checkpoint* checkpoint, uint64_t index,
                                      const int64_t* box_offsets, const int64_t* box_sizes,
                                      int32_t ndim, shw_owned_tensor** out,
                                      shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    const auto& catalog = impl->checkpoint->catalog();
    SHW_RETURN_IF_ERROR(capi::check_tensor_number(catalog, index));
    const auto shape = catalog.shape(index);
    if (ndim < 0 || static_cast<size_t>(ndim) != shape.size()) {
      return capi::bad_argument(
          "ndim", fmt::format("{} given, the tensor has {} dimensions", ndim, shape.size()));
    }
    exec::BoxRead read;
    read.tensor = index;
    SHW_ASSIGN_OR_RETURN(read.box, capi::read_box(catalog, index, box_offsets, box_sizes));
    SHW_ASSIGN_OR_RETURN(auto owned,
                         capi::make_owned_tensor(catalog.tensors[index].dtype, read.box.sizes));
    read.target = owned->view;
    SHW_RETURN_IF_ERROR(
        impl->checkpoint->read_boxes({&read, 1}, impl->reading, capi::call_on(*impl)).status());
    *out = capi::make_handle<shw_owned_tensor>(std::move(owned));
    return {};
  });
}

shw_status shw_checkpoint_digests(const shw_checkpoint* checkpoint, const uint64_t* indices,
                                  uint64_t count, int32_t algorithm, shw_buffer** out,
                                  shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(checkpoint, "checkpoint"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_RETURN_IF_ERROR(capi::option_in_range(algorithm, SHW_DIGEST_SHA256, "algorithm"));
    const uint64_t total = impl->checkpoint->catalog().tensors.size();
    SHW_ASSIGN_OR_RETURN(const auto list, capi::read_indices(indices, count, total, "tensors"));
    std::vector<std::string> digests;
    digests.reserve(list.size());
    for (const uint64_t index : list) {
      SHW_ASSIGN_OR_RETURN(
          const auto digest,
          impl->checkpoint->tensor_digest(
              index, static_cast<shardwright::integrity::TensorDigestAlgorithm>(algorithm),
              capi::call_on(*impl)));
      digests.push_back(shardwright::to_hex(digest));
    }
    SHW_ASSIGN_OR_RETURN(*out, capi::texts_buffer(digests));
    return {};
  });
}

}  // extern "C"
