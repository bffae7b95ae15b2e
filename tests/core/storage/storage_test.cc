// SPDX-License-Identifier: Apache-2.0
//
// Whole objects that are written at once: in which order, how they are synced and what a failure of
// any call leaves.
#include "core/storage/storage.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/storage/backends.h"
#include "tests/support/expect_failure.h"
#include "tests/support/temporary_directory.h"

namespace shardwright::storage {
namespace {

using Operation = StorageEvent::Operation;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string content(Storage& storage, std::string_view key) {
  const auto bytes = read_all(storage, key, 100);
  if (!bytes.ok()) return std::string(status_code_name(bytes.status().code()));
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

OpenOptions options_of(OpenMode mode, bool durable) {
  OpenOptions options;
  options.mode = mode;
  options.durable = durable;
  options.temporary_suffix = "mine";
  return options;
}

using Write = Status (*)(Storage&, std::string_view, std::span<const std::byte>, OpenOptions);

std::string calls_of(Write write, OpenMode mode, bool durable, std::string_view text = "bytes") {
  std::string calls;
  const auto memory = make_memory_storage();
  const auto recording = make_recording_storage(*memory, [&](const StorageEvent& event) {
    calls += fmt::format("{} {};", operation_name(event.operation), event.key);
  });
  const Status written = write(*recording, "p/key", bytes_of(text), options_of(mode, durable));
  EXPECT_TRUE(written.ok()) << written.to_string();
  EXPECT_EQ(content(*memory, "p/key"), text);
  return calls;
}

TEST(WholeObjects, AreSyncedBeforeTheyAreSeen) {
  EXPECT_EQ(calls_of(write_all, OpenMode::kCreate, true),
            "open p/key;write p/key;sync p/key;commit p/key;close p/key;");
  EXPECT_EQ(calls_of(write_all, OpenMode::kCreateVisible, true),
            "open p/key;write p/key;sync p/key;close p/key;");
  EXPECT_EQ(calls_of(put_in_place, OpenMode::kRead, true),
            "remove p/key.mine;open p/key;write p/key;sync p/key;commit p/key;close p/key;");
}

TEST(WholeObjects, AreNotSyncedWhereNobodyWantsIt) {
  EXPECT_EQ(calls_of(write_all, OpenMode::kCreate, false),
            "open p/key;write p/key;commit p/key;close p/key;");
  EXPECT_EQ(calls_of(write_all, OpenMode::kCreateVisible, false, ""), "open p/key;close p/key;");
}

TEST(WholeObjects, AreNotSeenBeforeTheirCommit) {
  const auto memory = make_memory_storage();
  {
    const auto object =
        write_uncommitted(*memory, "key", bytes_of("late"), options_of(OpenMode::kCreate, true));
    ASSERT_TRUE(object.ok()) << object.status().to_string();
    EXPECT_EQ(memory->stat("key").status().code(), StatusCode::kNotFound);
    ASSERT_TRUE((*object)->commit(CommitCondition::kIfAbsent, {}).ok());
  }
  EXPECT_EQ(content(*memory, "key"), "late");
}

// A failure of any call but the last leaves what was there.
TEST(WholeObjects, OfFailedWritesAreNotSeen) {
  for (const Operation failing :
       {Operation::kOpen, Operation::kWrite, Operation::kSync, Operation::kCommit}) {
    const auto memory = make_memory_storage();
    ASSERT_TRUE(
        write_all(*memory, "key", bytes_of("old"), options_of(OpenMode::kCreate, true)).ok());
    const auto faulty = make_fault_storage(*memory, [&](const StorageEvent& event, uint64_t*) {
      return event.operation == failing ? unavailable("injected") : Status();
    });
    EXPECT_FAILURE(
        put_in_place(*faulty, "key", bytes_of("new"), options_of(OpenMode::kCreate, true)),
        StatusCode::kUnavailable, "injected");
    EXPECT_EQ(content(*memory, "key"), "old") << operation_name(failing);
  }
}

TEST(WholeObjects, HaveTheirOptions) {
  const shardwright::test::TemporaryDirectory directory;
  const auto files = make_posix_storage(directory.path());
  OpenOptions options = options_of(OpenMode::kCreate, true);
  options.file_mode = 0600;
  // What a writer that was killed has left.
  ASSERT_TRUE(write_all(*files, "key.mine", bytes_of("half"), options).ok());
  EXPECT_EQ(write_all(*files, "key", bytes_of("text"), options).code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(put_in_place(*files, "key", bytes_of("text"), options).ok());
  EXPECT_EQ(content(*files, "key"), "text");
  EXPECT_EQ(content(*files, "key.mine"), "NOT_FOUND");
  const auto mode = std::filesystem::status(directory / "key").permissions();
  EXPECT_EQ(mode, std::filesystem::perms(0600));
}

}  // namespace
}  // namespace shardwright::storage
