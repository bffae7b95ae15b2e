// SPDX-License-Identifier: Apache-2.0
//
// storage.h: storages and their small raw operations.
#include "shardwright/storage.h"

#include <string>
#include <utility>
#include <vector>

#include "capi/adapters/storage_adapter.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/location.h"
#include "capi/boundary/struct_reader.h"
#include "core/storage/backends.h"

namespace shardwright::capi {
namespace {

using storage::CommitCondition;
using storage::OpenMode;
using storage::OpenOptions;

Result<std::string> key_argument(const char* key, uint64_t size) {
  SHW_RETURN_IF_ERROR(need_pointer(key, "key"));
  SHW_ASSIGN_OR_RETURN(const auto text, text_argument(key, size, "key"));
  SHW_RETURN_IF_ERROR(storage::check_key(text));
  return std::string(text);
}

struct PutArguments {
  std::span<const std::byte> bytes;
  CommitCondition condition = CommitCondition::kNone;
  std::string_view expected_version;
};

Status put(storage::Storage& storage, const std::string& key, const PutArguments& arguments) {
  SHW_RETURN_IF_ERROR(storage::need_capability(
      storage, storage::kAtomicCommit, "an object is put whole or not at all, which it cannot do"));
  if (arguments.condition != CommitCondition::kNone) {
    SHW_RETURN_IF_ERROR(storage::need_capability(
        storage, storage::kConditionalCommit,
        "whether the condition holds could change before the commit; put without one"));
  }
  OpenOptions options;
  options.mode = OpenMode::kCreate;
  SHW_ASSIGN_OR_RETURN(const auto object,
                       storage::write_uncommitted(storage, key, arguments.bytes, options));
  SHW_RETURN_IF_ERROR(object->commit(arguments.condition, arguments.expected_version));
  return object->close();
}

Status read(storage::Storage& storage, const std::string& key, uint64_t offset,
            std::span<std::byte> data) {
  SHW_ASSIGN_OR_RETURN(auto object, storage.open(key, OpenOptions{}));
  SHW_RETURN_IF_ERROR(object->read_at(offset, data));
  return object->close();
}

shw_storage* storage_handle(std::shared_ptr<storage::Storage> made) {
  auto impl = std::make_shared<StorageImpl>();
  impl->name = made->name();
  impl->storage = std::move(made);
  return make_handle<shw_storage>(std::move(impl));
}

}  // namespace

Result<shw_storage*> storage_of(std::shared_ptr<storage::Storage> storage) {
  return storage_handle(std::move(storage));
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;
namespace storage_ns = shardwright::storage;
using shardwright::Status;

extern "C" {

void shw_storage_stat_init(shw_storage_stat* stat, uint32_t struct_size) noexcept {
  capi::init_struct(stat, struct_size);
}

void shw_storage_entry_init(shw_storage_entry* entry, uint32_t struct_size) noexcept {
  capi::init_struct(entry, struct_size);
}

void shw_storage_vtable_init(shw_storage_vtable* vtable, uint32_t struct_size) noexcept {
  capi::init_struct(vtable, struct_size);
  if (vtable == nullptr || struct_size < SHW_STORAGE_VTABLE_SIZE_V1) return;
  vtable->abi_major = SHW_ABI_MAJOR;
  vtable->abi_minor = SHW_ABI_MINOR;
}

shw_status shw_storage_create_posix(const char* root, shw_storage** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto location, capi::read_location(nullptr, root, "root"));
    SHW_ASSIGN_OR_RETURN(*out, capi::storage_of(location.storage));
    return {};
  });
}

shw_status shw_storage_create_memory(shw_storage** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(*out, capi::storage_of(storage_ns::make_memory_storage()));
    return {};
  });
}

shw_status shw_storage_create(const shw_storage_vtable* vtable, shw_storage** out,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    shw_storage_vtable copy;
    SHW_RETURN_IF_ERROR(capi::read_struct(vtable, "vtable", &copy));
    SHW_RETURN_IF_ERROR(capi::check_storage_slots(copy));
    // The handle is made before the table is taken over, so that a failure consumes nothing.
    auto impl = std::make_shared<capi::StorageImpl>();
    impl->name = copy.name;
    auto handle = std::make_unique<shw_storage>();
    SHW_ASSIGN_OR_RETURN(impl->storage, capi::make_host_storage(copy, nullptr));
    handle->impl = std::move(impl);
    *out = handle.release();
    return {};
  });
}

