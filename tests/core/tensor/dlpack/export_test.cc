// SPDX-License-Identifier: Apache-2.0
//
// DLPack export: fields, ownership, and the way back through the import.
#include "core/tensor/dlpack/export.h"

#include <vector>

#include <gtest/gtest.h>

#include "core/tensor/dlpack/import.h"

namespace shardwright::dlpack {
namespace {

struct Owned {
  std::shared_ptr<std::vector<std::byte>> memory = std::make_shared<std::vector<std::byte>>(64);
  TensorView view;

  explicit Owned(const Dims& shape, const Dims& strides = {}, DType dtype = DType::kBfloat16) {
    TensorArguments arguments;
    arguments.data = memory->data();
    arguments.byte_size = memory->size();
    arguments.dtype = dtype;
    arguments.shape = shape;
    arguments.strides = strides;
    view = *make_tensor_view(arguments);
  }
};

TEST(DLPackExport, FillsAllFieldsAndHoldsTheOwner) {
  const Owned owned({2, 3, 4});
  DLManagedTensorVersioned* managed = *export_versioned(owned.view, owned.memory);
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->flags, 0U);
  EXPECT_EQ(managed->dl_tensor.data, owned.memory->data());
  EXPECT_EQ(managed->dl_tensor.ndim, 3);
  EXPECT_EQ(managed->dl_tensor.dtype.code, 4);
  EXPECT_EQ(managed->dl_tensor.dtype.bits, 16);
  EXPECT_EQ(managed->dl_tensor.dtype.lanes, 1);
  EXPECT_EQ(managed->dl_tensor.byte_offset, 0U);
  EXPECT_EQ(managed->dl_tensor.device.type, 1);
  EXPECT_EQ(std::vector<int64_t>(managed->dl_tensor.shape, managed->dl_tensor.shape + 3),
            (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(std::vector<int64_t>(managed->dl_tensor.strides, managed->dl_tensor.strides + 3),
            (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(owned.memory.use_count(), 2);
  managed->deleter(managed);
  EXPECT_EQ(owned.memory.use_count(), 1);
}

TEST(DLPackExport, MarksReadOnlyMemory) {
  Owned owned({4});
  owned.view.read_only = true;
  DLManagedTensorVersioned* managed = *export_versioned(owned.view, owned.memory);
  EXPECT_EQ(managed->flags, kFlagReadOnly);
  managed->deleter(managed);
  EXPECT_EQ(export_legacy(owned.view, owned.memory).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(owned.memory.use_count(), 1);
}

TEST(DLPackExport, RefusesAnInvalidDtype) {
  EXPECT_EQ(export_versioned(TensorView(), nullptr).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(export_legacy(TensorView(), nullptr).status().code(), StatusCode::kInvalidArgument);
}

TEST(DLPackExport, ComesBackEqualThroughTheImport) {
  const std::vector<Owned> tensors = {Owned({2, 3, 4}),
                                      Owned({2, 3}, {1, 2}),
                                      Owned({}),
                                      Owned({0, 5}),
                                      Owned({2, 6}, {}, DType::kFloat4E2m1fn),
                                      Owned(Dims(12, 1))};
  for (const Owned& owned : tensors) {
    {
      const Result<ImportedTensor> versioned =
          import_versioned(*export_versioned(owned.view, owned.memory), {});
      ASSERT_TRUE(versioned.ok()) << versioned.status().to_string();
      const Result<ImportedTensor> legacy =
          import_legacy(*export_legacy(owned.view, owned.memory), {});
      ASSERT_TRUE(legacy.ok()) << legacy.status().to_string();
      for (const TensorView& view : {versioned->view, legacy->view}) {
        EXPECT_EQ(view.data, owned.view.data);
        EXPECT_EQ(view.dtype, owned.view.dtype);
        EXPECT_EQ(view.shape, owned.view.shape);
        EXPECT_EQ(view.strides, owned.view.strides);
      }
      EXPECT_EQ(owned.memory.use_count(), 3);
    }
    EXPECT_EQ(owned.memory.use_count(), 1);
  }
}

}  // namespace
}  // namespace shardwright::dlpack
