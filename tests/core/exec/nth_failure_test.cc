// SPDX-License-Identifier: Apache-2.0
//
// Every call of a save's storage fails once, and fails from then on, with each error a file system
// knows. Whatever happens: the status is that of the taxonomy, old or new checkpoint is there
// whole, success is never told in vain, the runtime goes on working, and what is left can be
// collected.
#include <cerrno>

#include <fmt/format.h>

#include "core/exec/housekeeping.h"
#include "core/format/native/native_checkpoint.h"
#include "core/format/native/native_format.h"
#include "tests/core/exec/save_world.h"

namespace shardwright::exec::test {
namespace {

namespace native = format::native;
using storage::StorageEvent;

struct Fault {
  int error_number = EIO;
  bool sticky = false;
  uint64_t done_bytes = 0;  // of a write before it fails
};

// Fails call number `index` of a storage (all later ones too when sticky) and counts calls.
class Failing {
 public:
  Failing(storage::Storage& inner, int64_t index, Fault fault)
      : storage_(storage::make_fault_storage(inner, [this, index, fault](const StorageEvent& event,
                                                                         uint64_t* done_bytes) {
          count_ = std::max(count_.load(), event.sequence + 1);
          const bool hit =
              index >= 0 && (fault.sticky ? event.sequence >= index : event.sequence == index);
          if (!hit) return Status();
          if (event.sequence == index)
            hit_ = fmt::format("{} of {}", storage::operation_name(event.operation), event.key);
          *done_bytes = std::min(fault.done_bytes, event.size_bytes);
          return status_from_errno(fault.error_number, operation_name(event.operation), event.key)
              .with_detail("file", event.key);
        })) {}
  std::shared_ptr<storage::Storage> storage() { return storage_; }
  int64_t count() const { return count_; }
  const std::string& hit() const { return hit_; }

 private:
  std::atomic<int64_t> count_ = 0;
  std::string hit_;
  std::shared_ptr<storage::Storage> storage_;
};

struct Workload {
  std::string name;
  World before;  // no rank = nothing is there
  World after;
  SaveOptions options;
};

class NthFailureTest : public testing::Test {
 protected:
  // One save with one fault; what it leaves is checked in all respects.
  void run(const Workload& workload, int64_t index, const Fault& fault) {
    const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
    const format::Location location{memory, "ckpt"};
    const bool had_one = !workload.before.ranks.empty();
    if (had_one) {
      const auto saved = save_world(*runtime_, workload.before, location, workload.options);
      ASSERT_EQ(agreed_code(saved), StatusCode::kOk) << texts(saved);
    }
    Failing failing(*memory, index, fault);
    const auto results =
        save_world(*runtime_, workload.after, {failing.storage(), "ckpt"}, workload.options);
    const std::string what =
        fmt::format("{}: call {} ({}), errno {}{}\n{}", workload.name, index, failing.hit(),
                    fault.error_number, fault.sticky ? " from then on" : "", texts(results));
    check_outcome(workload, location, agreed_code(results), results[0].status(), what);
    // The path and the runtime are as good as before: the next save succeeds and gc clears the
    // rest.
    const auto again = save_world(*runtime_, workload.after, location, workload.options);
    ASSERT_EQ(agreed_code(again), StatusCode::kOk) << what << texts(again);
    GcOptions collect;
    collect.apply = true;
    collect.grace_ns = -1;
    ASSERT_TRUE(collect_garbage(*runtime_, location, collect).ok()) << what;
    EXPECT_TRUE(stores(*runtime_, location, workload.after)) << what;
    const auto generations = native::list_generations(location);
    ASSERT_TRUE(generations.ok()) << what;
    for (const format::GenerationInfo& info : *generations)
      EXPECT_TRUE(info.named) << what << info.generation;
  }

  void check_outcome(const Workload& workload, const format::Location& location, StatusCode code,
                     const Status& status, const std::string& what) {
    if (code == StatusCode::kOk) {
      EXPECT_TRUE(stores(*runtime_, location, workload.after)) << what;
      return;
    }
    const bool known = code == StatusCode::kDataLoss || code == StatusCode::kResourceExhausted ||
                       code == StatusCode::kUnavailable || code == StatusCode::kPermissionDenied;
    EXPECT_TRUE(known) << what;
    const bool unknown = status.detail("commit") == "unknown";
    EXPECT_FALSE(status.detail("errno").empty() && !unknown) << what;
    if (workload.before.ranks.empty()) {
      const auto opened = Checkpoint::open(*runtime_, location);
      EXPECT_EQ(opened.status().code(), StatusCode::kNotFound) << what;
    } else {
      EXPECT_TRUE(stores(*runtime_, location, workload.before)) << what;
    }
  }

  int64_t count_calls(const Workload& workload) {
    const std::shared_ptr<storage::Storage> memory = storage::make_memory_storage();
    if (!workload.before.ranks.empty()) {
      EXPECT_EQ(
          agreed_code(save_world(*runtime_, workload.before, {memory, "ckpt"}, workload.options)),
          StatusCode::kOk);
    }
    Failing counting(*memory, -1, Fault());
    EXPECT_EQ(agreed_code(save_world(*runtime_, workload.after, {counting.storage(), "ckpt"},
                                     workload.options)),
              StatusCode::kOk);
    return counting.count();
  }

  void run_all(const Workload& workload, const std::vector<Fault>& faults) {
    const int64_t calls = count_calls(workload);
    ASSERT_GT(calls, 10);
    // Two more than there are: the last ones hit nothing and must succeed.
    for (int64_t index = 0; index < calls + 2; ++index) {
      for (const Fault& fault : faults) run(workload, index, fault);
      if (HasFailure()) return;
    }
  }

  std::unique_ptr<Runtime> runtime_ = make_runtime(1);
};

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = {
      {EIO, false, 0},    {EIO, true, 0},    {ENOSPC, false, 0},    {ENOSPC, true, 0},
      {EDQUOT, false, 0}, {EDQUOT, true, 0}, {ESTALE, false, 0},    {ESTALE, true, 0},
      {EAGAIN, false, 0}, {EIO, false, 1},   {ENOSPC, false, 4095}, {EIO, true, UINT64_MAX - 1},
  };
  return faults;
}

TEST_F(NthFailureTest, FirstSaveOfOneRank) {
  run_all({"first", World(), make_small_world(1, 2), SaveOptions()}, all_faults());
}

TEST_F(NthFailureTest, OverwriteByOneRank) {
  run_all({"overwrite", make_small_world(1, 1), make_small_world(1, 2), SaveOptions()},
          all_faults());
}

TEST_F(NthFailureTest, OverwriteByThreeRanks) {
  run_all({"three ranks", make_small_world(3, 1), make_small_world(3, 2), SaveOptions()},
          {{EIO, false, 0}, {ENOSPC, true, 0}, {ESTALE, false, 0}});
}

TEST_F(NthFailureTest, OverwriteThatKeepsGenerations) {
  SaveOptions options;
  options.keep_generations = 2;
  run_all({"keeps two", make_small_world(1, 1), make_small_world(1, 2), options},
          {{EIO, false, 0}, {EIO, true, 0}, {ENOSPC, false, 0}});
}

TEST_F(NthFailureTest, OverwriteWithoutDurability) {
  SaveOptions options;
  options.durability = Durability::kNone;
  run_all({"not durable", make_small_world(2, 1), make_small_world(2, 2), options},
          {{EIO, false, 0}, {ENOSPC, true, 0}});
}

}  // namespace
}  // namespace shardwright::exec::test
