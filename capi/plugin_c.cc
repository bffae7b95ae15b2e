// SPDX-License-Identifier: Apache-2.0
//
// plugin.h: the only function is the init twin; loading is in plugins/.
#include "shardwright/plugin.h"

#include "capi/boundary/struct_rules.h"

extern "C" void shw_plugin_init(shw_plugin* plugin, uint32_t struct_size) noexcept {
  shardwright::capi::init_struct(plugin, struct_size);
  if (plugin == nullptr || struct_size < SHW_PLUGIN_SIZE_V1) return;
  plugin->abi_major = SHW_ABI_MAJOR;
  plugin->abi_minor = SHW_ABI_MINOR;
}
