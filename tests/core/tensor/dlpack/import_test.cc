// SPDX-License-Identifier: Apache-2.0
//
// DLPack import: who owns what on success and failure, and every refusal.
#include "core/tensor/dlpack/import.h"

#include <array>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright::dlpack {
namespace {

// A producer: one float32 tensor of 2 x 3 whose deleter counts its calls.
template <typename Managed>
struct Producer {
  std::array<float, 8> memory{};
  std::array<int64_t, 2> shape{2, 3};
  std::array<int64_t, 2> strides{3, 1};
  int deleted = 0;
  Managed managed;

  Producer() {
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; };
    Tensor& tensor = managed.dl_tensor;
    tensor.data = memory.data();
    tensor.device = {1, 0};
    tensor.ndim = 2;
    tensor.dtype = {2, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.data();
    if constexpr (requires { managed.version; }) managed.version = {1, 0};
  }
};
using Versioned = Producer<DLManagedTensorVersioned>;
using Legacy = Producer<DLManagedTensor>;

TEST(DLPackImport, ViewsTheMemoryAndDeletesOnceWithTheLastReference) {
  Versioned producer;
  {
    Result<ImportedTensor> imported =
        import_versioned(&producer.managed, {.load_target = true, .stream = 5});
    ASSERT_TRUE(imported.ok()) << imported.status().to_string();
    EXPECT_EQ(imported->view.data, reinterpret_cast<std::byte*>(producer.memory.data()));
    EXPECT_EQ(imported->view.dtype, DType::kFloat32);
    EXPECT_EQ(imported->view.shape, (Dims{2, 3}));
    EXPECT_EQ(imported->view.stream, 5U);
    EXPECT_FALSE(imported->view.read_only);
    const std::shared_ptr<void> second = imported->keepalive;
    imported->keepalive.reset();
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPackImport, LegacyStructWorksTheSame) {
  Legacy producer;
  {
    const Result<ImportedTensor> imported = import_legacy(&producer.managed, {});
    ASSERT_TRUE(imported.ok()) << imported.status().to_string();
    EXPECT_EQ(imported->view.shape, (Dims{2, 3}));
    EXPECT_EQ(producer.deleted, 0);
  }
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DLPackImport, NullDeleterIsFine) {
  Versioned versioned;
  versioned.managed.deleter = nullptr;
  EXPECT_TRUE(import_versioned(&versioned.managed, {}).ok());
  Legacy legacy;
  legacy.managed.deleter = nullptr;
  EXPECT_TRUE(import_legacy(&legacy.managed, {}).ok());
}

TEST(DLPackImport, NullStridesMeanRowMajorAndByteOffsetCounts) {
  Legacy producer;
  producer.managed.dl_tensor.strides = nullptr;
  producer.managed.dl_tensor.byte_offset = 8;
  const Result<ImportedTensor> imported = import_legacy(&producer.managed, {});
  ASSERT_TRUE(imported.ok());
  EXPECT_TRUE(imported->view.is_contiguous());
  EXPECT_EQ(imported->view.data, reinterpret_cast<std::byte*>(producer.memory.data() + 2));
}

TEST(DLPackImport, KeepsStridesAndReadOnly) {
  Versioned producer;
  producer.strides = {1, 2};
  producer.managed.flags = kFlagReadOnly | kFlagIsCopied;
  const Result<ImportedTensor> imported = import_versioned(&producer.managed, {});
  ASSERT_TRUE(imported.ok());
  EXPECT_TRUE(imported->view.read_only);
  EXPECT_EQ(imported->view.strides, (Dims{1, 2}));
}

TEST(DLPackImport, ScalarsAndEmptyTensors) {
  Versioned scalar;
  scalar.managed.dl_tensor.ndim = 0;
  scalar.managed.dl_tensor.shape = nullptr;
  scalar.managed.dl_tensor.strides = nullptr;
  const Result<ImportedTensor> one = import_versioned(&scalar.managed, {});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->view.element_count(), 1);
  Versioned empty;
  empty.shape = {0, 3};
  empty.managed.dl_tensor.data = nullptr;
  const Result<ImportedTensor> none = import_versioned(&empty.managed, {});
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->view.element_count(), 0);
}

