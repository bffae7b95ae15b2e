// SPDX-License-Identifier: Apache-2.0
#include "tests/core/exec/hostile_rows.h"

#include <fstream>
#include <memory>

#include "core/storage/backends.h"

namespace shardwright::exec::test {

using format::torch_dcp::test::index_of;
using format::torch_dcp::test::place_items;
using format::torch_dcp::test::tensor_item;
using format::torch_dcp::test::value_item;

void Place::put(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = root_ / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string Place::get(const std::string& name) const {
  std::ifstream file(root_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Place::change(const std::string& name, const std::function<void(std::string*)>& change) const {
  std::string bytes = get(name);
  change(&bytes);
  put(name, bytes);
}

std::map<std::string, std::string> Place::files() const {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      const std::string name = std::filesystem::relative(entry.path(), root_);
      all[name] = get(name);
    }
  }
  return all;
}

SampleDirectory sample() {
  SampleDirectory directory;
  directory.tensors.push_back({"w",
                               {4, 2},
                               {{{0, 0}, {2, 2}, {tensor_item({2, 2}, kFirst)}},
                                {{2, 0}, {2, 2}, {tensor_item({2, 2}, kSecond)}}}});
  directory.objects.push_back({"step", {value_item("K\x07.")}});
  return directory;
}

void Place::put(const std::function<void(SampleDirectory*)>& before,
                const std::function<void(SampleDirectory*)>& after) const {
  SampleDirectory directory = sample();
  if (before) before(&directory);
  place_items(&directory);
  const std::shared_ptr<storage::Storage> storage = storage::make_posix_storage(root_);
  if (after) {
    // Data as it was placed, the index as it is changed.
    format::torch_dcp::test::store(storage.get(), "ckpt", directory);
    after(&directory);
    put(kIndex, index_of(directory));
    return;
  }
  format::torch_dcp::test::store(storage.get(), "ckpt", directory);
}

Row index(const char* what, std::string pickle, StatusCode code, const char* says) {
  return {what,
          [pickle = std::move(pickle)](const Place& place) {
            place.put(nullptr);
            place.put(kIndex, pickle);
          },
          code, says};
}
Row changed(const char* what, std::string name, std::function<void(std::string*)> change,
            StatusCode code, const char* says) {
  return {what,
          [name = std::move(name), change = std::move(change)](const Place& place) {
            place.put(nullptr);
            place.change(name, change);
          },
          code, says};
}
Row items(const char* what, std::function<void(SampleDirectory*)> change, StatusCode code,
          const char* says) {
  return {what, [change = std::move(change)](const Place& place) { place.put(change); }, code,
          says};
}
Row places(const char* what, std::function<void(SampleDirectory*)> change, StatusCode code,
           const char* says) {
  return {what, [change = std::move(change)](const Place& place) { place.put(nullptr, change); },
          code, says};
}
Row around(const char* what, std::function<void(const Place&)> change, StatusCode code,
           const char* says) {
  return {what,
          [change = std::move(change)](const Place& place) {
            place.put(nullptr);
            change(place);
          },
          code, says};
}
Row file(const char* what, std::string bytes, StatusCode code, const char* says) {
  return {what, [bytes = std::move(bytes)](const Place& place) { place.put(kFile, bytes); }, code,
          says};
}

std::string sound_file() {
  return format::torch_save::test::file_of(format::torch_save::test::pickle_of("w", {}),
                                           {std::string(kFirst)});
}
}  // namespace shardwright::exec::test
