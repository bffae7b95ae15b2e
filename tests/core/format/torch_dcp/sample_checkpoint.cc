// SPDX-License-Identifier: Apache-2.0
#include "tests/core/format/torch_dcp/sample_checkpoint.h"

#include <map>
#include <span>

#include <zstd.h>

#include "core/format/archive/pickle_writer.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/core/format/torch_save/sample_values.h"

namespace shardwright::format::torch_dcp::test {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;

constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";

void write_size(std::span<const int64_t> extents, PickleWriter* writer) {
  writer->global("torch", "Size").mark();
  for (const int64_t extent : extents) writer->integer(extent);
  writer->tuple_to_mark().tuple(1).reduce();
}

PickleWriter& write_instance(std::string_view name, PickleWriter* writer) {
  return writer->global(kModule, name).empty_tuple().new_object();
}

void write_tensor(const SampleTensor& tensor, PickleWriter* writer) {
  write_instance("TensorStorageMetadata", writer).empty_dict().mark();
  writer->text("properties");
  write_instance("TensorProperties", writer).mark();
  writer->global("torch", "float32").none().boolean(false).none().boolean(false);
  writer->tuple_to_mark().build().text("size");
  write_size(tensor.shape, writer);
  writer->text("chunks").empty_list().mark();
  for (const SampleChunk& chunk : tensor.chunks) {
    write_instance("ChunkStorageMetadata", writer).empty_dict().mark().text("offsets");
    write_size(chunk.offsets, writer);
    writer->text("sizes");
    write_size(chunk.sizes, writer);
    writer->set_items_to_mark().build();
  }
  writer->appends_to_mark().set_items_to_mark().build();
}

void write_item(const SampleItem& item, PickleWriter* writer) {
  writer->global("torch.distributed.checkpoint.filesystem", "_StorageInfo").empty_tuple();
  writer->new_object().empty_dict().mark().text("relative_path").text(item.file);
  writer->text("offset").integer(item.offset).text("length").integer(item.length);
  if (!item.transforms.empty()) {
    writer->text("transform_descriptors").empty_list().mark();
    for (const std::string& transform : item.transforms) writer->text(transform);
    writer->appends_to_mark();
  }
  writer->set_items_to_mark().build();
}

template <typename Directory, typename Visit>
void for_each_item(Directory& directory, Visit&& visit) {
  for (auto& tensor : directory.tensors) {
    for (auto& chunk : tensor.chunks) visit(chunk.item);
  }
  for (auto& object : directory.objects) visit(object.item);
}

void write_places(const SampleDirectory& directory, PickleWriter* writer) {
  for (const SampleTensor& tensor : directory.tensors) {
    for (size_t i = 0; i < tensor.chunks.size(); ++i) {
      write_instance("MetadataIndex", writer).empty_dict().mark().text("fqn").text(tensor.name);
      writer->text("index").integer(static_cast<int64_t>(i)).text("offset");
      write_size(tensor.chunks[i].offsets, writer);
      writer->set_items_to_mark().build();
      write_item(tensor.chunks[i].item, writer);
    }
  }
  for (const SampleObject& object : directory.objects) {
    write_instance("MetadataIndex", writer).empty_dict().mark().text("fqn").text(object.name);
    writer->text("index").none().set_items_to_mark().build();
    write_item(object.item, writer);
  }
}

}  // namespace

std::string tensor_item(const std::vector<int64_t>& sizes, std::string_view elements) {
  torch_save::test::SampleTensor tensor;
  tensor.storage_elements = static_cast<int64_t>(elements.size() / 4);
  tensor.shape = sizes;
  tensor.strides.assign(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) tensor.strides[d - 1] = tensor.strides[d] * sizes[d];
  PickleWriter pickle(PickleProtocol::k2);
  torch_save::test::add_tensor(tensor, &pickle);
  return torch_save::test::file_of(std::move(pickle).finish(), {std::string(elements)});
}

std::string value_item(std::string pickle) {
  return torch_save::test::file_of(std::move(pickle), {});
}

std::string packed(std::string_view bytes) {
  std::string frame(ZSTD_compressBound(bytes.size()), '\0');
  frame.resize(ZSTD_compress(frame.data(), frame.size(), bytes.data(), bytes.size(), 3));
  return frame;
}

void place_items(SampleDirectory* directory) {
  std::map<std::string, int64_t> ends;
  for_each_item(*directory, [&ends](SampleItem& item) {
    item.length = static_cast<int64_t>(item.bytes.size());
    item.offset = ends[item.file];
    ends[item.file] += item.length;
  });
}

std::string index_of(const SampleDirectory& directory) {
  PickleWriter writer(PickleProtocol::k4);
  write_instance("Metadata", &writer).empty_dict().mark();
  writer.text("state_dict_metadata").empty_dict().mark();
  for (const SampleTensor& tensor : directory.tensors) {
    writer.text(tensor.name);
    write_tensor(tensor, &writer);
  }
  for (const SampleObject& object : directory.objects) {
    writer.text(object.name);
    write_instance("BytesStorageMetadata", &writer);
  }
  writer.set_items_to_mark().text("planner_data").empty_dict();
  writer.text("storage_data").empty_dict().mark();
  write_places(directory, &writer);
  writer.set_items_to_mark().set_items_to_mark().build();
  return std::move(writer).finish();
}

void store(storage::Storage* storage, std::string_view prefix, const SampleDirectory& directory) {
  std::map<std::string, std::string> files;
  for_each_item(directory, [&files](const SampleItem& item) {
    std::string& file = files[item.file];
    const auto offset = static_cast<size_t>(item.offset);
    if (file.size() < offset + item.bytes.size()) file.resize(offset + item.bytes.size());
    file.replace(offset, item.bytes.size(), item.bytes);
  });
  files[".metadata"] = index_of(directory);
  for (const auto& [name, bytes] : files)
    safetensors::test::store(storage, std::string(prefix) + "/" + name, bytes);
}

void place_and_store(storage::Storage* storage, std::string_view prefix,
                     SampleDirectory directory) {
  place_items(&directory);
  store(storage, prefix, directory);
}

}  // namespace shardwright::format::torch_dcp::test
