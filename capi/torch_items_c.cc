// SPDX-License-Identifier: Apache-2.0
//
// torch_items.h: files of items, and digests of an index that a host makes.
#include "shardwright/torch_items.h"

#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "capi/call_options.h"
#include "capi/declined_call.h"
#include "core/exec/write_alone.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/write_digests.h"

namespace shardwright::capi {
namespace {

namespace torch_dcp = format::torch_dcp;

constexpr std::string_view kFormat = "torch-dcp";

Result<exec::FileOfRank> read_file_name(const char* name) {
  SHW_RETURN_IF_ERROR(need_pointer(name, "name"));
  const auto file = torch_dcp::parse_data_file_name(name);
  if (file.has_value())
    return exec::FileOfRank{file->rank, file->number, std::string(file->generation),
                            std::string(file->hint)};
  return bad_argument("name",
                      "it is not of the form [TEXT]__RANK_NUMBER.GENERATION.distcp, with a "
                      "generation of 32 lower-case hex digits");
}

// {entry, offset, length} of each item, in the order in which write_alone writes.
std::vector<uint64_t> places_of(const State& state, const torch_dcp::WrittenItems& written) {
  std::vector<uint64_t> places;
  places.reserve(3 * written.items.size());
  size_t item = 0;
  const auto add = [&](uint64_t entry) {
    places.insert(places.end(),
                  {entry, written.items[item].offset, written.items[item].size_bytes});
    ++item;
  };
  for (size_t t = 0; t < state.tensors().size(); ++t) {
    for (size_t p = 0; p < state.tensors()[t].pieces.size(); ++p) add(t);
  }
  for (size_t o = 0; o < state.objects().size(); ++o) add(state.tensors().size() + o);
  return places;
}

Result<std::vector<torch_dcp::WrittenFile>> read_written(const void* results,
                                                         const uint64_t* offsets, uint64_t count) {
  SHW_ASSIGN_OR_RETURN(const auto list, text_list_argument(results, offsets, count, "results"));
  std::vector<torch_dcp::WrittenFile> files;
  files.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    auto file = torch_dcp::decode_written_file(
        std::as_bytes(std::span(list.at(i).data(), list.at(i).size())));
    if (!file.ok()) return bad_argument("results", std::string(file.status().message()));
    files.push_back(std::move(*file));
  }
  return files;
}

}  // namespace
}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace exec = shardwright::exec;
namespace torch_dcp = shardwright::format::torch_dcp;
using shardwright::Status;

extern "C" {

shw_status shw_torch_items_write(shw_context* context, const shw_state* state, shw_storage* storage,
                                 const char* path, const char* name,
                                 const shw_save_options* options, shw_buffer** out,
                                 shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    capi::CallRuntime runtime;
    SHW_ASSIGN_OR_RETURN(runtime.context, capi::need(context, "context"));
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(state, "state"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_ASSIGN_OR_RETURN(const auto file, capi::read_file_name(name));
    shw_save_options given;
    SHW_RETURN_IF_ERROR(capi::read_options(options, "options", &given));
    SHW_ASSIGN_OR_RETURN(auto how, capi::read_save_options(given));
    how.format = capi::kFormat;
    SHW_ASSIGN_OR_RETURN(const auto cancellation, capi::read_cancellation(given.cancellation));
    SHW_ASSIGN_OR_RETURN(runtime.own,
                         runtime.context->call_runtime(given.threads, given.memory_budget));
    const auto call = capi::call_context(given.deadline_ns, cancellation.get());
    SHW_ASSIGN_OR_RETURN(const auto result,
                         exec::write_alone(runtime.get(), impl->state, file, location, how, call));
    torch_dcp::WrittenFile written;
    written.name = name;
    if (!result.details.empty()) {
      SHW_ASSIGN_OR_RETURN(written.written, torch_dcp::decode_details(result.details));
    }
    const std::vector<uint64_t> places = capi::places_of(*impl->state, written.written);
    const auto bytes = torch_dcp::encode_written_file(written);
    const std::string_view parts[] = {
        {reinterpret_cast<const char*>(places.data()), places.size() * sizeof(uint64_t)},
        {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(parts));
    return {};
  });
}

shw_status shw_torch_digests_write(shw_context* context, shw_storage* storage, const char* path,
                                   const void* data, uint64_t size, const void* results,
                                   const uint64_t* result_offsets, uint64_t result_count,
                                   const shw_save_options* options, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need(context, "context").status());
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(storage, path, "path"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(data, "data"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(result_offsets, "result_offsets"));
    shw_save_options given;
    SHW_RETURN_IF_ERROR(capi::read_options(options, "options", &given));
    SHW_ASSIGN_OR_RETURN(const auto how, capi::read_save_options(given));
    SHW_ASSIGN_OR_RETURN(const auto files,
                         capi::read_written(results, result_offsets, result_count));
    const std::span index(static_cast<const std::byte*>(data), static_cast<size_t>(size));
    SHW_ASSIGN_OR_RETURN(
        const auto sidecar,
        torch_dcp::make_sidecar(index, files, shardwright::real_clock().unix_ns()));
    const auto name = torch_dcp::parse_data_file_name(files.front().name);
    return torch_dcp::write_sidecar(location, name->generation, sidecar,
                                    how.durability == exec::Durability::kFull);
  });
}

}  // extern "C"
