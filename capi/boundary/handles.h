// SPDX-License-Identifier: Apache-2.0
//
// What each handle of the C surface holds, and the definitions of the incomplete C types. Core
// objects are shared, so that a child keeps its parents alive whatever the order of releases.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/boundary/handle.h"
#include "capi/context/context.h"
#include "core/base/text_column.h"
#include "core/collective/collective.h"
#include "core/concurrency/cancellation.h"
#include "core/exec/checkpoint.h"
#include "core/exec/job.h"
#include "core/exec/planned_load.h"
#include "core/exec/report.h"
#include "core/exec/save.h"
#include "core/job_description/job_description.h"
#include "core/layout/layout.h"
#include "core/plan/describe/entry_columns.h"
#include "core/plan/load_plan.h"
#include "core/plan/wire/plan_parts.h"
#include "core/plan/wire/wire.h"
#include "core/state/mapping.h"
#include "core/state/state.h"
#include "core/storage/storage.h"
#include "core/tensor/tensor_view.h"
#include "shardwright/shardwright.h"

namespace shardwright::capi {

// Bytes cut into parts, aligned and followed by a NUL.
struct BufferImpl {
  static constexpr uint64_t kMagic = 0x7368772d62756666;
  static constexpr const char* kNoun = "buffer";
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> data;
  std::vector<uint64_t> offsets;  // part_count + 1
};

// Lists of names in a report: SHW_REPORT_LOADED to SHW_REPORT_SHAPE.
inline constexpr size_t kReportListCount = SHW_REPORT_SHAPE + 1;

struct ReportImpl {
  static constexpr uint64_t kMagic = 0x7368772d72657074;
  static constexpr const char* kNoun = "report";
  exec::Report report;
  std::string json;
  std::array<std::vector<std::string>, kReportListCount> lists;  // by SHW_REPORT_ number
};

struct OwnedTensorImpl {
  static constexpr uint64_t kMagic = 0x7368772d74656e73;
  static constexpr const char* kNoun = "tensor";
  OwnedTensorImpl() = default;
  ~OwnedTensorImpl();
  OwnedTensorImpl(const OwnedTensorImpl&) = delete;
  OwnedTensorImpl& operator=(const OwnedTensorImpl&) = delete;
  TensorView view;         // row-major
  Dims strides;            // explicit, for consumers that want them
  uint64_t byte_size = 0;  // of the elements
  uint64_t allocated_bytes = 0;
};

struct LayoutImpl {
  static constexpr uint64_t kMagic = 0x7368772d6c61796f;
  static constexpr const char* kNoun = "layout";
  std::shared_ptr<const Layout> layout;
};

struct StateImpl {
  static constexpr uint64_t kMagic = 0x7368772d73746174;
  static constexpr const char* kNoun = "state";
  std::shared_ptr<State> state = std::make_shared<State>();
};

struct MappingImpl {
  static constexpr uint64_t kMagic = 0x7368772d6d617070;
  static constexpr const char* kNoun = "mapping";
  Mapping mapping;
};

struct PlanImpl {
  static constexpr uint64_t kMagic = 0x7368772d706c616e;
  static constexpr const char* kNoun = "plan";
  plan::Bytes bytes;
  plan::PlanKind kind = plan::PlanKind::kLocalSave;
  int32_t rank = 0;
  std::vector<shw_plan_item> items;
  // What was decoded of a local plan, or of a merged one.
  std::optional<plan::LocalPlan> local;
  std::optional<plan::GlobalSavePlan> merged;
  mutable std::mutex mutex;
  mutable std::unique_ptr<const plan::EntryColumns> entries;  // made when they are asked for
};

struct StorageImpl {
  static constexpr uint64_t kMagic = 0x7368772d73746f72;
  static constexpr const char* kNoun = "storage";
  std::shared_ptr<storage::Storage> storage;
  std::string name;
};

struct CollectiveImpl {
  static constexpr uint64_t kMagic = 0x7368772d636f6c6c;
  static constexpr const char* kNoun = "collective";
  std::shared_ptr<collective::Collective> collective;
  std::string name;
  std::atomic<int32_t> calls = 0;  // and jobs, that have it now
};

// While one lives, a call or job has the collective.
class CollectiveUse {
 public:
  CollectiveUse() = default;
  explicit CollectiveUse(std::shared_ptr<CollectiveImpl> of) noexcept : of_(std::move(of)) {
    ++of_->calls;
  }
  CollectiveUse(CollectiveUse&&) noexcept = default;
  CollectiveUse& operator=(CollectiveUse&& other) noexcept {
    end();
    of_ = std::move(other.of_);
    return *this;
  }
  CollectiveUse(const CollectiveUse&) = delete;
  CollectiveUse& operator=(const CollectiveUse&) = delete;
  ~CollectiveUse() { end(); }
  void end() noexcept {
    if (of_ != nullptr) --of_->calls;
    of_ = nullptr;
  }