const char* shw_storage_name(const shw_storage* storage, uint64_t* size) noexcept {
  const auto* impl = capi::peek(storage);
  return capi::text_out(impl == nullptr ? "" : std::string_view(impl->name), size);
}

uint64_t shw_storage_capabilities(const shw_storage* storage) noexcept {
  const auto* impl = capi::peek(storage);
  return impl == nullptr ? 0 : impl->storage->capabilities();
}

shw_status shw_storage_put(shw_storage* storage, const char* key, uint64_t key_size,
                           const void* data, uint64_t size, int32_t condition,
                           const char* expected_version, uint64_t expected_version_size,
                           shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_ASSIGN_OR_RETURN(const auto name, capi::key_argument(key, key_size));
    capi::PutArguments arguments;
    SHW_ASSIGN_OR_RETURN(arguments.bytes, capi::bytes_argument(data, size, "data"));
    SHW_RETURN_IF_ERROR(capi::option_in_range(condition, SHW_COMMIT_IF_VERSION, "condition"));
    arguments.condition = static_cast<storage_ns::CommitCondition>(condition);
    SHW_ASSIGN_OR_RETURN(
        const auto version,
        capi::bytes_argument(expected_version, expected_version_size, "expected_version"));
    arguments.expected_version = {reinterpret_cast<const char*>(version.data()), version.size()};
    return capi::put(*impl->storage, name, arguments);
  });
}

shw_status shw_storage_read(shw_storage* storage, const char* key, uint64_t key_size,
                            uint64_t offset, void* data, uint64_t size, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_ASSIGN_OR_RETURN(const auto name, capi::key_argument(key, key_size));
    SHW_ASSIGN_OR_RETURN(const auto checked, capi::bytes_argument(data, size, "data"));
    const std::span<std::byte> target(static_cast<std::byte*>(data), checked.size());
    return capi::read(*impl->storage, name, offset, target);
  });
}

shw_status shw_storage_stat_key(shw_storage* storage, const char* key, uint64_t key_size,
                                shw_storage_stat* out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_ASSIGN_OR_RETURN(const auto name, capi::key_argument(key, key_size));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto stat, impl->storage->stat(name));
    shw_storage_stat made = SHW_STORAGE_STAT_INIT;
    made.size = stat.size_bytes;
    made.modified_ns = stat.modified_ns;
    capi::write_out(made, out);
    return {};
  });
}

shw_status shw_storage_version(shw_storage* storage, const char* key, uint64_t key_size,
                               shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto name, capi::key_argument(key, key_size));
    SHW_ASSIGN_OR_RETURN(auto stat, impl->storage->stat(name));
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of(std::string_view(stat.version)));
    return {};
  });
}

shw_status shw_storage_list(shw_storage* storage, const char* prefix, uint64_t prefix_size,
                            int32_t delimiter, shw_buffer** out, shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_RETURN_IF_ERROR(capi::need_pointer(out, "out"));
    SHW_ASSIGN_OR_RETURN(const auto text, capi::text_argument(prefix, prefix_size, "prefix"));
    if (delimiter != SHW_STORAGE_NO_DELIMITER && delimiter != SHW_STORAGE_DELIMITER) {
      return capi::bad_argument("delimiter",
                                fmt::format("{} is neither 0 (none) nor {} ('/')", delimiter,
                                            static_cast<int32_t>(SHW_STORAGE_DELIMITER)));
    }
    std::vector<std::string> keys;
    SHW_RETURN_IF_ERROR(impl->storage->list(text, static_cast<char>(delimiter),
                                            [&keys](const storage_ns::ListEntry& entry) -> Status {
                                              keys.push_back(entry.key);
                                              return {};
                                            }));
    const std::vector<std::string_view> parts(keys.begin(), keys.end());
    SHW_ASSIGN_OR_RETURN(*out, capi::buffer_of_parts(parts));
    return {};
  });
}

shw_status shw_storage_remove(shw_storage* storage, const char* key, uint64_t key_size,
                              shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(storage, "storage"));
    SHW_ASSIGN_OR_RETURN(const auto name, capi::key_argument(key, key_size));
    return impl->storage->remove(name);
  });
}

void shw_storage_release(shw_storage* storage) noexcept {
  capi::release_handle(storage);
}

}  // extern "C"
