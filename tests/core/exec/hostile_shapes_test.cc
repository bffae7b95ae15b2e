// SPDX-License-Identifier: Apache-2.0
//
// Hostile and broken checkpoints of torch, one row each: what attackers, killed jobs and bad disks
// leave. All of each is read that can be: it ends with the status of its row, which names a file
// and, where a byte is to blame, an offset; nothing is called, no file is touched, and memory stays
// within what the files have.
#include <sys/resource.h>

#include <memory>

#include <gtest/gtest.h>

#include "core/exec/checkpoint.h"
#include "core/exec/runtime.h"
#include "core/storage/backends.h"
#include "tests/core/exec/hostile_rows.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::exec::test {
namespace {

using enum StatusCode;

class HostileShapes : public testing::Test {
 protected:
  // Opens what lies there and reads all of it; the first failure.
  Status read_all(const std::filesystem::path& path) {
    format::Location location;
    location.storage = storage::make_posix_storage(path);
    location.display = path;
    SHW_ASSIGN_OR_RETURN(const auto opened, Checkpoint::open(*runtime_, location));
    const CallContext call;
    for (size_t i = 0; i < opened->catalog().tensors.size(); ++i)
      SHW_RETURN_IF_ERROR(
          opened->tensor_digest(i, integrity::TensorDigestAlgorithm::kXxh3, call).status());
    for (size_t i = 0; i < opened->catalog().objects.size(); ++i)
      SHW_RETURN_IF_ERROR(opened->read_object(i, ReadRules()).status());
    return opened->verify(true, call).status();
  }

  void run(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.what);
      const shardwright::test::TemporaryDirectory directory;
      const Place place(directory.path());
      row.make(place);
      const auto before = place.files();
      const bool is_file = before.contains(kFile);
      const Status status = read_all(place.root() / (is_file ? kFile : "ckpt"));
      EXPECT_EQ(status.code(), row.code) << status.to_string();
      EXPECT_NE(status.to_string().find(row.says), std::string::npos) << status.to_string();
      const bool names_it = !status.detail("file").empty() ||
                            status.to_string().find(is_file ? kFile : "ckpt") != std::string::npos;
      EXPECT_TRUE(names_it) << status.to_string();
      // What the command line exits with 4 for.
      if (row.code == kPermissionDenied) {
        EXPECT_NE(status.detail("unsafe"), "") << status.to_string();
      }
      EXPECT_EQ(place.files(), before);
    }
  }

  std::unique_ptr<Runtime> runtime_ = std::move(*Runtime::create({}));
};

TEST_F(HostileShapes, TheSampleIsSound) {
  const shardwright::test::TemporaryDirectory directory;
  const Place place(directory.path());
  place.put(nullptr);
  place.put(kFile, sound_file());
  EXPECT_TRUE(read_all(place.root() / "ckpt").ok()) << read_all(place.root() / "ckpt").to_string();
  EXPECT_TRUE(read_all(place.root() / kFile).ok());
}

TEST_F(HostileShapes, PicklesOfIndexes) {
  run(index_calls());
  run(index_lengths());
}
TEST_F(HostileShapes, MeaningsOfIndexes) {
  run(index_boxes());
  run(index_places());
}
TEST_F(HostileShapes, DataFiles) {
  run(data_items());
  run(data_files());
}
TEST_F(HostileShapes, Archives) {
  run(archive_ends());
  run(archive_entries());
  run(archive_values());
}

TEST_F(HostileShapes, AreManyAndTakeLittleMemory) {
  size_t rows = 0;
  for (const auto list : {index_calls, index_lengths, index_boxes, index_places, data_items,
                          data_files, archive_ends, archive_entries, archive_values})
    rows += list().size();
  EXPECT_GE(rows, 100U);
  rusage usage{};
  ASSERT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
#if !defined(__clang__)  // sanitizers, which keep memory of their own, are built with it
  EXPECT_LT(usage.ru_maxrss / 1024, 1024);  // MiB, with the bomb that the rows themselves make
#endif
}

}  // namespace
}  // namespace shardwright::exec::test
