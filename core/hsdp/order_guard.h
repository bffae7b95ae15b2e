// SPDX-License-Identifier: Apache-2.0
//
// OrderGuard: what one rank issued on one communicator since the last comparison, and the
// comparison with the other ranks. Ranks that are out of step would gather and sum each other's
// wrong bytes, or wait for ever; this tells which unit it was. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/digest128.h"
#include "core/base/result.h"
#include "core/collective/communicator.h"
#include "core/hsdp/schedule.h"

namespace shardwright::hsdp {

class OrderGuard {
 public:
  struct Names {
    std::function<std::string(UnitId)> unit;
    std::function<int32_t(int32_t)> rank;  // global, from the rank in the communicator
  };

  // From now on nothing is recorded.
  void stop() { active_ = false; }
  bool is_active() const { return active_; }
  void record(collective::OperationKind kind, UnitId unit, uint64_t bytes);
  // Of all records in their order, since the beginning.
  const Digest128& digest() const { return digest_; }

  // Collective: one all_gather of 24 bytes, and where ranks differ a second one, by which all of
  // them find the first difference. ABORTED naming its unit and both ranks, on every rank alike.
  // call: sequence is counted up per operation.
  Status compare(collective::Communicator& communicator, collective::CommunicatorCall* call,
                 const Names& names);

 private:
  struct Record {
    uint64_t kind = 0;  // of the operation, plus one; 0 = none
    uint64_t unit = 0;
    uint64_t bytes = 0;
    friend bool operator==(const Record&, const Record&) = default;
  };
  using Records = std::vector<Record>;

  Status first_difference(const std::vector<Records>& ranks, const Names& names) const;

  bool active_ = true;
  Digest128 digest_{};
  Records records_;  // since the last comparison; the first kMaxRecords
  uint64_t record_count_ = 0;
};

}  // namespace shardwright::hsdp
