// SPDX-License-Identifier: Apache-2.0
//
// Entry of libshardwright_torch.so, the plugin "torch": collectives and communicators over process
// groups of c10d. It links libtorch_cpu and libc10 only, so one file serves CPU and CUDA builds of
// torch; the process has loaded them before, or finds them where its loader looks. It is refused
// where torch has another minor version than the one it was compiled for.
#include <memory>
#include <string_view>
#include <utility>

#include "core/base/without_exceptions.h"
#include "core/collective/c10d/c10d_collective.h"
#include "core/collective/c10d/c10d_communicator.h"
#include "plugins/tables/communicator_table.h"
#include "plugins/tables/host_errors.h"
#include "plugins/torch/collective_table.h"
#include "plugins/torch/config.h"
#include "plugins/torch/torch_version.h"
#include "shardwright/plugin.h"

namespace shardwright::torch_plugin {
namespace {

using plugin_tables::give;

shw_status open_collective(void*, const char* config, uint64_t config_size,
                           shw_collective_vtable* vtable, shw_error** err) {
  const Status status = without_exceptions("opening a collective of torch", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto request,
                         read_config({config, static_cast<size_t>(config_size)}));
    SHW_ASSIGN_OR_RETURN(auto made, collective::make_c10d_collective(request));
    fill_table(std::move(made), vtable);
    return {};
  });
  return give(status, err);
}

shw_status open_communicator(void*, const char* config, uint64_t config_size,
                             shw_communicator_vtable* vtable, shw_error** err) {
  const Status status = without_exceptions("opening a communicator of torch", [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto request,
                         read_config({config, static_cast<size_t>(config_size)}));
    SHW_ASSIGN_OR_RETURN(auto made, collective::make_c10d_communicator(request));
    plugin_tables::fill_table(std::move(made), vtable);
    return {};
  });
  return give(status, err);
}

void on_release(void*) {
  collective::release_side_groups();
}

}  // namespace
}  // namespace shardwright::torch_plugin

extern "C" __attribute__((visibility("default"))) shw_status shw_plugin_v1(const shw_host_api* host,
                                                                           shw_plugin* out,
                                                                           shw_error** err) {
  using namespace shardwright;  // NOLINT: the entry has a C name
  plugin_tables::set_host(host);
  const Status fits = torch_plugin::check_running_torch();
  if (!fits.ok()) return plugin_tables::give(fits, err);
  static const shw_collective_vtable table = torch_plugin::collective_functions();
  static const shw_communicator_vtable communicator = plugin_tables::communicator_functions("c10d");
  out->name = "torch";
  out->version = SHW_PLUGIN_VERSION;
  out->collective = &table;
  out->collective_open = torch_plugin::open_collective;
  out->communicator = &communicator;
  out->communicator_open = torch_plugin::open_communicator;
  out->release = torch_plugin::on_release;
  return SHW_OK;
}
