// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of torch.save, and again as the pickle of an archive whose storages are
// there. What opens has a sound catalog, every extent lies in its file, what is derived can be
// read, and another rank opens the same.
#include <algorithm>
#include <string>
#include <vector>

#include "core/format/archive/zip_writer.h"
#include "core/format/format.h"
#include "core/format/torch_save/torch_save_checkpoint.h"
#include "core/integrity/crc32.h"
#include "core/storage/backends.h"

namespace {

using namespace shardwright;          // NOLINT: a fuzz target is one file
using namespace shardwright::format;  // NOLINT

constexpr uint64_t kMostRead = 1 << 16;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(const OpenedCheckpoint& opened) {
  const plan::Catalog& catalog = opened.catalog();
  require(plan::catalog_findings(catalog, 1, kMaxDescribedObjectBytes).empty());
  const auto derived = *opened.open_derived();
  const uint64_t derived_bytes = derived->stat()->size_bytes;
  std::vector<std::byte> bytes;
  const auto look = [&](const Extent& extent) {
    const bool is_derived = extent.file == opened.derived_file();
    require(is_derived || extent.file == 0);
    const uint64_t size = is_derived ? derived_bytes : opened.files()[0].size_bytes;
    require(extent.offset <= size && extent.size_bytes <= size - extent.offset);
    bytes.resize(std::min(extent.size_bytes, kMostRead));
    if (!is_derived) return;
    const Status read = derived->read_at(extent.offset, bytes);  // a record may be damaged
    require(read.ok() || read.code() == StatusCode::kDataLoss);
  };
  for (uint64_t i = 0; i < std::min<uint64_t>(catalog.chunk_count(), 64); ++i)
    look(*opened.chunk_extent(i));
  for (size_t i = 0; i < std::min<size_t>(catalog.objects.size(), 64); ++i)
    look(*opened.object_extent(i));
}

void open(std::span<const std::byte> file) {
  const std::shared_ptr<storage::Storage> storage = storage::make_memory_storage();
  storage::OpenOptions options;
  options.mode = storage::OpenMode::kCreateVisible;
  require((*storage->open("f", options))->write_at(0, file).ok());
  std::vector<std::byte> shared;
  const auto opened = torch_save::open_file({storage, "f"}, &shared);
  if (!opened.ok()) return;
  check(**opened);
  require((*opened)->check_file(0).ok());
  const auto again = torch_save::open_shared({storage, "f"}, shared);
  require(again.ok() && (*again)->identity() == (*opened)->identity());
}

// An archive of the pickle, and storages "0" and "1" of 16 bytes.
std::vector<std::byte> archive_of(std::span<const std::byte> pickle) {
  archive::ZipWriter writer(archive::ZipFraming::kPlain);
  const std::vector<std::byte> numbers(16);
  const std::vector<std::pair<std::string, std::span<const std::byte>>> records = {
      {"a/data.pkl", pickle}, {"a/data/0", numbers}, {"a/data/1", numbers}};
  std::vector<std::byte> file;
  for (const auto& [name, payload] : records) {
    const size_t entry = *writer.add(name, payload.size());
    writer.set_crc(entry, integrity::crc32(0, payload));
    const auto header = writer.header(entry);
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), payload.begin(), payload.end());
  }
  const auto end = writer.end();
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  open(bytes);
  open(archive_of(bytes));
  const std::vector<std::byte> shared(bytes.begin(), bytes.end());
  const auto opened = torch_save::open_shared({storage::make_memory_storage(), "f"}, shared);
  if (opened.ok()) require((*opened)->files().size() == 1);
  return 0;
}
