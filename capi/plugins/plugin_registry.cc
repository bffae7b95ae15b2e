// SPDX-License-Identifier: Apache-2.0
//
// Search order: directories of the options, of SHW_PLUGIN_PATH, then the directory that this
// library lies in. Never the current directory.
#include "capi/plugins/plugin_registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "capi/adapters/collective_adapter.h"
#include "capi/adapters/communicator_adapter.h"
#include "capi/adapters/device_adapter.h"
#include "capi/adapters/storage_adapter.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "core/base/json_writer.h"
#include "core/base/text.h"

namespace shardwright::capi {
namespace {

constexpr std::string_view kManifestSuffix = ".shw-plugin.json";

void add_directories(std::string_view list, std::vector<std::string>* directories) {
  while (!list.empty()) {
    const size_t colon = list.find(':');
    const std::string_view one = list.substr(0, colon);
    if (!one.empty()) directories->emplace_back(one);
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
}

std::string own_directory() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_directory), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code ignored;  // an unknown own path only shortens the search
  const auto path = std::filesystem::canonical(info.dli_fname, ignored);
  return ignored ? std::string() : path.parent_path().string();
}

bool is_file(const std::string& path) {
  std::error_code unreadable;
  return std::filesystem::is_regular_file(path, unreadable);
}

void write_plugin(const PluginManifest& manifest, const char* version, bool loaded,
                  JsonWriter* json) {
  json->begin_object().key("name").text(manifest.name).key("file").text(manifest.file);
  json->key("loaded").boolean(loaded).key("version").text(version);
  json->key("capabilities").begin_array();
  for (const std::string& each : manifest.capabilities) json->text(each);
  json->end_array().end_object();
}

// What a plugin may have.
struct Offer {
  const char* noun = "";
  bool is_there = false;
};

// The plugin's table as its open function leaves it.
template <typename TableType, typename Open>
Result<TableType> open_table(const LoadedPlugin& loaded, const Offer& offer,
                             std::string_view config, const TableType& table, Open open) {
  const char* name = loaded.plugin.name;
  if (!offer.is_there)
    return unimplemented(fmt::format("plugin '{}' has no {}", name, offer.noun))
        .with_detail("plugin", name);
  TableType opened = table;
  shw_error* error = nullptr;
  shw_status code = SHW_OK;
  {
    const CallbackScope scope;
    code = open(loaded.plugin.user, config.data(), config.size(), &opened, &error);
  }
  if (code == SHW_OK && error == nullptr) return opened;
  return status_from_host(code, error, fmt::format("open a {} of '{}'", offer.noun, name).c_str());
}

}  // namespace

PluginRegistry::PluginRegistry(std::string_view from_options, std::string_view from_environment) {
  add_directories(from_options, &directories_);
  add_directories(from_environment, &directories_);
  if (std::string own = own_directory(); !own.empty()) directories_.push_back(std::move(own));
}

Result<std::string> PluginRegistry::search(std::string_view name) const {
  for (const std::string& directory : directories_) {
    const std::string manifest = fmt::format("{}/{}{}", directory, name, kManifestSuffix);
    if (is_file(manifest)) {
      SHW_ASSIGN_OR_RETURN(const PluginManifest found, read_plugin_manifest(manifest));
      return found.file;
    }
    std::string library = fmt::format("{}/libshardwright_{}.so", directory, name);
    if (is_file(library)) return library;
  }
  return not_found(fmt::format("plugin '{}' is in none of the {} directories that were searched "
                               "(options, SHW_PLUGIN_PATH, beside the library): {}",
                               escape_text(name), directories_.size(),
                               fmt::join(directories_, ", ")))
      .with_detail("plugin", name);
}

Status PluginRegistry::load(const std::string& path_or_name) {
  std::string file = path_or_name;
  if (file.find('/') == std::string::npos) {
    SHW_ASSIGN_OR_RETURN(file, search(path_or_name));
  }
  SHW_ASSIGN_OR_RETURN(auto plugin, load_plugin_file(file));
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::find(loaded_.begin(), loaded_.end(), plugin) == loaded_.end()) {
    loaded_.push_back(std::move(plugin));
  }
  return {};
}

Result<std::shared_ptr<LoadedPlugin>> PluginRegistry::find(std::string_view name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& each : loaded_) {
    if (name == each->plugin.name) return each;
  }
  return not_found(fmt::format("no plugin '{}' is loaded in this context: load it first",
                               escape_text(name)))
      .with_detail("plugin", name);
}

