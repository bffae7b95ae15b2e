// SPDX-License-Identifier: Apache-2.0
//
// Loading one file: dlopen, entry point, check of everything the plugin offers. A file that fails
// any check is refused as a whole. The process-wide list is keyed by the resolved path.
#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capi/adapters/collective_adapter.h"
#include "capi/adapters/communicator_adapter.h"
#include "capi/adapters/device_adapter.h"
#include "capi/adapters/storage_adapter.h"
#include "capi/boundary/error.h"
#include "capi/boundary/process_state.h"
#include "capi/boundary/struct_reader.h"
#include "capi/boundary/version.h"
#include "capi/context/log_bridge.h"
#include "capi/plugins/plugin_registry.h"

namespace shardwright::capi {

const shw_api& function_table() noexcept;

namespace {

constinit std::mutex process_mutex;
constinit std::map<std::string, std::weak_ptr<LoadedPlugin>>* process_plugins = nullptr;

void* host_allocate(void*, uint64_t size, uint64_t alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) return nullptr;
  return ::operator new(size, std::align_val_t{alignment}, std::nothrow);
}

void host_release(void*, void* pointer, uint64_t, uint64_t alignment) {
  ::operator delete(pointer, std::align_val_t{alignment});
}

void host_log(int32_t level, const char* component, const char* message, uint64_t message_size) {
  if (level < SHW_LOG_TRACE || level > SHW_LOG_ERROR || message == nullptr) return;
  log_to_all(static_cast<LogLevel>(level), component == nullptr ? "" : component,
             {message, message_size});
}

const shw_host_api& host_table() {
  static const shw_host_api kHost = {
      sizeof(shw_host_api), 0,         SHW_ABI_MAJOR,  SHW_ABI_MINOR, &shw_error_create,
      &shw_error_release,   &host_log, &host_allocate, &host_release, nullptr,
      &function_table()};
  return kHost;
}

// A table of the plugin and its open function, whose names these are.
struct PartNames {
  const char* table = "";
  const char* open = "";
};

template <typename TableType, typename Open>
Status check_part(const PartNames& names, const TableType* table, Open open,
                  Status (*check_slots)(const TableType&), TableType* copy) {
  if (table == nullptr) return {};
  SHW_RETURN_IF_ERROR(read_struct(table, names.table, copy));
  SHW_RETURN_IF_ERROR(check_slots(*copy));
  if (open != nullptr) return {};
  return invalid_argument(fmt::format("slot '{}' is NULL", names.open))
      .with_detail("field", names.open);
}

Status check_plugin(const shw_plugin& filled, LoadedPlugin* loaded) {
  shw_plugin plugin;
  SHW_RETURN_IF_ERROR(read_struct(&filled, "plugin", &plugin));
  SHW_RETURN_IF_ERROR(check_interface("it", plugin.abi_major, plugin.abi_minor));
  if (plugin.name == nullptr || plugin.version == nullptr) {
    return invalid_argument("it gives no name or no version");
  }
  SHW_RETURN_IF_ERROR(check_part({"storage", "storage_open"}, plugin.storage, plugin.storage_open,
                                 check_storage_slots, &loaded->storage));
  SHW_RETURN_IF_ERROR(check_part({"collective", "collective_open"}, plugin.collective,
                                 plugin.collective_open, check_collective_slots,
                                 &loaded->collective));
  SHW_RETURN_IF_ERROR(check_part({"communicator", "communicator_open"}, plugin.communicator,
                                 plugin.communicator_open, check_communicator_slots,
                                 &loaded->communicator));
  SHW_RETURN_IF_ERROR(check_part({"device", "device_open"}, plugin.device, plugin.device_open,
                                 check_device_slots, &loaded->device));
  loaded->plugin = plugin;
  return {};
}

Result<std::shared_ptr<LoadedPlugin>> open_file(const std::string& file) {
  // Never closed: tables of the plugin may be in use anywhere.
  void* library = dlopen(file.c_str(), RTLD_LOCAL | RTLD_NOW);
  if (library == nullptr) {
    const char* reason = dlerror();
    return invalid_argument(
        fmt::format("it cannot be loaded: {}", reason == nullptr ? "" : reason));
  }
  void* entry = dlsym(library, SHW_PLUGIN_ENTRY);
  if (entry == nullptr) {
    return invalid_argument(fmt::format("it exports no function {}", SHW_PLUGIN_ENTRY));
  }
  auto loaded = std::make_shared<LoadedPlugin>();
  loaded->file = file;
  shw_plugin filled = SHW_PLUGIN_INIT;
  shw_error* error = nullptr;
  shw_status code = SHW_OK;
  {
    const CallbackScope scope;
    code = reinterpret_cast<shw_plugin_entry_fn>(entry)(&host_table(), &filled, &error);
  }
  if (code != SHW_OK || error != nullptr) return status_from_host(code, error, SHW_PLUGIN_ENTRY);
  SHW_RETURN_IF_ERROR(check_plugin(filled, loaded.get()));
  return loaded;
}

}  // namespace

