// SPDX-License-Identifier: Apache-2.0
//
// make_tensor_view: what it takes, what it refuses, what it normalises.
#include "core/tensor/tensor_view.h"

#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace shardwright {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Arguments of a float32 tensor over 64 bytes that a test then changes.
struct Draft {
  std::byte memory[64] = {};
  void* data = memory;
  std::vector<int64_t> shape = {2, 4};
  std::vector<int64_t> strides;
  TensorArguments arguments;

  Draft() {
    arguments.byte_size = sizeof(memory);
    arguments.dtype = DType::kFloat32;
  }
  Result<TensorView> make() {
    arguments.data = data;
    arguments.shape = shape;
    arguments.strides = strides;
    return make_tensor_view(arguments);
  }
};

TEST(TensorView, TakesARowMajorTensor) {
  Draft draft;
  draft.arguments.byte_offset = 8;
  draft.arguments.byte_size = 56;
  draft.arguments.device_id = 3;
  draft.arguments.read_only = true;
  draft.arguments.stream = 9;
  const TensorView view = *draft.make();
  EXPECT_EQ(view.data, draft.memory + 8);
  EXPECT_EQ(view.shape, (Dims{2, 4}));
  EXPECT_TRUE(view.strides.empty());
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.element_count(), 8);
  EXPECT_EQ(view.device_id, 3);
  EXPECT_TRUE(view.read_only);
  EXPECT_EQ(view.stream, 9U);
}

TEST(TensorView, DropsStridesThatSayRowMajor) {
  Draft draft;
  draft.shape = {2, 1, 4};
  draft.strides = {4, -77, 1};  // the stride of an extent of 1 does not matter
  const TensorView view = *draft.make();
  EXPECT_TRUE(view.strides.empty());
}

TEST(TensorView, KeepsOtherStrides) {
  Draft draft;
  draft.strides = {1, 2};
  const TensorView view = *draft.make();
  EXPECT_EQ(view.strides, (Dims{1, 2}));
  EXPECT_FALSE(view.is_contiguous());
}

TEST(TensorView, ScalarHasOneElement) {
  Draft draft;
  draft.shape = {};
  draft.arguments.byte_size = 4;
  const TensorView view = *draft.make();
  EXPECT_EQ(view.element_count(), 1);
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorView, EmptyTensorNeedsNoMemoryAndIgnoresStrides) {
  Draft draft;
  draft.data = nullptr;
  draft.shape = {3, 0, 5};
  draft.strides = {-1, kMax, 7};
  draft.arguments.byte_size = 0;
  draft.arguments.byte_offset = 16;
  const TensorView view = *draft.make();
  EXPECT_EQ(view.data, nullptr);
  EXPECT_EQ(view.element_count(), 0);
  EXPECT_TRUE(view.is_contiguous());
}

TEST(TensorView, ByteSizeZeroTrustsShapeAndStrides) {
  Draft draft;
  draft.arguments.byte_size = 0;
  EXPECT_TRUE(draft.make().ok());
}

struct RefusedView {
  std::string_view what;
  std::function<void(Draft&)> spoil;
  StatusCode code = StatusCode::kInvalidArgument;
};

TEST(TensorView, RefusesBadArguments) {
  const std::vector<RefusedView> cases = {
      {"invalid dtype", [](Draft& d) { d.arguments.dtype = DType::kInvalid; }},
      {"dtype outside the table", [](Draft& d) { d.arguments.dtype = static_cast<DType>(99); }},
      {"too many dimensions", [](Draft& d) { d.shape = std::vector<int64_t>(65, 1); }},
      {"wrong stride count", [](Draft& d) { d.strides = {1}; }},
      {"negative extent", [](Draft& d) { d.shape = {2, -4}; }},
      {"overflowing count", [](Draft& d) { d.shape = {kMax, 2}; }},
      {"overflowing count beside zero", [](Draft& d) { d.shape = {kMax, 2, 0}; }},
      {"overflowing bytes", [](Draft& d) { d.shape = {kMax / 2}; }},
      {"negative stride", [](Draft& d) { d.strides = {-4, 1}; }},
      {"overflowing stride", [](Draft& d) { d.strides = {kMax, kMax}; }},
      {"overflowing reach", [](Draft& d) { d.strides = {kMax, 1}; }},
      {"buffer too small", [](Draft& d) { d.arguments.byte_size = 31; }},
      {"strides leave the buffer", [](Draft& d) { d.strides = {14, 1}; }},
      {"byte_size above 63 bits", [](Draft& d) { d.arguments.byte_size = uint64_t{1} << 63; }},
      {"byte_offset above 63 bits", [](Draft& d) { d.arguments.byte_offset = uint64_t{1} << 63; }},
      {"NULL data", [](Draft& d) { d.data = nullptr; }},
      {"beyond the address space",
       [](Draft& d) { d.data = reinterpret_cast<void*>(~uintptr_t{15}); }},
      {"unknown device", [](Draft& d) { d.arguments.device_type = 5; }, StatusCode::kUnimplemented},
      {"device 0", [](Draft& d) { d.arguments.device_type = 0; }, StatusCode::kUnimplemented},
      {"strided sub-byte tensor",
       [](Draft& d) {
         d.arguments.dtype = DType::kInt4;
         d.strides = {1, 2};
       },
       StatusCode::kUnimplemented},
  };
  for (const RefusedView& each : cases) {
    Draft draft;
    each.spoil(draft);
    EXPECT_EQ(draft.make().status().code(), each.code) << each.what;
  }
}

TEST(TensorView, StridesMayEndExactlyAtTheBuffer) {
  Draft draft;
  draft.strides = {12, 1};  // last element is 15, byte 60
  EXPECT_TRUE(draft.make().ok());
}

TEST(Devices, HostAccessibleOnes) {
  for (const int32_t type : {1, 3, 11}) EXPECT_TRUE(device_is_host_accessible(type)) << type;
  for (const int32_t type : {0, 2, 10, 13, 99})
    EXPECT_FALSE(device_is_host_accessible(type)) << type;
}

}  // namespace
}  // namespace shardwright