 private:
  std::shared_ptr<CollectiveImpl> of_;  // co-owned with the host's handle
};

struct CollectiveGroupImpl {
  static constexpr uint64_t kMagic = 0x7368772d67727570;
  static constexpr const char* kNoun = "collective group";
  std::mutex mutex;
  std::vector<std::unique_ptr<collective::Collective>> members;  // null once taken
};

struct JobImpl {
  static constexpr uint64_t kMagic = 0x7368772d6a6f6273;
  static constexpr const char* kNoun = "job";
  JobImpl() = default;
  ~JobImpl();
  JobImpl(const JobImpl&) = delete;
  JobImpl& operator=(const JobImpl&) = delete;
  std::shared_ptr<Context> context;  // declared first: the job goes before it
  std::shared_ptr<exec::Job> job;
  mutable std::mutex mutex;
  mutable shw_error* error = nullptr;  // made when it is asked for
};

struct CancellationImpl {
  static constexpr uint64_t kMagic = 0x7368772d636e636c;
  static constexpr const char* kNoun = "cancellation";
  CancellationFlag flag;
};

struct CheckpointImpl {
  static constexpr uint64_t kMagic = 0x7368772d63686b70;
  static constexpr const char* kNoun = "checkpoint";
  CallRuntime runtime;  // declared first: the checkpoint goes before it
  std::shared_ptr<const exec::Checkpoint> checkpoint;
  std::shared_ptr<CancellationImpl> cancellation;  // co-owned with the host's handle; may be null
  exec::ReadRules reading;
  int64_t deadline_ns = 0;
  TextColumn texts;            // those of the catalog by their ids, each with a NUL behind it
  uint64_t payload_bytes = 0;  // of the whole catalog: counted once, not for each read
  std::string format;
  std::string generation;
  std::vector<std::pair<std::string, std::string>> metadata;
};

struct SavePlannerImpl {
  static constexpr uint64_t kMagic = 0x7368772d73617665;
  static constexpr const char* kNoun = "save planner";
  CallRuntime runtime;
  std::shared_ptr<CancellationImpl> cancellation;  // co-owned with the host's handle; may be null
  std::unique_ptr<exec::SavePlanner> planner;
  int32_t world_size = 1;
  int64_t deadline_ns = 0;
  format::Location target;  // of the global plan; no storage before it
  std::string shown_path;   // as the host wrote it
  std::string generation;   // of the global plan
  Digest128 plan_digest{};
  plan::Bytes finished;  // this rank's plan
};

struct JobDescriptionImpl {
  static constexpr uint64_t kMagic = 0x7368772d6a6f6264;
  static constexpr const char* kNoun = "job description";
  job_description::JobDescription job;
};

struct LoadPlannerImpl {
  static constexpr uint64_t kMagic = 0x7368772d6c6f6164;
  static constexpr const char* kNoun = "load planner";
  CallRuntime runtime;
  std::shared_ptr<CheckpointImpl> checkpoint;
  std::shared_ptr<State> state;
  std::shared_ptr<CancellationImpl> cancellation;  // co-owned with the host's handle; may be null
  exec::LoadOptions options;
  int32_t rank = 0;
};

struct LoadExchangeImpl {
  static constexpr uint64_t kMagic = 0x7368772d6c657863;
  static constexpr const char* kNoun = "load exchange";
  std::shared_ptr<LoadPlannerImpl> planner;  // co-owned with the host's handle
  plan::LoadPlan plan;
  exec::CallContext call;
  std::unique_ptr<exec::PlannedLoad> load;  // last: it uses all of the above
};

}  // namespace shardwright::capi

