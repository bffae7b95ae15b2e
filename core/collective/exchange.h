// SPDX-License-Identifier: Apache-2.0
//
// Exchange: the steps that the ranks of one call take together over a Collective. What swap and
// trade bring a rank is what others have for it; in all other steps only the coordinator (rank 0)
// receives more than a handful of numbers, its own part, or what all are told.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/collective/collective.h"
#include "core/collective/counting_collective.h"

namespace shardwright::collective {

// What a step gathered: the bytes of all ranks one after the other, each behind its header; after
// gather nothing on ranks other than the coordinator. It may be used again and again; with enough
// room in it gather needs no memory to send and to learn what others bring.
class Gathered {
 public:
  // Room for a gather by `world` ranks that bring at most bytes_each; world 1 on a rank that only
  // sends. May throw std::bad_alloc.
  void reserve(size_t world, size_t bytes_each);
  size_t size() const { return sizes_.size(); }
  // What rank `from` brought.
  std::span<const std::byte> part(size_t from) const;

 private:
  friend class Exchange;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  std::vector<uint64_t> sizes_;         // with headers
  std::vector<uint64_t> begins_;        // in received_, behind the headers
  std::vector<uint64_t> size_of_size_;  // the sizes of sizes_ while it is gathered
  std::vector<uint64_t> sent_sizes_;    // of trade: of each part in sent_
};

// What a rank says where all must say the same, and its digest.
struct Said {
  std::array<std::byte, 16> digest{};
  std::span<const std::byte> bytes;
};

// Least and most of a number over all ranks; a rank that has none to say says {}.
struct Range {
  int64_t least = INT64_MAX;
  int64_t most = INT64_MIN;
  static Range of(int64_t value) { return {value, value}; }
  bool operator==(const Range&) const = default;
};

// Where ranks do not say the same: the bytes of rank 0, and of the lowest rank with other ones.
struct Difference {
  size_t rank = 0;
  std::vector<std::byte> first;
  std::vector<std::byte> other;
};

// What the pipelines use: typed steps over a Collective, each with a tag and a deadline, each
// ending with an agreed status. A rank that has failed still takes part, so that nobody waits for
// it: the status of the lowest failing rank (details rank, and how many others failed) reaches all.
// When the transport itself fails, ranks are out of step (ABORTED with details expected, found,
// sequence, tag), this rank's own words do not come back as it said them (DATA_LOSS), or memory for
// what others bring runs out, the exchange is broken: it aborts the collective, so that nobody
// waits, and every later step returns that failure. Steps never throw. One thread at a time.
class Exchange {
 public:
  // timeout_ns: per operation, negative = no limit.
  Exchange(Collective& collective, int64_t timeout_ns);
  int32_t rank() const { return collective_.rank(); }
  int32_t size() const { return collective_.size(); }
  bool is_coordinator() const { return rank() == 0; }
  // True after a failure of the transport: what the other ranks know is then unknown.
  bool broken() const { return !broken_.ok(); }
  // Whether the last step ended because a rank told that it had failed, with this code (0 = none
  // did): then all ranks know so, even where the exchange broke before it could say why.
  StatusCode told_failure() const { return told_failure_; }
  // Whether bytes between all ranks go to those only that they are for.
  bool has_all_to_all() const { return collective_.has_all_to_all_v(); }
  // What has come to this rank from others so far.
  uint64_t received_bytes() const { return collective_.received_bytes(); }
  std::string_view transport() const { return collective_.name(); }

