// SPDX-License-Identifier: Apache-2.0
//
// Loads of ranks on several machines (which are played on this one) cost what the estimate of the
// same job says: bytes from the storage, and bytes that come from other machines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/estimate/estimate.h"
#include "core/exec/checkpoint.h"
#include "tests/core/exec/load_of_ranks.h"
#include "tests/support/run_length.h"

namespace shardwright::exec::test {
namespace {

using estimate::Estimate;
using job_description::JobDescription;
using job_description::StoredCheckpoint;

constexpr uint64_t kStepBytes = uint64_t{64} << 10;  // that a rank gets to agree with others

class EstimatedLoad : public LoadOfRanks {
 protected:
  void play(int32_t ranks, int32_t ranks_per_machine) {
    ranks_ = ranks;
    ranks_per_machine_ = ranks_per_machine;
    machine_of_ = [ranks_per_machine](int32_t rank) {
      return fmt::format("machine {}", rank / ranks_per_machine);
    };
  }

  bool has_lonely_rank() const {
    return ranks_per_machine_ == 1 || ranks_ % ranks_per_machine_ == 1;
  }

  // As load() gives the tensor to ranks.
  Estimate estimate_of(const char* placement, const estimate::EstimateOptions& options) {
    const auto runtime = make_runtime();
    const auto opened = Checkpoint::open(*runtime, location_);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    auto stored = std::make_shared<StoredCheckpoint>();
    stored->catalog = (*opened)->catalog();
    stored->file_count = (*opened)->opened().files().size();
    stored->digest_block_bytes = (*opened)->opened().digest_block_bytes();
    const JobDescription source = *job_description::job_of_checkpoint(stored, 2);
    const JobDescription target = *job_description::read_job_description(fmt::format(
        R"json({{"schema": 1, "meshes": {{"m": {{"axes": {{"a": {}}}}}}},
          "rules": [{{"match": "*", "placements": {{"a": "{}"}}}}]}})json",
        ranks_, placement));
    return *estimate_load(*stored, *lay_out(source, target), options);
  }

  // rounded: of what is read, in direct reads of whole pages. The estimate says how much a machine
  // takes, and divides it equally among its ranks; a load does so by runs of blocks.
  void expect_cost(const std::vector<Result<Report>>& reports, const Estimate& estimate) {
    expect_filled(reports);
    const auto is_about = [](uint64_t real, uint64_t estimated, uint64_t ranks) {
      return real >= estimated && real <= estimated + estimated / 100 + ranks * kStepBytes;
    };
    uint64_t read = 0;
    uint64_t received = 0;
    for (int32_t first = 0; first < ranks_; first += ranks_per_machine_) {
      uint64_t taken = 0;
      for (int32_t r = first; r < std::min(first + ranks_per_machine_, ranks_); ++r) {
        const auto rank = static_cast<size_t>(r);
        taken += reports[rank]->bytes_read + reports[rank]->bytes_received;
        read += estimate.moved_bytes[rank];
        received += estimate.received_bytes[rank];
        taken -= estimate.moved_bytes[rank] + estimate.received_bytes[rank];
      }
      EXPECT_LT(taken, unique_bytes() / 100 + 4 * kStepBytes) << "machine of rank " << first;
    }
    uint64_t real_received = 0;
    for (const auto& report : reports) real_received += report->bytes_received;
    EXPECT_PRED3(is_about, bytes_read(reports), read, reports.size());
    EXPECT_PRED3(is_about, real_received, received, reports.size());
  }

  int32_t ranks_per_machine_ = 1;
};

TEST_F(EstimatedLoad, CostsWhatTheEstimateSays) {
  const std::pair<Wanted, const char*> layouts[] = {
      {Wanted::kRows, "Shard(0)"}, {Wanted::kColumns, "Shard(1)"}, {Wanted::kAll, "Replicate"}};
  for (const char* format : {"native", "safetensors"}) {
    location_.prefix = format;
    save(format);
    for (const auto& [ranks, per_machine] : {std::pair(2, 1), {4, 2}, {5, 2}, {6, 1}, {3, 3}}) {
      if (shardwright::test::kSanitized && ranks != 4)
        continue;  // the way of the bytes is the same
      play(ranks, per_machine);
      for (const auto& [wanted, placement] : layouts) {
        for (const ExchangeRule rule : {ExchangeRule::kOff, ExchangeRule::kAlways}) {
          SCOPED_TRACE(fmt::format("{} {} ranks {} per machine {} exchange {}", format, ranks,
                                   per_machine, placement, static_cast<int>(rule)));
          LoadOptions options;
          options.exchange = rule;
          // Without digests a rank alone on its machine reads parts of blocks, and over small gaps.
          const bool has_digests = location_.prefix == "native";
          if (!has_digests && rule == ExchangeRule::kOff && has_lonely_rank()) continue;
          estimate::EstimateOptions priced;
          priced.ranks_per_node = static_cast<uint32_t>(per_machine);
          if (rule == ExchangeRule::kAlways) priced.exchange = estimate::NodeExchange::kAlways;
          expect_cost(load(wanted, options), estimate_of(placement, priced));
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardwright::exec::test