struct shw_buffer : shardwright::capi::Handle<shardwright::capi::BufferImpl> {};
struct shw_report : shardwright::capi::Handle<shardwright::capi::ReportImpl> {};
struct shw_owned_tensor : shardwright::capi::Handle<shardwright::capi::OwnedTensorImpl> {};
struct shw_layout : shardwright::capi::Handle<shardwright::capi::LayoutImpl> {};
struct shw_state : shardwright::capi::Handle<shardwright::capi::StateImpl> {};
struct shw_mapping : shardwright::capi::Handle<shardwright::capi::MappingImpl> {};
struct shw_plan : shardwright::capi::Handle<shardwright::capi::PlanImpl> {};
struct shw_storage : shardwright::capi::Handle<shardwright::capi::StorageImpl> {};
struct shw_collective : shardwright::capi::Handle<shardwright::capi::CollectiveImpl> {};
struct shw_collective_group : shardwright::capi::Handle<shardwright::capi::CollectiveGroupImpl> {};
struct shw_context : shardwright::capi::Handle<shardwright::capi::Context> {};
struct shw_job : shardwright::capi::Handle<shardwright::capi::JobImpl> {};
struct shw_cancellation : shardwright::capi::Handle<shardwright::capi::CancellationImpl> {};
struct shw_checkpoint : shardwright::capi::Handle<shardwright::capi::CheckpointImpl> {};
struct shw_save_planner : shardwright::capi::Handle<shardwright::capi::SavePlannerImpl> {};
struct shw_job_description : shardwright::capi::Handle<shardwright::capi::JobDescriptionImpl> {};
struct shw_load_planner : shardwright::capi::Handle<shardwright::capi::LoadPlannerImpl> {};
struct shw_load_exchange : shardwright::capi::Handle<shardwright::capi::LoadExchangeImpl> {};

namespace shardwright::capi {

// Buffers out of the library's own results. The memory of parts is adopted.
Result<shw_buffer*> buffer_of(std::span<const std::byte> bytes);
Result<shw_buffer*> buffer_of(std::string_view text);
Result<shw_buffer*> buffer_of_parts(std::span<const std::string_view> parts);
Result<shw_buffer*> buffer_of_parts(std::span<const plan::Bytes> parts);
Result<shw_buffer*> buffer_of_parts(plan::PlanParts parts);

shw_report* report_of(exec::Report report);
// For calls that cannot be undone once they have succeeded: the handle is made before the call and
// filled after it, with as much of the report as there is memory for. A host that does not come to
// the second step has nothing to release.
class ReportHandle {
 public:
  ReportHandle();  // may throw std::bad_alloc
  ~ReportHandle();
  ReportHandle(const ReportHandle&) = delete;
  ReportHandle& operator=(const ReportHandle&) = delete;
  shw_report* fill(exec::Report report, const std::string& shown_path) noexcept;

 private:
  std::unique_ptr<shw_report> handle_;
};

// Text of the shape (pointer, *size): NUL-terminated view.
const char* text_out(std::string_view terminated, uint64_t* size) noexcept;

}  // namespace shardwright::capi