Result<std::shared_ptr<storage::Storage>> PluginRegistry::open_storage(std::string_view plugin,
                                                                       std::string_view config) {
  SHW_ASSIGN_OR_RETURN(auto loaded, find(plugin));
  SHW_ASSIGN_OR_RETURN(const auto table,
                       open_table(*loaded, {"storage", loaded->plugin.storage != nullptr}, config,
                                  loaded->storage, loaded->plugin.storage_open));
  SHW_RETURN_IF_ERROR(check_storage_slots(table));
  return make_host_storage(table, loaded);
}

Result<std::shared_ptr<collective::Collective>> PluginRegistry::open_collective(
    std::string_view plugin, std::string_view config) {
  SHW_ASSIGN_OR_RETURN(auto loaded, find(plugin));
  SHW_ASSIGN_OR_RETURN(const auto table,
                       open_table(*loaded, {"collective", loaded->plugin.collective != nullptr},
                                  config, loaded->collective, loaded->plugin.collective_open));
  SHW_RETURN_IF_ERROR(check_collective_slots(table));
  SHW_RETURN_IF_ERROR(check_collective_ranks(table));
  return make_host_collective(table, loaded);
}

Result<collective::CommunicatorPtr> PluginRegistry::open_communicator(std::string_view plugin,
                                                                      std::string_view config) {
  SHW_ASSIGN_OR_RETURN(auto loaded, find(plugin));
  SHW_ASSIGN_OR_RETURN(const auto table,
                       open_table(*loaded, {"communicator", loaded->plugin.communicator != nullptr},
                                  config, loaded->communicator, loaded->plugin.communicator_open));
  SHW_RETURN_IF_ERROR(check_communicator_slots(table));
  SHW_RETURN_IF_ERROR(check_communicator_ranks(table));
  return make_host_communicator(table, loaded);
}

Result<std::shared_ptr<device::LaneDevice>> PluginRegistry::open_device(std::string_view plugin,
                                                                        std::string_view config) {
  SHW_ASSIGN_OR_RETURN(auto loaded, find(plugin));
  SHW_ASSIGN_OR_RETURN(const auto table,
                       open_table(*loaded, {"device", loaded->plugin.device != nullptr}, config,
                                  loaded->device, loaded->plugin.device_open));
  SHW_RETURN_IF_ERROR(check_device_slots(table));
  return make_host_table_device(table, loaded);
}

Result<std::string> PluginRegistry::ask(std::string_view plugin, std::string_view question) {
  SHW_ASSIGN_OR_RETURN(auto loaded, find(plugin));
  const char* const name = loaded->plugin.name;
  if (loaded->plugin.answer == nullptr)
    return unimplemented(fmt::format("plugin '{}' answers no questions", name))
        .with_detail("plugin", name);
  char* text = nullptr;
  uint64_t size = 0;
  shw_error* error = nullptr;
  shw_status code = SHW_OK;
  {
    const CallbackScope scope;
    code = loaded->plugin.answer(loaded->plugin.user, question.data(), question.size(), &text,
                                 &size, &error);
  }
  if (code == SHW_OK && error == nullptr) return take_answer(text, size);
  return status_from_host(code, error, fmt::format("ask plugin '{}'", name).c_str());
}

Result<std::string> PluginRegistry::list_json() {
  JsonWriter json;
  json.begin_object().key("schema").number(1).key("plugins").begin_array();
  std::vector<std::string> seen;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& each : loaded_) {
      PluginManifest shown{each->plugin.name, each->file, each->plugin.abi_major, {}};
      if (each->plugin.storage != nullptr) shown.capabilities.emplace_back("storage");
      if (each->plugin.collective != nullptr) shown.capabilities.emplace_back("collective");
      if (each->plugin.communicator != nullptr) shown.capabilities.emplace_back("communicator");
      if (each->plugin.device != nullptr) shown.capabilities.emplace_back("device");
      write_plugin(shown, each->plugin.version, true, &json);
      seen.push_back(shown.name);
    }
  }
  for (const std::string& directory : directories_) {
    std::error_code unreadable;  // a directory that is not there holds no plugins
    for (const auto& entry : std::filesystem::directory_iterator(directory, unreadable)) {
      if (!entry.path().string().ends_with(kManifestSuffix)) continue;
      const auto manifest = read_plugin_manifest(entry.path().string());
      if (!manifest.ok()) return manifest.status();
      if (std::find(seen.begin(), seen.end(), manifest->name) != seen.end()) continue;
      seen.push_back(manifest->name);
      write_plugin(*manifest, "", false, &json);
    }
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace shardwright::capi
