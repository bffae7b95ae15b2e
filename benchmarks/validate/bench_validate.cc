// SPDX-License-Identifier: Apache-2.0
//
// The cover proof of the core, for shardwright.py: one tensor that is cut into about `chunks`
// boxes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "core/plan/catalog.h"

namespace {

using shardwright::Box;
using shardwright::Dims;
namespace plan = shardwright::plan;

struct Cut {
  Dims shape;
  std::vector<Box> boxes;
};

Box box(Dims offsets, Dims sizes) {
  return {std::move(offsets), std::move(sizes)};
}

Cut rows(int64_t count) {
  Cut cut{{8 * count}, {}};
  for (int64_t i = 0; i < count; ++i) cut.boxes.push_back(box({8 * i}, {8}));
  return cut;
}

Cut square(int64_t count) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(count)));
  Cut cut{{8 * side, 8 * side}, {}};
  for (int64_t i = 0; i < side; ++i) {
    for (int64_t k = 0; k < side; ++k) cut.boxes.push_back(box({8 * i, 8 * k}, {8, 8}));
  }
  return cut;
}

Cut cube(int64_t count) {
  const auto side = static_cast<int64_t>(std::cbrt(static_cast<double>(count)) + 0.5);
  Cut cut{{8 * side, 8 * side, 8 * side}, {}};
  for (int64_t i = 0; i < side * side * side; ++i) {
    cut.boxes.push_back(
        box({8 * (i / side / side), 8 * (i / side % side), 8 * (i % side)}, {8, 8, 8}));
  }
  return cut;
}

// Halves boxes at random places of random dimensions, then mixes them.
Cut random(int64_t count, Dims shape) {
  std::mt19937_64 engine(7);
  Cut cut{shape, {}};
  std::vector<std::pair<Box, int64_t>> left{{shardwright::whole_box(shape), count}};
  while (!left.empty()) {
    auto [from, pieces] = std::move(left.back());
    left.pop_back();
    const size_t d = engine() % shape.size();
    if (pieces <= 1 || from.sizes[d] < 2) {
      cut.boxes.push_back(from);
      continue;
    }
    const auto at = 1 + static_cast<int64_t>(engine() % static_cast<uint64_t>(from.sizes[d] - 1));
    Box high = from;
    from.sizes[d] = at;
    high.offsets[d] += at;
    high.sizes[d] -= at;
    left.emplace_back(std::move(from), pieces / 2);
    left.emplace_back(std::move(high), pieces - pieces / 2);
  }
  std::shuffle(cut.boxes.begin(), cut.boxes.end(), engine);
  return cut;
}

// Half of the boxes are columns, half rows, each as long as the tensor.
Cut thin(int64_t count) {
  const int64_t half = count / 2;
  Cut cut{{2 * half, half}, {}};
  for (int64_t i = 0; i < half; ++i) {
    cut.boxes.push_back(box({0, i}, {half, 1}));
    cut.boxes.push_back(box({half + i, 0}, {1, half}));
  }
  std::shuffle(cut.boxes.begin(), cut.boxes.end(), std::mt19937_64(3));
  return cut;
}

// All boxes begin at 0 in the first dimension.
Cut same_start(int64_t count) {
  Cut cut{{64, count}, {}};
  for (int64_t i = 0; i < count; ++i) cut.boxes.push_back(box({0, i}, {64, 1}));
  std::shuffle(cut.boxes.begin(), cut.boxes.end(), std::mt19937_64(3));
  return cut;
}

Cut cut_of(std::string_view layout, int64_t count) {
  constexpr int64_t kWide = int64_t{1} << 40;
  constexpr int64_t kSide = int64_t{1} << 20;
  if (layout == "rows_1d") return rows(count);
  if (layout == "random_1d") return random(count, {kWide});
  if (layout == "grid_2d") return square(count);
  if (layout == "random_2d") return random(count, {kSide, kSide});
  if (layout == "grid_3d") return cube(count);
  if (layout == "random_3d") return random(count, {kSide, kSide, kSide});
  if (layout == "thin") return thin(count);
  return same_start(count);
}

plan::Catalog catalog_of(const Cut& cut) {
  plan::Catalog catalog;
  std::vector<plan::CatalogBuilder::Chunk> chunks;
  for (const Box& each : cut.boxes) chunks.push_back({each, 0});
  plan::CatalogBuilder::Tensor tensor;
  tensor.name = "w";
  tensor.dtype = shardwright::DType::kInt8;
  tensor.kind = shardwright::EntryKind::kSharded;
  tensor.shape = cut.shape;
  if (!plan::CatalogBuilder(&catalog).add_tensor(tensor, chunks).ok()) return {};
  return catalog;
}

// A random box of the list is moved onto another one.
bool refuses_damage(Cut cut) {
  std::mt19937_64 engine(11);
  for (int i = 0; i < 20; ++i) {
    Cut damaged = cut;
    const size_t a = engine() % damaged.boxes.size();
    const size_t b = (a + 1 + engine() % (damaged.boxes.size() - 1)) % damaged.boxes.size();
    damaged.boxes[a] = damaged.boxes[b];
    const plan::Catalog catalog = catalog_of(damaged);
    if (catalog.tensors.empty() || plan::prove_cover(catalog, 0).ok()) return false;
  }
  return true;
}

}  // namespace

extern "C" {

#define BENCH_API __attribute__((visibility("default")))

BENCH_API void* bench_validate_create(const char* layout, int64_t chunks) {
  auto catalog = std::make_unique<plan::Catalog>(catalog_of(cut_of(layout, chunks)));
  return catalog->tensors.empty() ? nullptr : catalog.release();
}

BENCH_API int64_t bench_validate_chunks(const void* handle) {
  return static_cast<int64_t>(static_cast<const plan::Catalog*>(handle)->chunk_count());
}

// The shape, then offsets and sizes of each chunk; how many dimensions each has, three at most.
BENCH_API int32_t bench_validate_boxes(const void* handle, int64_t* out) {
  const auto& catalog = *static_cast<const plan::Catalog*>(handle);
  out = std::ranges::copy(catalog.shape(0), out).out;
  for (size_t c = 0; c < catalog.chunk_count(); ++c) {
    const Box box = catalog.chunk_box(c);
    out = std::ranges::copy(box.offsets, out).out;
    out = std::ranges::copy(box.sizes, out).out;
  }
  return static_cast<int32_t>(catalog.shape(0).size());
}

BENCH_API int32_t bench_validate_prove(const void* handle) {
  return plan::prove_cover(*static_cast<const plan::Catalog*>(handle), 0).ok() ? 1 : 0;
}

// Whether damaged forms of the same layout with few chunks are refused.
BENCH_API int32_t bench_validate_check(const char* layout, int64_t chunks) {
  return refuses_damage(cut_of(layout, chunks)) ? 1 : 0;
}

BENCH_API void bench_validate_release(void* handle) {
  delete static_cast<plan::Catalog*>(handle);
}

}  // extern "C"
