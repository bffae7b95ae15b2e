// SPDX-License-Identifier: Apache-2.0
//
// The recording wrapper tells every call; the fault wrapper puts a failure in the place of any
// call, torn writes included.
#include <gtest/gtest.h>

#include "core/storage/backends.h"

namespace shardwright::storage {
namespace {

using Operation = StorageEvent::Operation;

// One of every call.
Status use_everything(Storage* storage) {
  SHW_RETURN_IF_ERROR(storage->create_prefix("p"));
  OpenOptions options;
  options.mode = OpenMode::kCreate;
  SHW_ASSIGN_OR_RETURN(const auto object, storage->open("p/key", options));
  SHW_RETURN_IF_ERROR(object->write_at(0, std::as_bytes(std::span("abcd", 4))));
  SHW_RETURN_IF_ERROR(object->sync());
  SHW_RETURN_IF_ERROR(object->commit(CommitCondition::kIfAbsent, {}));
  SHW_RETURN_IF_ERROR(storage->sync_prefix("p", nullptr));
  SHW_ASSIGN_OR_RETURN(const auto lock, storage->try_lock("p/.lock", LockMode::kShared));
  SHW_RETURN_IF_ERROR(storage->stat("p/key").status());
  SHW_RETURN_IF_ERROR(read_all(*storage, "p/key", 100).status());
  SHW_RETURN_IF_ERROR(storage->list("", kNoDelimiter, [](const ListEntry&) { return Status(); }));
  return storage->remove("p/key");
}

std::vector<std::string> names_of_calls() {
  std::vector<std::string> names;
  const auto memory = make_memory_storage();
  const auto recording = make_recording_storage(*memory, [&](const StorageEvent& event) {
    EXPECT_EQ(event.sequence, static_cast<int64_t>(names.size()));
    names.emplace_back(operation_name(event.operation));
  });
  const Status used = use_everything(recording.get());
  EXPECT_TRUE(used.ok()) << used.to_string();
  return names;
}

TEST(RecordingStorage, TellsEachCallInOrder) {
  EXPECT_EQ(names_of_calls(),
            (std::vector<std::string>{"create_prefix", "open", "write", "sync", "commit",
                                      "sync_prefix", "lock", "stat", "open", "stat", "read",
                                      "close", "list", "remove"}));
}

TEST(RecordingStorage, ShowsTheBytesOfAWrite) {
  std::string written;
  const auto memory = make_memory_storage();
  const auto recording = make_recording_storage(*memory, [&](const StorageEvent& event) {
    if (event.operation == Operation::kWrite)
      written.append(reinterpret_cast<const char*>(event.data.data()), event.data.size());
  });
  ASSERT_TRUE(use_everything(recording.get()).ok());
  EXPECT_EQ(written, "abcd");
}

TEST(FaultStorage, FailsAnyCallOfTheWorkload) {
  const int64_t calls = static_cast<int64_t>(names_of_calls().size());
  for (int64_t failing = 0; failing < calls; ++failing) {
    const auto memory = make_memory_storage();
    const auto faulty = make_fault_storage(*memory, [&](const StorageEvent& event, uint64_t*) {
      return event.sequence == failing ? unavailable("injected") : Status();
    });
    const Status status = use_everything(faulty.get());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << failing;
    EXPECT_EQ(status.message(), "injected") << failing;
  }
}

TEST(FaultStorage, WritesTheDecidedPartBeforeItFails) {
  const auto memory = make_memory_storage();
  const auto faulty =
      make_fault_storage(*memory, [](const StorageEvent& event, uint64_t* done_bytes) {
        if (event.operation != Operation::kWrite) return Status();
        *done_bytes = 2;
        return status_from_errno(ENOSPC, "write", event.key);
      });
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  const auto object = faulty->open("key", options);
  ASSERT_TRUE(object.ok());
  EXPECT_EQ((*object)->write_at(0, std::as_bytes(std::span("abcd", 4))).code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(memory->stat("key")->size_bytes, 2U);
}

TEST(FaultStorage, LeavesWhatAnAbortWouldHaveRemoved) {
  const auto memory = make_memory_storage();
  const auto faulty = make_fault_storage(*memory, [](const StorageEvent& event, uint64_t*) {
    return event.operation == Operation::kAbort ? unavailable("killed") : Status();
  });
  OpenOptions options;
  options.mode = OpenMode::kCreateVisible;
  const auto object = faulty->open("key", options);
  ASSERT_TRUE(object.ok());
  (*object)->abort();
  EXPECT_TRUE(memory->stat("key").ok());
}

}  // namespace
}  // namespace shardwright::storage
