// SPDX-License-Identifier: Apache-2.0
//
// PluginRegistry: the plugins of one context and the directories where they are looked for. A
// loaded plugin is shared by all contexts of the process and never unloaded; its release function
// runs when the last context, storage and collective that uses it is gone. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/collective/collective.h"
#include "core/collective/communicator.h"
#include "core/device/lane_device.h"
#include "core/storage/storage.h"
#include "shardwright/plugin.h"

namespace shardwright::capi {

// One loaded plugin.
struct LoadedPlugin {
  LoadedPlugin() = default;
  ~LoadedPlugin();
  LoadedPlugin(const LoadedPlugin&) = delete;
  LoadedPlugin& operator=(const LoadedPlugin&) = delete;
  std::string file;  // resolved path
  shw_plugin plugin{};
  shw_storage_vtable storage{};  // copy of the plugin's table, valid when plugin.storage is set
  shw_collective_vtable collective{};  // likewise
  shw_communicator_vtable communicator{};
  shw_device_vtable device{};
};

class PluginRegistry {
 public:
  // Colon separated directories of the context's options and of the environment, in search order.
  PluginRegistry(std::string_view from_options, std::string_view from_environment);

  // A path with "/" is a file, anything else a name to be looked for.
  Status load(const std::string& path_or_name);
  Result<std::shared_ptr<storage::Storage>> open_storage(std::string_view plugin,
                                                         std::string_view config);
  Result<std::shared_ptr<collective::Collective>> open_collective(std::string_view plugin,
                                                                  std::string_view config);
  Result<collective::CommunicatorPtr> open_communicator(std::string_view plugin,
                                                        std::string_view config);
  Result<std::shared_ptr<device::LaneDevice>> open_device(std::string_view plugin,
                                                          std::string_view config);
  // What the plugin answers to a question of the host.
  Result<std::string> ask(std::string_view plugin, std::string_view question);
  // {"schema":1,"plugins":[{name, file, loaded, version, capabilities}, ...]}
  Result<std::string> list_json();

 private:
  Result<std::shared_ptr<LoadedPlugin>> find(std::string_view name);
  Result<std::string> search(std::string_view name) const;

  std::vector<std::string> directories_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<LoadedPlugin>> loaded_;  // shared with other contexts of the process
};

// Loads or finds a file in the process-wide list.
Result<std::shared_ptr<LoadedPlugin>> load_plugin_file(const std::string& file);

// Takes an answer of a plugin, which lies where the host table's allocate put it.
std::string take_answer(char* text, uint64_t size);

// Description of a plugin beside its library: NAME.shw-plugin.json.
struct PluginManifest {
  std::string name;
  std::string file;  // absolute
  uint32_t abi_major = 0;
  std::vector<std::string> capabilities;
};
// INVALID_ARGUMENT for text that is no such object.
Result<PluginManifest> read_plugin_manifest(const std::string& path);

}  // namespace shardwright::capi