  // Everybody gives its own status so far. Needs no memory unless a rank has failed.
  Status agree(uint32_t tag, const Status& mine) noexcept;
  // The same, and all learn the range of what ranks say; empty (least above most) when none says
  // anything.
  Result<Range> range(uint32_t tag, const Status& mine, const Range& said) noexcept;
  // The same, and all ranks say the same (nothing comes back) or learn who does not. Ranks exchange
  // digests; the bytes travel only where those differ.
  Result<std::optional<Difference>> compare(uint32_t tag, const Status& mine,
                                            const Said& said) noexcept;
  // Everybody's bytes reach the coordinator, in rank order.
  Status gather(uint32_t tag, const Status& mine, std::span<const std::byte> bytes,
                Gathered* all) noexcept;
  // Coordinator's bytes (or its failure) reach all; they lie in *room until the next step with it.
  // A room with capacity for them and kHeaderBytes makes the step need no memory.
  static constexpr size_t kHeaderBytes = 16;
  Result<std::span<const std::byte>> broadcast(uint32_t tag, const Status& mine,
                                               std::span<const std::byte> bytes,
                                               std::vector<std::byte>* room) noexcept;
  // Each rank's part reaches it, from the coordinator.
  Result<std::vector<std::byte>> scatter(uint32_t tag, const Status& mine,
                                         std::span<const std::vector<std::byte>> parts) noexcept;
  // Bytes between all ranks whose sizes both sides know: in_sizes[r] go to rank r, out_sizes[r]
  // come from it, back to back in rank order in memory of the caller (in and out have no byte in
  // common). They travel as they are, without a header, and need no memory where the transport has
  // all_to_all_v. Sizes and memory that do not go together on one rank are INTERNAL on all, and
  // nothing moves; what two ranks say of one another is the transport's to compare. After a failure
  // that breaks the exchange, out may hold anything.
  Status swap(uint32_t tag, const Status& mine, std::span<const std::byte> in,
              std::span<const uint64_t> in_sizes, std::span<std::byte> out,
              std::span<const uint64_t> out_sizes) noexcept;
  // Bytes between all ranks whose sizes only the sender knows: parts[r] goes to rank r (one part
  // per rank, else INTERNAL on all), and on every rank *all then holds what each had for it.
  Status trade(uint32_t tag, const Status& mine, std::span<const std::vector<std::byte>> parts,
               Gathered* all) noexcept;
  void abort(const Status& cause) noexcept;

 private:
  // What a rank says at the beginning of a step, and what all said.
  struct Opening {
    uint32_t tag = 0;
    Range sizes;  // bytes that move, by those who know it
    std::array<Range, 2> digest{Range::of(0), Range::of(0)};
  };
  struct Failed;
  // Runs a step; what it throws breaks the exchange.
  template <typename Step>
  auto whole(const Step& step) noexcept -> decltype(step());
  // Every step begins here: all ranks tell what they are at, how they are, and how many bytes they
  // bring. Returns the failure of the lowest rank that has one.
  Result<Opening> open_step(const Opening& own, const Status& mine);
  // The words of all ranks, reduced; DATA_LOSS when they are not what a sum or the least can be.
  Status reduce(std::span<int64_t> words, ReduceOperation operation);
  Status out_of_step(uint64_t expected, uint64_t found);
  // What this rank sends: header and bytes. Made before the step opens, so that all hear of it when
  // there is no memory.
  Status compose(uint32_t tag, std::span<const std::byte> bytes, std::vector<std::byte>* payload);
  Status failure_of_all(const Failed& lowest, const Status& mine);
  Status gather_sizes(const Range& sizes, uint64_t own, Gathered* all);
  Status receive_all(Gathered* all);
  Result<std::optional<Difference>> find_difference(uint64_t first_size, const Said& said);
  struct Parts;
  Result<std::vector<std::byte>> receive_part(const Range& sizes, const Parts& parts);
  // What this rank sends to each and receives from each.
  struct Rows {
    std::span<const std::byte> in;
    std::span<const uint64_t> in_sizes;
    std::span<std::byte> out;
    std::span<const uint64_t> out_sizes;
  };
  Status move_all_to_all(const Rows& rows);
  // What this rank sent to itself is as it was, in its first most_bytes.
  Status check_own_part(const Rows& rows, size_t most_bytes);
  // Before the step opens, like compose; *sizes: least and most of the parts.
  Status compose_parts(uint32_t tag, std::span<const std::vector<std::byte>> parts, Gathered* all,
                       Range* sizes);
  Status trade_sizes(const Range& sizes, Gathered* all);
  Status check_header(size_t rank, std::span<const std::byte> payload);
  Status break_off(Status failure) noexcept;
  Status garbled();

  CountingCollective collective_;
  Call call_;  // of the current step; its number is that of the next one between steps
  Status broken_;
  StatusCode told_failure_ = StatusCode::kOk;
};

}  // namespace shardwright::collective