TEST(DLPackImport, NewerMinorVersionsAreFine) {
  Versioned producer;
  producer.managed.version = {1, 99};
  EXPECT_TRUE(import_versioned(&producer.managed, {}).ok());
}

template <typename Managed>
struct Refusal {
  std::string_view what;
  std::function<void(Producer<Managed>&)> spoil;
  StatusCode code = StatusCode::kInvalidArgument;
};

// What both structs can get wrong.
template <typename Managed>
std::vector<Refusal<Managed>> shared_refusals() {
  using P = Producer<Managed>;
  constexpr StatusCode kUnimplemented = StatusCode::kUnimplemented;
  return {
      {"opaque", [](P& p) { p.managed.dl_tensor.dtype = {3, 64, 1}; }, kUnimplemented},
      {"lanes", [](P& p) { p.managed.dl_tensor.dtype.lanes = 4; }, kUnimplemented},
      {"unknown dtype", [](P& p) { p.managed.dl_tensor.dtype = {99, 8, 1}; }, kUnimplemented},
      {"unknown device", [](P& p) { p.managed.dl_tensor.device.type = 77; }, kUnimplemented},
      {"float6 bits", [](P& p) { p.managed.dl_tensor.dtype = {15, 8, 1}; }},
      {"float4 bits", [](P& p) { p.managed.dl_tensor.dtype = {17, 8, 1}; }},
      {"negative extent", [](P& p) { p.shape[0] = -2; }},
      {"overflowing extent", [](P& p) { p.shape[0] = INT64_MAX; }},
      {"negative stride", [](P& p) { p.strides[0] = -3; }},
      {"negative ndim", [](P& p) { p.managed.dl_tensor.ndim = -1; }},
      {"large ndim", [](P& p) { p.managed.dl_tensor.ndim = 65; }},
      {"NULL shape", [](P& p) { p.managed.dl_tensor.shape = nullptr; }},
      {"NULL data", [](P& p) { p.managed.dl_tensor.data = nullptr; }},
      {"huge byte_offset", [](P& p) { p.managed.dl_tensor.byte_offset = UINT64_MAX; }},
  };
}

TEST(DLPackImport, RefusalsLeaveTheVersionedStructToTheCaller) {
  auto cases = shared_refusals<DLManagedTensorVersioned>();
  cases.push_back(
      {"major 0", [](Versioned& p) { p.managed.version.major = 0; }, StatusCode::kUnimplemented});
  cases.push_back(
      {"major 2", [](Versioned& p) { p.managed.version.major = 2; }, StatusCode::kUnimplemented});
  cases.push_back(
      {"unknown flag", [](Versioned& p) { p.managed.flags = 8; }, StatusCode::kUnimplemented});
  cases.push_back({"padded sub-byte",
                   [](Versioned& p) {
                     p.managed.dl_tensor.dtype = {17, 4, 1};
                     p.managed.flags = kFlagSubbytePadded;
                   },
                   StatusCode::kUnimplemented});
  cases.push_back({"strided sub-byte",
                   [](Versioned& p) {
                     p.managed.dl_tensor.dtype = {17, 4, 1};
                     p.strides = {1, 2};
                   },
                   StatusCode::kUnimplemented});
  cases.push_back({"read-only load target", [](Versioned& p) { p.managed.flags = kFlagReadOnly; }});
  for (const auto& each : cases) {
    Versioned producer;
    each.spoil(producer);
    EXPECT_EQ(import_versioned(&producer.managed, {.load_target = true}).status().code(), each.code)
        << each.what;
    EXPECT_EQ(producer.deleted, 0) << each.what;
  }
}

TEST(DLPackImport, RefusalsLeaveTheLegacyStructToTheCaller) {
  for (const auto& each : shared_refusals<DLManagedTensor>()) {
    Legacy producer;
    each.spoil(producer);
    EXPECT_EQ(import_legacy(&producer.managed, {}).status().code(), each.code) << each.what;
    EXPECT_EQ(producer.deleted, 0) << each.what;
  }
}

TEST(DLPackImport, RefusesNull) {
  EXPECT_EQ(import_versioned(nullptr, {}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(import_legacy(nullptr, {}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::dlpack
