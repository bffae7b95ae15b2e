// SPDX-License-Identifier: Apache-2.0
//
// Reads fragments: the common boxes of stored chunks and wanted memory. Turns them into block
// needs, and copies (and casts) what was read to where it is wanted. A fragment whose blocks are
// contiguous in memory is read in place. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/device/devices.h"
#include "core/exec/block_reader_internal.h"
#include "core/exec/checkpoint.h"
#include "core/plan/load/catalog_index.h"
#include "core/plan/load_plan.h"
#include "core/state/state.h"

namespace shardwright::exec::internal {

// Memory that is shaped like a box.
struct TargetMemory {
  device::DeviceWindow window;
  Box box;  // of the whole window, global coordinates
  DType dtype = DType::kInvalid;
};

// A list of fragments. All calls are made by many threads and must answer the same each time.
class FragmentSource {
 public:
  virtual ~FragmentSource() = default;
  virtual size_t size() const = 0;
  virtual uint64_t chunk(size_t fragment) const = 0;
  virtual Box box(size_t fragment) const = 0;  // not empty, inside chunk and target
  virtual Result<TargetMemory> target(size_t fragment) const = 0;
  // The whole target, when the fragment fills it and it is of this dtype; else nothing. Cheaper
  // than target(): small tensors are many.
  virtual std::optional<device::DeviceWindow> filled(size_t fragment, DType stored) const;
};

// Fragments of a load plan into a state; all outlive this.
class PlanFragments final : public FragmentSource {
 public:
  PlanFragments(const device::Devices& devices, const plan::LoadPlan& plan, const State& state)
      : devices_(devices), plan_(plan), state_(state) {}
  size_t size() const override { return plan_.reads.size(); }
  uint64_t chunk(size_t fragment) const override { return plan_.reads.key(fragment).chunk; }
  Box box(size_t fragment) const override { return plan_.reads.box(fragment); }
  Result<TargetMemory> target(size_t fragment) const override;
  std::optional<device::DeviceWindow> filled(size_t fragment, DType stored) const override;

 private:
  const device::Devices& devices_;
  const plan::LoadPlan& plan_;
  const State& state_;
};

// Fragments of boxes that are read into views.
class BoxFragments final : public FragmentSource {
 public:
  // Checks every box and view. INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED (device memory). reads
  // outlives the result.
  static Result<BoxFragments> create(const device::Devices& devices, const plan::Catalog& catalog,
                                     const plan::CatalogIndex& index,
                                     std::span<const BoxRead> reads);
  size_t size() const override { return fragments_.size(); }
  uint64_t chunk(size_t fragment) const override { return fragments_[fragment].chunk; }
  Box box(size_t fragment) const override { return fragments_[fragment].box; }
  Result<TargetMemory> target(size_t fragment) const override;

 private:
  struct Fragment {
    uint64_t chunk = 0;
    size_t read = 0;
    Box box;
  };
  const device::Devices* devices_ = nullptr;
  std::span<const BoxRead> reads_;
  std::vector<Fragment> fragments_;
};

// The bytes of an object from begin on, as many as the memory takes; inside the object.
struct ObjectTarget {
  uint64_t object = 0;
  uint64_t begin = 0;
  std::span<std::byte> memory;

  uint64_t end() const { return begin + memory.size(); }
};

struct FragmentRequest {
  const FragmentSource* fragments = nullptr;  // null = none
  std::span<const ObjectTarget> objects;
  ReadRules rules;
  bool whole_blocks = false;  // also where nothing is verified: ranks then ask for equal ones
};

struct FragmentNeeds {
  std::vector<BlockNeed> needs;
  uint64_t wanted_bytes = 0;
};
// Finds the places of all that a request asks for.
Result<FragmentNeeds> fragment_needs(Runtime& runtime, const format::OpenedCheckpoint& opened,
                                     const FragmentRequest& request, const CallControl& control);
// Takes blocks to where a request wants them; both outlive it.
std::unique_ptr<BlockSink> make_copy_sink(const plan::Catalog& catalog,
                                          const FragmentRequest& request);
// Reads everything or fails; memory may be partly filled then.
Result<ReadOutcome> read_fragments(const BlockReader& reader,
                                   const format::OpenedCheckpoint& opened,
                                   const FragmentRequest& request, const CallContext& call);

}  // namespace shardwright::exec::internal