LoadedPlugin::~LoadedPlugin() {
  if (plugin.release == nullptr) return;
  const CallbackScope scope;
  plugin.release(plugin.user);
}

Result<std::shared_ptr<LoadedPlugin>> load_plugin_file(const std::string& file) {
  std::error_code failure;
  const std::string resolved = std::filesystem::canonical(file, failure).string();
  if (failure) {
    return not_found(fmt::format("plugin '{}': {}", file, failure.message()))
        .with_detail("plugin", file);
  }
  const std::lock_guard<std::mutex> lock(process_mutex);
  if (process_plugins == nullptr) {
    process_plugins = new std::map<std::string, std::weak_ptr<LoadedPlugin>>();
  }
  auto& slot = (*process_plugins)[resolved];
  if (auto known = slot.lock()) return known;
  auto loaded = open_file(resolved);
  if (!loaded.ok()) {
    return loaded.status()
        .annotated(fmt::format("load plugin '{}'", resolved))
        .with_detail("plugin", resolved);
  }
  slot = *loaded;
  return loaded;
}

Result<PluginManifest> read_plugin_manifest(const std::string& path) {
  constexpr uint64_t kLargest = 64 * 1024;
  std::ifstream stream(path, std::ios::binary);
  std::string text(kLargest, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(stream.gcount()));
  const auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto bad = [&path](const char* what) {
    return invalid_argument(fmt::format("plugin manifest '{}': {}", path, what))
        .with_detail("file", path);
  };
  if (!parsed.is_object()) return bad("it is no JSON object");
  const auto text_field = [&parsed](const char* key) -> std::string {
    const auto found = parsed.find(key);
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  PluginManifest manifest;
  manifest.name = text_field("name");
  const std::string file = text_field("file");
  if (manifest.name.empty() || file.empty()) return bad("it needs the texts 'name' and 'file'");
  if (file.find("..") != std::string::npos) return bad("'file' must not leave its directory");
  manifest.file = (std::filesystem::path(path).parent_path() / file).string();
  if (const auto major = parsed.find("abi_major");
      major != parsed.end() && major->is_number_unsigned()) {
    manifest.abi_major = major->get<uint32_t>();
  }
  if (const auto list = parsed.find("capabilities"); list != parsed.end() && list->is_array()) {
    for (const auto& each : *list) {
      if (each.is_string()) manifest.capabilities.push_back(each.get<std::string>());
    }
  }
  return manifest;
}

std::string take_answer(char* text, uint64_t size) {
  struct Return {
    void operator()(char* answer) const { host_release(nullptr, answer, 0, 1); }
  };
  const std::unique_ptr<char, Return> held(text);
  return text == nullptr ? std::string() : std::string(text, static_cast<size_t>(size));
}

}  // namespace shardwright::capi
