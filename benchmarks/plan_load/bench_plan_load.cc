// SPDX-License-Identifier: Apache-2.0
//
// Load planning of the core without a checkpoint, for shardwright.py: a catalog of `tensors`
// tensors of `chunks` chunks each, and one rank that wants an eighth of every tensor.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/catalog.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load/make_load_plan.h"
#include "core/plan/load_plan.h"
#include "core/state/state.h"

namespace {

using shardwright::Box;
using shardwright::Dims;
using shardwright::whole_box;
namespace plan = shardwright::plan;

constexpr int64_t kRowElements = 64;

struct Cut {
  Dims shape;
  std::vector<Box> boxes;
  Box wanted;
};

Box box(Dims offsets, Dims sizes) {
  return {std::move(offsets), std::move(sizes)};
}

// Row shards of 8 rows; the rank wants an eighth of the rows.
Cut rows(int64_t chunks) {
  Cut cut{{8 * chunks, kRowElements}, {}, {}};
  for (int64_t i = 0; i < chunks; ++i) cut.boxes.push_back(box({8 * i, 0}, {8, kRowElements}));
  cut.wanted = box({3 * chunks, 0}, {chunks, kRowElements});
  return cut;
}

// A grid with 64 columns; the rank wants an eighth of the columns.
Cut grid(int64_t chunks) {
  const int64_t columns = std::min<int64_t>(64, chunks);
  const int64_t height = chunks / columns;
  Cut cut{{8 * height, 8 * columns}, {}, {}};
  for (int64_t i = 0; i < height; ++i) {
    for (int64_t k = 0; k < columns; ++k) cut.boxes.push_back(box({8 * i, 8 * k}, {8, 8}));
  }
  cut.wanted = box({0, 3 * columns}, {8 * height, columns});
  return cut;
}

// Row shards with uneven borders inside each pair, in no order.
Cut shuffled(int64_t chunks) {
  Cut cut = rows(chunks);
  std::shuffle(cut.boxes.begin(), cut.boxes.end(), std::mt19937_64(5));
  return cut;
}

// Every second row is cut into two columns at its own place, so that there is no grid.
Cut irregular(int64_t chunks) {
  const int64_t height = chunks * 2 / 3;
  Cut cut{{8 * height, kRowElements}, {}, {}};
  for (int64_t i = 0; i < height; ++i) {
    const int64_t at = i % 2 == 0 ? kRowElements : 1 + i % (kRowElements - 1);
    cut.boxes.push_back(box({8 * i, 0}, {8, at}));
    if (at < kRowElements) cut.boxes.push_back(box({8 * i, at}, {8, kRowElements - at}));
  }
  cut.wanted = box({3 * height, 0}, {height, kRowElements});
  return cut;
}

// The same in no order, so that neighbours are not stored beside each other.
Cut scattered(int64_t chunks) {
  Cut cut = irregular(chunks);
  std::shuffle(cut.boxes.begin(), cut.boxes.end(), std::mt19937_64(5));
  return cut;
}

Cut cut_of(std::string_view layout, int64_t chunks) {
  if (layout == "grid") return grid(chunks);
  if (layout == "shuffled") return shuffled(chunks);
  if (layout == "irregular") return irregular(chunks);
  if (layout == "scattered") return scattered(chunks);
  return rows(chunks);
}

struct Bench {
  plan::Catalog catalog;
  shardwright::State state;
  std::vector<std::byte> memory;
  std::unique_ptr<plan::CatalogIndex> index;
  plan::LoadPlan made;
};

bool fill(Bench* bench, const Cut& cut, int64_t tensors) {
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  for (const Box& each : cut.boxes) chunks.push_back({each, 0});
  bench->memory.resize(64);  // planning looks at no element
  std::vector<shardwright::TensorEntry> entries;
  plan::CatalogBuilder builder(&bench->catalog);
  for (int64_t t = 0; t < tensors; ++t) {
    const std::string name = "layers." + std::to_string(t) + ".weight";
    plan::CatalogBuilder::Tensor tensor;
    tensor.name = name;
    tensor.dtype = shardwright::DType::kFloat32;
    tensor.kind = shardwright::EntryKind::kSharded;
    tensor.shape = cut.shape;
    if (!builder.add_tensor(tensor, chunks).ok()) return false;
    shardwright::TensorEntry entry;
    entry.name = name;
    entry.kind = shardwright::EntryKind::kSharded;
    entry.global_shape = cut.shape;
    entry.local.data = bench->memory.data();
    entry.local.dtype = shardwright::DType::kFloat32;
    entry.local.shape = cut.wanted.sizes;
    entry.pieces.push_back({cut.wanted, 0});
    entries.push_back(std::move(entry));
  }
  return bench->state.add_tensors(entries).ok();
}

// Reads of the plan against every pair of wanted box and chunk.
bool equals_brute_force(const Bench& bench) {
  const plan::Catalog& catalog = bench.catalog;
  size_t read = 0;
  for (size_t t = 0; t < catalog.tensors.size(); ++t) {
    const shardwright::TensorRef entry = bench.state.tensors()[t];
    const Box wanted = entry.pieces[0].box;
    const plan::TensorRecord& record = catalog.tensors[t];
    for (uint64_t c = record.chunk_begin; c < record.chunk_begin + record.chunk_count; ++c) {
      const Box common = shardwright::intersect(catalog.chunk_box(c), wanted);
      if (shardwright::box_is_empty(common)) continue;
      if (read == bench.made.reads.size()) return false;
      const plan::ReadItem item = bench.made.reads[read++];
      if (item.chunk != c || item.entry != t || item.box != common) return false;
    }
  }
  return read == bench.made.reads.size();
}

}  // namespace

extern "C" {

#define BENCH_API __attribute__((visibility("default")))

BENCH_API void* bench_load_create(const char* layout, int64_t chunks, int64_t tensors) {
  auto bench = std::make_unique<Bench>();
  return fill(bench.get(), cut_of(layout, chunks), tensors) ? bench.release() : nullptr;
}

BENCH_API void bench_load_index(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  bench->index = std::make_unique<plan::CatalogIndex>(bench->catalog);
}

// Reads of the plan, or -1.
BENCH_API int64_t bench_load_plan(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  auto made = plan::make_load_plan(bench->state, *bench->index, {}, 0);
  if (!made.ok()) return -1;
  bench->made = *std::move(made);
  return static_cast<int64_t>(bench->made.reads.size());
}

BENCH_API int32_t bench_load_check(void* handle) {
  const auto* bench = static_cast<const Bench*>(handle);
  return equals_brute_force(*bench) &&
         plan::check_load_plan(bench->made, bench->state, bench->catalog).ok();
}

BENCH_API void bench_load_forget(void* handle) {
  auto* bench = static_cast<Bench*>(handle);
  bench->made = plan::LoadPlan();
}

BENCH_API void bench_load_release(void* handle) {
  delete static_cast<Bench*>(handle);
}

}  // extern "C"
