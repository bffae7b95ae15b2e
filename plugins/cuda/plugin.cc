// SPDX-License-Identifier: Apache-2.0
//
// Entry of libshardwright_cuda.so, the plugin "cuda": GPUs as devices that HSDP puts work on, and
// communicators over NCCL. It loads wherever the library does; who opens one of them without a
// driver, a GPU or NCCL is told what is missing.
#include <string>
#include <string_view>
#include <utility>

#include "core/base/without_exceptions.h"
#include "core/collective/nccl/nccl_communicator.h"
#include "core/collective/nccl/nccl_id.h"
#include "core/device/cuda/cuda_device.h"
#include "plugins/cuda/config.h"
#include "plugins/tables/communicator_table.h"
#include "plugins/tables/device_table.h"
#include "plugins/tables/host_errors.h"
#include "shardwright/plugin.h"

namespace shardwright::cuda_plugin {
namespace {

using plugin_tables::give;

std::string_view text_of(const char* config, uint64_t size) {
  return config == nullptr ? std::string_view()
                           : std::string_view(config, static_cast<size_t>(size));
}

shw_status open_device(void*, const char* config, uint64_t config_size, shw_device_vtable* vtable,
                       shw_error** err) {
  const Status status = without_exceptions("opening a CUDA device", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto request, read_device_config(text_of(config, config_size)));
    SHW_ASSIGN_OR_RETURN(auto made, device::make_cuda_lane_device(request.device));
    plugin_tables::fill_table(std::move(made), vtable);
    return {};
  });
  return give(status, err);
}

shw_status open_communicator(void*, const char* config, uint64_t config_size,
                             shw_communicator_vtable* vtable, shw_error** err) {
  const Status status = without_exceptions("opening a communicator over NCCL", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto request,
                         read_communicator_config(text_of(config, config_size)));
    SHW_ASSIGN_OR_RETURN(auto made, collective::make_nccl_communicator(request));
    plugin_tables::fill_table(std::move(made), vtable);
    return {};
  });
  return give(status, err);
}

shw_status answer(void*, const char* question, uint64_t question_size, char** out,
                  uint64_t* out_size, shw_error** err) {
  const Status status = without_exceptions("answering a host", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const std::string library,
                         read_question(text_of(question, question_size)));
    SHW_ASSIGN_OR_RETURN(const std::string id, collective::make_nccl_id(library));
    return plugin_tables::give_text(id, out, out_size);
  });
  return give(status, err);
}

}  // namespace
}  // namespace shardwright::cuda_plugin

extern "C" __attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                           shw_plugin* out,
                                                                           shw_error**) {
  using namespace shardwright;  // NOLINT: the entry has a C name
  plugin_tables::set_host(host);
  static const shw_device_vtable device = plugin_tables::device_functions("cuda");
  static const shw_communicator_vtable communicator = [] {
    shw_communicator_vtable table = plugin_tables::communicator_functions("nccl");
    plugin_tables::add_own_operations(&table);
    return table;
  }();
  out->name = "cuda";
  out->version = SHW_PLUGIN_VERSION;
  out->device = &device;
  out->device_open = cuda_plugin::open_device;
  out->communicator = &communicator;
  out->communicator_open = cuda_plugin::open_communicator;
  out->answer = cuda_plugin::answer;
  return SHW_OK;
}
