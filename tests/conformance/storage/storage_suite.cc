// SPDX-License-Identifier: Apache-2.0
//
// What every storage has to do, one sentence per test.
#include "tests/conformance/storage/storage_suite.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/support/random_source.h"

namespace shardwright::storage {
namespace {

// Bytes at an address that direct transfers take.
class AlignedBytes {
 public:
  explicit AlignedBytes(size_t size) : memory_(size + kAlignment) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    const size_t skip = (kAlignment - address % kAlignment) % kAlignment;
    bytes_ = std::span(memory_).subspan(skip, size);
  }
  std::span<std::byte> bytes() { return bytes_; }
  std::span<std::byte> part(size_t begin, size_t end) { return bytes_.subspan(begin, end - begin); }

 private:
  static constexpr size_t kAlignment = 4096;
  std::vector<std::byte> memory_;
  std::span<std::byte> bytes_;
};

AlignedBytes pattern(size_t size, uint64_t first) {
  test::RandomSource random(first);
  AlignedBytes result(size);
  for (std::byte& each : result.bytes()) each = static_cast<std::byte>(random.next() & 0xFF);
  return result;
}

TEST_P(StorageConformance, GivesBackWhatWasWritten) {
  put("a/b", "hello");
  EXPECT_EQ(text_of("a/b"), "hello");
  const Result<ObjectStat> stat = storage().stat("a/b");
  ASSERT_TRUE(stat.ok());
  EXPECT_EQ(stat->size_bytes, 5U);
  EXPECT_GT(stat->modified_ns, 0);
}

TEST_P(StorageConformance, KnowsEmptyObjects) {
  put("empty", "");
  EXPECT_EQ(text_of("empty"), "");
  EXPECT_EQ(storage().stat("empty")->size_bytes, 0U);
}

TEST_P(StorageConformance, SaysNotFoundForWhatIsNotThere) {
  EXPECT_EQ(open_code("missing", OpenMode::kRead), StatusCode::kNotFound);
  EXPECT_EQ(open_code("no/such/prefix", OpenMode::kRead), StatusCode::kNotFound);
  EXPECT_EQ(storage().stat("missing").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(storage().stat("").status().code(), StatusCode::kNotFound);
  put("dir/file", "x");
  EXPECT_EQ(open_code("dir", OpenMode::kRead), StatusCode::kNotFound);
}

TEST_P(StorageConformance, RefusesBadKeysInEveryCall) {
  for (const std::string_view key : {"/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\xff"}) {
    EXPECT_EQ(open_code(key, OpenMode::kRead), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(open_code(key, OpenMode::kCreate), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(open_code(key, OpenMode::kCreateVisible), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(storage().stat(key).status().code(), StatusCode::kInvalidArgument) << key;
    EXPECT_EQ(storage().create_prefix(key).code(), StatusCode::kInvalidArgument) << key;
  }
  EXPECT_EQ(open_code("", OpenMode::kCreate), StatusCode::kInvalidArgument);
  EXPECT_EQ(storage().remove("../x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(open_code(std::string_view("a\0b", 3), OpenMode::kRead), StatusCode::kInvalidArgument);
}

TEST_P(StorageConformance, NeverOverwritesAVisibleObject) {
  put("key", "first");
  EXPECT_EQ(open_code("key", OpenMode::kCreateVisible), StatusCode::kAlreadyExists);
  EXPECT_EQ(text_of("key"), "first");
}

TEST_P(StorageConformance, ReportsWhereAnObjectEnds) {
  put("key", "0123456789");
  const auto object = open("key", OpenMode::kRead);
  std::vector<std::byte> buffer(8);
  const Status status = object->read_at(6, buffer);
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_FALSE(status.detail("offset").empty());
  EXPECT_FALSE(status.detail("found").empty());
  EXPECT_EQ(object->read_at(100, buffer).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(object->read_at(10, std::span<std::byte>()).ok());
}

TEST_P(StorageConformance, ReadsAndWritesAtAnyOffsetAndSize) {
  if (!offers(kPositionalWrite)) GTEST_SKIP() << "positional writes are not offered";
  constexpr size_t kSize = 100003;
  AlignedBytes expected = pattern(kSize, 3);
  const auto object = open("key", OpenMode::kCreateVisible);
  for (const auto& [begin, end] :
       {std::pair<size_t, size_t>(40960, kSize), {0, 4097}, {4097, 40960}}) {
    ASSERT_TRUE(object->write_at(begin, expected.part(begin, end)).ok());
  }
  ASSERT_TRUE(object->close().ok());
  const auto reader = open("key", OpenMode::kRead);
  for (const auto& [begin, end] : {std::pair<size_t, size_t>(0, kSize),
                                   {1, 2},
                                   {4095, 8193},
                                   {8192, 65536},
                                   {4097, 65536},
                                   {99999, kSize}}) {
    AlignedBytes found(kSize);
    for (const auto target : {found.part(begin, end), found.part(0, end - begin)}) {
      ASSERT_TRUE(reader->read_at(begin, target).ok());
      EXPECT_TRUE(std::ranges::equal(target, expected.part(begin, end))) << begin;
    }
  }
}

TEST_P(StorageConformance, TakesDisjointWritesFromSeveralThreads) {
  if (!offers(kPositionalWrite)) GTEST_SKIP() << "positional writes are not offered";
  constexpr size_t kPart = 64 * 1024 + 512;
  constexpr size_t kParts = 16;
  AlignedBytes expected = pattern(kPart * kParts, 5);
  const auto object = open("key", OpenMode::kCreateVisible);
  std::atomic<size_t> next = 0;
  std::atomic<int> failures = 0;
  const auto work = [&] {
    for (size_t part = next++; part < kParts; part = next++) {
      if (!object->write_at(part * kPart, expected.part(part * kPart, (part + 1) * kPart)).ok())
        ++failures;
    }
  };
  std::thread other(work);
  work();
  other.join();
  ASSERT_EQ(failures, 0);
  ASSERT_TRUE(object->sync().ok());
  ASSERT_TRUE(object->close().ok());
  const Result<std::vector<std::byte>> found = read_all(storage(), "key", UINT64_MAX);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(std::ranges::equal(*found, expected.bytes()));
}

TEST_P(StorageConformance, TakesPartsInAnyOrderFromSeveralThreads) {
  if (!offers(kMultipart)) GTEST_SKIP() << "parts are not offered";
  const auto least = static_cast<size_t>(storage().part_bytes());
  ASSERT_GT(least, 0U);
  const size_t size = 5 * least + 7;
  AlignedBytes expected = pattern(size, 7);
  const auto object = open("key", OpenMode::kCreate);
  std::atomic<int> failures = 0;
  const auto write = [&](size_t begin, size_t end) {
    if (!object->write_at(begin, expected.part(begin, end)).ok()) ++failures;
  };
  std::thread other([&] {
    write(4 * least + 3, size - 1);
    write(size - 1, size);
  });
  write(2 * least + 1, 4 * least + 3);
  write(0, 2 * least + 1);
  other.join();
  ASSERT_EQ(failures, 0);
  ASSERT_TRUE(object->sync().ok());
  ASSERT_TRUE(object->commit(CommitCondition::kNone, {}).ok());
  const Result<std::vector<std::byte>> found = read_all(storage(), "key", UINT64_MAX);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(std::ranges::equal(*found, expected.bytes()));
}

// Carries bytes in blocks, as many at a time as the queue is deep; the first failure.
Status carry(IoQueue& queue, IoRequest::Operation operation, StorageObject& object,
             std::span<std::byte> bytes, size_t block_bytes, size_t depth) {
  std::vector<IoCompletion> done;
  Status first;
  size_t in_flight = 0;
  for (size_t begin = 0; begin < bytes.size() || in_flight > 0;) {
    if (begin < bytes.size() && in_flight < depth) {
      const auto part = bytes.subspan(begin, std::min(block_bytes, bytes.size() - begin));
      queue.submit({operation, &object, begin, part, begin});
      begin += part.size();
      ++in_flight;
      continue;
    }
    done.clear();
    queue.complete(&done);
    in_flight -= done.size();
    for (IoCompletion& each : done) {
      if (first.ok()) first = std::move(each.status);
    }
  }
  return first;
}

TEST_P(StorageConformance, CarriesBatchesOfWritesAndReads) {
  constexpr size_t kDepth = 5;
  constexpr size_t kBlock = 64 * 1024;
  AlignedBytes expected = pattern(17 * kBlock + 4096 + 77, 13);
  const bool positional = offers(kPositionalWrite);
  const auto object = open("key", positional ? OpenMode::kCreateVisible : OpenMode::kCreate);
  auto writes = storage().open_queue(*object, kDepth);
  ASSERT_TRUE(writes.ok()) << writes.status().to_string();
  EXPECT_FALSE((*writes)->engine().empty());
  const size_t block = positional ? kBlock : expected.bytes().size();
  const Status written =
      carry(**writes, IoRequest::Operation::kWrite, *object, expected.bytes(), block, kDepth);
  ASSERT_TRUE(written.ok()) << written.to_string();
  ASSERT_TRUE(object->sync().ok());
  ASSERT_TRUE(positional || object->commit(CommitCondition::kNone, {}).ok());
  ASSERT_TRUE(object->close().ok());

  const auto reader = open("key", OpenMode::kRead);
  auto reads = storage().open_queue(*reader, kDepth);
  ASSERT_TRUE(reads.ok()) << reads.status().to_string();
  AlignedBytes found(expected.bytes().size());
  const size_t depth = offers(kConcurrentRead) ? kDepth : 1;
  const auto read =
      carry(**reads, IoRequest::Operation::kRead, *reader, found.bytes(), kBlock, depth);
  ASSERT_TRUE(read.ok()) << read.to_string();
  EXPECT_TRUE(std::ranges::equal(found.bytes(), expected.bytes()));

  (*reads)->submit(
      {IoRequest::Operation::kRead, reader.get(), 17 * kBlock, found.part(0, 2 * 4096), 1});
  std::vector<IoCompletion> behind;
  (*reads)->complete(&behind);
  ASSERT_EQ(behind.size(), 1U);
  EXPECT_EQ(behind[0].status.code(), StatusCode::kOutOfRange);
}

TEST_P(StorageConformance, CarriesBatchesThatBeginAnywhere) {
  if (!offers(kPositionalWrite) || !offers(kConcurrentRead))
    GTEST_SKIP() << "positional writes or concurrent reads are not offered";
  constexpr size_t kDepth = 5;
  constexpr size_t kBlock = 64 * 1024 + 52;
  AlignedBytes expected = pattern(17 * kBlock + 4096 + 77, 14);
  const auto object = open("key", OpenMode::kCreateVisible);
  auto writes = storage().open_queue(*object, kDepth);
  ASSERT_TRUE(writes.ok()) << writes.status().to_string();
  const Status written =
      carry(**writes, IoRequest::Operation::kWrite, *object, expected.bytes(), kBlock, kDepth);
  ASSERT_TRUE(written.ok()) << written.to_string();
  ASSERT_TRUE(object->sync().ok());
  ASSERT_TRUE(object->close().ok());
  const auto reader = open("key", OpenMode::kRead);
  auto reads = storage().open_queue(*reader, kDepth);
  ASSERT_TRUE(reads.ok()) << reads.status().to_string();
  AlignedBytes found(expected.bytes().size());
  const Status read =
      carry(**reads, IoRequest::Operation::kRead, *reader, found.bytes(), kBlock, kDepth);
  ASSERT_TRUE(read.ok()) << read.to_string();
  EXPECT_TRUE(std::ranges::equal(found.bytes(), expected.bytes()));
  (*reads)->submit(
      {IoRequest::Operation::kRead, reader.get(), UINT64_MAX - 1, found.part(0, 9), 1});
  std::vector<IoCompletion> behind;
  (*reads)->complete(&behind);
  ASSERT_EQ(behind.size(), 1U);
  EXPECT_EQ(behind[0].status.code(), StatusCode::kOutOfRange);
}

TEST_P(StorageConformance, DoesNotShowAReservationInTheLength) {
  OpenOptions wanted = options(OpenMode::kCreateVisible);
  wanted.expected_bytes = 1 << 20;
  Result<std::unique_ptr<StorageObject>> object = storage().open("key", wanted);
  ASSERT_TRUE(object.ok()) << object.status().to_string();
  ASSERT_TRUE((*object)->write_at(0, std::as_bytes(std::span("abc", 3))).ok());
  ASSERT_TRUE((*object)->close().ok());
  EXPECT_EQ(text_of("key"), "abc");
}

TEST_P(StorageConformance, HidesAnObjectUntilItsCommit) {
  if (!offers(kAtomicCommit)) GTEST_SKIP() << "atomic commits are not offered";
  const auto object = open("key", OpenMode::kCreate);
  ASSERT_TRUE(object->write_at(0, std::as_bytes(std::span("new", 3))).ok());
  ASSERT_TRUE(object->sync().ok());
  EXPECT_EQ(storage().stat("key").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(object->commit(CommitCondition::kNone, {}).ok());
  EXPECT_EQ(text_of("key"), "new");
  EXPECT_EQ(object->write_at(0, {}).code(), StatusCode::kFailedPrecondition);
}

TEST_P(StorageConformance, LeavesNothingOfAnAbortedObject) {
  const auto object = open("key", OpenMode::kCreate);
  ASSERT_TRUE(object->write_at(0, std::as_bytes(std::span("new", 3))).ok());
  object->abort();
  EXPECT_TRUE(keys("").empty());
  {
    const auto dropped = open("other", OpenMode::kCreate);
  }
  EXPECT_TRUE(keys("").empty());
  const auto visible = open("visible", OpenMode::kCreateVisible);
  visible->abort();
  EXPECT_TRUE(keys("").empty());
}

TEST_P(StorageConformance, KeepsTheOldContentUntilTheCommitAndForOpenReaders) {
  if (!offers(kAtomicCommit)) GTEST_SKIP() << "atomic commits are not offered";
  ASSERT_TRUE(publish("key", "old", CommitCondition::kNone, {}).ok());
  const auto reader = open("key", OpenMode::kRead);
  ASSERT_TRUE(publish("key", "newer", CommitCondition::kNone, {}).ok());
  std::vector<std::byte> found(3);
  ASSERT_TRUE(reader->read_at(0, found).ok());
  EXPECT_EQ(found[0], static_cast<std::byte>('o'));
  EXPECT_EQ(text_of("key"), "newer");
}

TEST_P(StorageConformance, CommitsOnlyUnderItsCondition) {
  if (!offers(kConditionalCommit)) GTEST_SKIP() << "conditional commits are not offered";
  ASSERT_TRUE(publish("key", "one", CommitCondition::kIfAbsent, {}).ok());
  EXPECT_EQ(publish("key", "two", CommitCondition::kIfAbsent, {}).code(), StatusCode::kAborted);
  const std::string first = storage().stat("key")->version;
  ASSERT_FALSE(first.empty());
  ASSERT_TRUE(publish("key", "three", CommitCondition::kIfVersion, first).ok());
  EXPECT_EQ(publish("key", "four", CommitCondition::kIfVersion, first).code(),
            StatusCode::kAborted);
  EXPECT_EQ(publish("absent", "five", CommitCondition::kIfVersion, first).code(),
            StatusCode::kAborted);
  EXPECT_EQ(text_of("key"), "three");
  EXPECT_EQ(keys(""), std::vector<std::string>{"key"});
}

TEST_P(StorageConformance, LetsOneOfManyConditionalWritersWin) {
  if (!offers(kConditionalCommit)) GTEST_SKIP() << "conditional commits are not offered";
  std::atomic<int> won = 0;
  std::atomic<int> lost = 0;
  const auto work = [&](int writer) {
    const Status status = publish("key", std::to_string(writer), CommitCondition::kIfAbsent, {});
    if (status.ok()) ++won;
    if (status.code() == StatusCode::kAborted) ++lost;
  };
  std::thread other([&] {
    for (int writer = 0; writer < 8; ++writer) work(writer);
  });
  for (int writer = 8; writer < 16; ++writer) work(writer);
  other.join();
  EXPECT_EQ(won, 1);
  EXPECT_EQ(lost, 15);
}

TEST_P(StorageConformance, CommitsOnlyWhatWasOpenedForIt) {
  const auto object = open("key", OpenMode::kCreateVisible);
  EXPECT_EQ(object->commit(CommitCondition::kNone, {}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(object->close().ok());
  const auto reader = open("key", OpenMode::kRead);
  EXPECT_EQ(reader->write_at(0, std::as_bytes(std::span("x", 1))).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(reader->commit(CommitCondition::kNone, {}).code(), StatusCode::kFailedPrecondition);
}

TEST_P(StorageConformance, ChangesTheVersionWithTheContent) {
  ASSERT_TRUE(publish("key", "one", CommitCondition::kNone, {}).ok());
  const std::string first = storage().stat("key")->version;
  if (first.empty()) GTEST_SKIP() << "versions are not offered";
  EXPECT_EQ(open("key", OpenMode::kRead)->stat()->version, first);
  ASSERT_TRUE(publish("key", "two", CommitCondition::kNone, {}).ok());
  EXPECT_NE(storage().stat("key")->version, first);
}

TEST_P(StorageConformance, ListsKeysOfAPrefixInByteOrder) {
  for (const std::string_view key : {"b", "a/2", "a/1", "a.x", "a0", "a/1x/y", "ab/c"})
    put(key, "x");
  EXPECT_EQ(keys(""), (std::vector<std::string>{"a.x", "a/1", "a/1x/y", "a/2", "a0", "ab/c", "b"}));
  EXPECT_EQ(keys("a/"), (std::vector<std::string>{"a/1", "a/1x/y", "a/2"}));
  EXPECT_EQ(keys("a/1"), (std::vector<std::string>{"a/1", "a/1x/y"}));
  EXPECT_EQ(keys("ab"), (std::vector<std::string>{"ab/c"}));
  EXPECT_TRUE(keys("none/").empty());
}

TEST_P(StorageConformance, ListsOneLevelAtADelimiter) {
  for (const std::string_view key : {"b", "a/2", "a/1", "a.x", "a0", "a/c/x/y", "a/c/z", "ab/c"})
    put(key, "x");
  EXPECT_EQ(keys("", kDelimiter), (std::vector<std::string>{"a.x", "a/", "a0", "ab/", "b"}));
  EXPECT_EQ(keys("a", kDelimiter), (std::vector<std::string>{"a.x", "a/", "a0", "ab/"}));
  EXPECT_EQ(keys("a/", kDelimiter), (std::vector<std::string>{"a/1", "a/2", "a/c/"}));
  EXPECT_EQ(keys("a/c", kDelimiter), (std::vector<std::string>{"a/c/"}));
  EXPECT_EQ(keys("a/c/x", kDelimiter), (std::vector<std::string>{"a/c/x/"}));
  EXPECT_TRUE(keys("none/", kDelimiter).empty());
}

TEST_P(StorageConformance, TruncatesWhatIsWrittenWhereTransfersAreDirect) {
  const auto object = open("key", OpenMode::kCreateVisible);
  AlignedBytes block = pattern(3 * 4096, 11);
  if (!offers(kDirectIo)) {
    EXPECT_EQ(object->truncate(0).code(), StatusCode::kUnimplemented);
    return;
  }
  ASSERT_TRUE(object->write_at(0, block.bytes()).ok());
  ASSERT_TRUE(object->truncate(2 * 4096 + 5).ok());
  ASSERT_TRUE(object->sync().ok());
  ASSERT_TRUE(object->close().ok());
  const Result<std::vector<std::byte>> found = read_all(storage(), "key", UINT64_MAX);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(std::ranges::equal(*found, block.part(0, 2 * 4096 + 5)));
  EXPECT_FALSE(object->truncate(0).ok()) << "closed";
}

TEST_P(StorageConformance, StopsAListingWhenTheSinkFails) {
  put("a", "x");
  put("b", "x");
  int calls = 0;
  const Status status = storage().list("", kNoDelimiter, [&](const ListEntry&) {
    ++calls;
    return cancelled("enough");
  });
  EXPECT_EQ(status.code(), StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
}

TEST_P(StorageConformance, RemovesObjectsAndForgetsEmptyPrefixes) {
  ASSERT_TRUE(storage().create_prefix("dir").ok());
  put("dir/file", "x");
  EXPECT_TRUE(storage().remove("dir/file").ok());
  EXPECT_TRUE(storage().remove("dir/file").ok());
  EXPECT_TRUE(storage().remove("never/was").ok());
  EXPECT_TRUE(keys("").empty());
  EXPECT_TRUE(storage().create_prefix("dir").ok()) << "the prefix went with its last object";
}

TEST_P(StorageConformance, MakesAPrefixOnce) {
  ASSERT_TRUE(storage().create_prefix("deep/new").ok());
  if (!keys("").empty()) {  // else prefixes are no things of their own
    EXPECT_EQ(storage().create_prefix("deep/new").code(), StatusCode::kAlreadyExists);
  }
  put("deep/new/file", "x");
  EXPECT_EQ(text_of("deep/new/file"), "x");
  EXPECT_EQ(storage().create_prefix("deep/new").code(), StatusCode::kAlreadyExists);
  bool supported = false;
  EXPECT_TRUE(storage().sync_prefix("deep/new", &supported).ok());
}

TEST_P(StorageConformance, ListsAndRemovesAnEmptyPrefixByItsMarker) {
  ASSERT_TRUE(storage().create_prefix("made").ok());
  const std::vector<std::string> found = keys("");
  if (found.empty()) GTEST_SKIP() << "prefixes of their own are not offered";
  EXPECT_EQ(found, std::vector<std::string>{"made/"});
  EXPECT_TRUE(storage().remove("made/").ok());
  EXPECT_TRUE(keys("").empty());
}

TEST_P(StorageConformance, LocksAKeyForOneHolderOrForAllWhoShareIt) {
  const auto lock = [this](LockMode mode) {
    auto taken = storage().try_lock("dir/.lock", mode);
    EXPECT_TRUE(taken.ok()) << taken.status().to_string();
    return taken.ok() ? std::move(*taken) : nullptr;
  };
  if (storage().try_lock("dir/.lock", LockMode::kShared).status().code() ==
      StatusCode::kUnimplemented)
    GTEST_SKIP() << "locks are not offered";
  auto alone = lock(LockMode::kExclusive);
  ASSERT_NE(alone, nullptr);
  EXPECT_TRUE(alone->check().ok());
  EXPECT_EQ(lock(LockMode::kExclusive), nullptr);
  EXPECT_EQ(lock(LockMode::kShared), nullptr);
  alone.reset();
  auto first = lock(LockMode::kShared);
  auto second = lock(LockMode::kShared);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(lock(LockMode::kExclusive), nullptr);
  first.reset();
  EXPECT_EQ(lock(LockMode::kExclusive), nullptr) << "one share is left";
  second.reset();
  EXPECT_NE(lock(LockMode::kExclusive), nullptr);
}

TEST_P(StorageConformance, TellsFreeSpaceOrSaysThatItCannot) {
  const Result<uint64_t> free = storage().free_space("not/yet/there");
  if (free.ok()) {
    EXPECT_GT(*free, 0U);
  } else {
    EXPECT_EQ(free.status().code(), StatusCode::kUnimplemented);
  }
}

TEST_P(StorageConformance, RefusesUseAfterClose) {
  put("key", "abc");
  const auto object = open("key", OpenMode::kRead);
  ASSERT_TRUE(object->close().ok());
  std::vector<std::byte> buffer(1);
  EXPECT_EQ(object->read_at(0, buffer).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(object->close().ok());
}

TEST_P(StorageConformance, ReadsWholeObjectsUpToALimit) {
  put("key", "0123456789");
  EXPECT_EQ(read_all(storage(), "key", 10)->size(), 10U);
  const Status status = read_all(storage(), "key", 9).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.detail("limit"), "9");
}

}  // namespace
}  // namespace shardwright::storage
