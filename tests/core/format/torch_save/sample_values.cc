// SPDX-License-Identifier: Apache-2.0
#include "tests/core/format/torch_save/sample_values.h"

#include <fmt/format.h>

namespace shardwright::format::torch_save::test {

using archive::PickleProtocol;
using archive::PickleWriter;

namespace {

void add_tuple(const std::vector<int64_t>& numbers, PickleWriter* pickle) {
  pickle->mark();
  for (const int64_t number : numbers) pickle->integer(number);
  pickle->tuple_to_mark();
}

}  // namespace

void add_tensor(const SampleTensor& tensor, PickleWriter* pickle) {
  pickle->global("torch._utils", "_rebuild_tensor_v2").mark();
  pickle->mark().text("storage").global("torch", "FloatStorage").text(tensor.storage).text("cpu");
  pickle->integer(tensor.storage_elements).tuple_to_mark().persistent_id();
  pickle->integer(tensor.offset);
  add_tuple(tensor.shape, pickle);
  add_tuple(tensor.strides, pickle);
  pickle->boolean(false).global("collections", "OrderedDict").empty_tuple().reduce();
  pickle->tuple_to_mark().reduce();
}

std::string pickle_of(std::string_view name, const SampleTensor& tensor) {
  PickleWriter pickle(PickleProtocol::k2);
  pickle.empty_dict().text(name);
  add_tensor(tensor, &pickle);
  pickle.set_item();
  return std::move(pickle).finish();
}

std::vector<archive::test::SampleEntry> entries_of(std::string pickle,
                                                   const std::vector<std::string>& storages) {
  std::vector<archive::test::SampleEntry> entries = {{"archive/data.pkl", std::move(pickle)},
                                                     {"archive/byteorder", "little"}};
  for (size_t i = 0; i < storages.size(); ++i)
    entries.push_back({fmt::format("archive/data/{}", i), storages[i]});
  entries.push_back({"archive/version", "3\n"});
  return entries;
}

std::string file_of(std::string pickle, const std::vector<std::string>& storages) {
  return archive::test::archive_of(entries_of(std::move(pickle), storages));
}

std::string old_file_of(const std::string& pickle, const std::vector<std::string>& storages) {
  std::string file("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);
  file += std::string("\x80\x02\x4d\xe9\x03\x2e", 6);
  PickleWriter system(PickleProtocol::k2);
  system.empty_dict().text("little_endian").boolean(true).set_item();
  file += std::move(system).finish() + pickle;
  PickleWriter keys(PickleProtocol::k2);
  keys.empty_list();
  for (size_t i = 0; i < storages.size(); ++i) keys.text(fmt::to_string(i)).append();
  file += std::move(keys).finish();
  for (const std::string& storage : storages) {
    const uint64_t elements = storage.size() / 4;
    file += std::string(reinterpret_cast<const char*>(&elements), sizeof(elements)) + storage;
  }
  return file;
}

}  // namespace shardwright::format::torch_save::test
