// SPDX-License-Identifier: Apache-2.0
//
// How many files of a directory are taken; what becomes of them is in zarr_checkpoint_test.cc.
#include "core/format/megatron/zarr_files.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::megatron {
namespace {

TEST(ZarrFiles, AreListedUpToANumber) {
  const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
  for (const char* name : {"a", "b", "l.sync/.zarray", "l.sync/0"})
    safetensors::test::store(memory.get(), std::string("c/") + name, "");
  const auto found = find_zarr_files({memory, "c"}, 4);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->files.size(), 2U);  // locks are none
  const Status refused = find_zarr_files({memory, "c"}, 3).status();
  EXPECT_FAILURE(refused, StatusCode::kResourceExhausted, "more than 3 files");
  EXPECT_EQ(refused.detail("resource"), "files");
  EXPECT_TRUE(find_zarr_files({memory, "c"}).ok());
}

}  // namespace
}  // namespace shardwright::format::megatron
