// SPDX-License-Identifier: Apache-2.0
//
// Vocabulary of the read tests: whole tensors in memory as the truth, states that hold parts of
// them, ranks as threads, checkpoints in a memory storage whose bytes can be damaged. One test
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/collective/collective.h"
#include "core/exec/checkpoint.h"
#include "core/exec/load.h"
#include "core/exec/save.h"
#include "core/storage/backends.h"
#include "tests/support/random_source.h"

namespace shardwright::exec::test {

// A whole tensor, row-major.
struct Dense {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  std::vector<std::byte> bytes;

  uint64_t element_bytes() const { return static_cast<uint64_t>(dtype_bits(dtype)) / 8; }
  int64_t count() const { return box_element_count(whole_box(shape)); }
  // Packed bytes of a box of it.
  std::vector<std::byte> box_bytes(const Box& box) const;
};

Dense random_dense(shardwright::test::RandomSource& random, std::string name, DType dtype,
                   Dims shape);

// A rank's entry with its own memory: the pieces lie back to back in one buffer.
struct Holding {
  std::shared_ptr<State> state = std::make_shared<State>();
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory;  // one per entry, in order
};

// Adds the boxes of a tensor to a holding; filled: with the truth's bytes, else with 0xEE.
void add_boxes(Holding* holding, const Dense& truth, const std::vector<Box>& boxes, bool filled,
               EntryKind kind = EntryKind::kAuto);
// Adds the whole tensor as a plain entry.
void add_whole(Holding* holding, const Dense& truth, bool filled,
               EntryKind kind = EntryKind::kAuto);
void add_object(Holding* holding, std::string name, std::string_view text,
                EntryKind kind = EntryKind::kAuto);
// True when entry `index` holds the truth in all its boxes.
testing::AssertionResult holds(const Holding& holding, size_t index, const Dense& truth);

// Cuts the box of a tensor into disjoint boxes at random, empty ones left out.
std::vector<Box> random_cuts(shardwright::test::RandomSource& random, const Dims& shape,
                             int32_t parts);

class CheckpointFixture {
 public:
  CheckpointFixture();
  explicit CheckpointFixture(std::shared_ptr<storage::Storage> store,
                             std::vector<std::shared_ptr<const format::Format>> formats = {});

  Runtime& runtime() { return *runtime_; }
  format::Location location(std::string prefix = "ckpt") { return {store_, std::move(prefix)}; }
  std::shared_ptr<storage::Storage> store() { return store_; }

  // One state per rank, ranks as threads. Fails the test when the save fails.
  Report save(const std::vector<std::shared_ptr<State>>& states, SaveOptions options = {},
              std::string prefix = "ckpt");
  Report save_one(const Holding& one, SaveOptions options = {}) {
    return save(std::vector<std::shared_ptr<State>>{one.state}, std::move(options));
  }
  std::shared_ptr<const Checkpoint> open(std::string prefix = "ckpt");
  // Loads on one rank per state; the reports or failures by rank.
  std::vector<Result<Report>> load(const std::vector<std::shared_ptr<State>>& states,
                                   LoadOptions options = {}, std::string prefix = "ckpt");
  Result<Report> load_one(const Holding& one, LoadOptions options = {});

  // Bytes of a stored key, and replacing them.
  std::vector<std::byte> get(const std::string& key);
  void put(const std::string& key, std::span<const std::byte> bytes);
  std::vector<std::string> keys(const std::string& prefix = "");

 private:
  std::shared_ptr<storage::Storage> store_;
  std::unique_ptr<Runtime> runtime_;
};

// Runs body(rank, collective) on one thread per rank.
void on_ranks(int32_t world_size,
              const std::function<void(int32_t, collective::Collective&)>& body);

}  // namespace shardwright::exec::test
