// SPDX-License-Identifier: Apache-2.0
//
// The index of torch's format as the core writes it, for shardwright_dcp_index.py: of `items`
// tensors four fifths are cut into a row per rank, the others are held by all; as in
// torch_objects.py.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/format/torch_dcp/index_writer.h"

namespace {

namespace plan = shardwright::plan;
namespace torch_dcp = shardwright::format::torch_dcp;
using shardwright::Box;

constexpr int64_t kRows = 4;
constexpr int64_t kColumns = 64;
constexpr uint64_t kItemBytes = 16;

struct Bench {
  plan::Catalog catalog;
  std::vector<torch_dcp::ItemPlace> places;
  std::vector<std::string> files = {"__0_0.distcp"};
  std::map<std::string, std::string> metadata;
  std::string written;
};

bool add_tensor(int64_t number, int64_t ranks, Bench* bench) {
  const bool is_cut = number % 5 != 4;
  const std::string name = "model.layers." + std::to_string(number) + ".weight";
  const std::string path = "[\"" + name + "\"]";
  const std::vector<int64_t> shape =
      is_cut ? std::vector{kRows * ranks, kColumns} : std::vector{kColumns};
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  for (int64_t rank = 0; rank < (is_cut ? ranks : 1); ++rank) {
    Box box = is_cut ? Box{{rank * kRows, 0}, {kRows, kColumns}} : Box{{0}, {kColumns}};
    chunks.push_back({std::move(box), static_cast<uint32_t>(rank)});
    bench->places.push_back({0, 0, static_cast<uint64_t>(rank), kItemBytes});
  }
  const auto kind = is_cut ? shardwright::EntryKind::kSharded : shardwright::EntryKind::kReplicated;
  return plan::CatalogBuilder(&bench->catalog)
      .add_tensor({name, path, shardwright::DType::kFloat32, kind, -1, shape}, chunks)
      .ok();
}

}  // namespace

extern "C" {

#define BENCH_API __attribute__((visibility("default")))

BENCH_API void* bench_index_create(int64_t ranks, int64_t items) {
  auto bench = std::make_unique<Bench>();
  for (int64_t number = 0; number < items; ++number)
    if (!add_tensor(number, ranks, bench.get())) return nullptr;
  return bench.release();
}

// Bytes of the index, 0 for a failure.
BENCH_API int64_t bench_index_write(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  auto encoded = torch_dcp::encode_index(
      {bench->catalog, bench->places, {}, bench->files, "/run/checkpoint", "id", bench->metadata});
  if (!encoded.ok()) return 0;
  bench->written = std::move(encoded->bytes);
  return static_cast<int64_t>(bench->written.size());
}

// What was written last; out has room for as many bytes as bench_index_write said.
BENCH_API void bench_index_copy(void* handle, void* out) {
  const std::string& written = static_cast<Bench*>(handle)->written;
  std::memcpy(out, written.data(), written.size());
}

BENCH_API void bench_index_release(void* handle) {
  delete static_cast<Bench*>(handle);
}

}  // extern "C"
