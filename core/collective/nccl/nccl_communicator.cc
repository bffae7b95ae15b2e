// SPDX-License-Identifier: Apache-2.0
//
// NCCL is told not to block, so that a rank that waits for others can be woken and has a time
// limit: each call is made under the mutex, and what NCCL goes on with is asked for in between. An
// operation is: inputs ready on the caller's stream, NCCL's kernels on ours, an event behind them.
// Whoever finds a failure ends NCCL's communicator, whose kernels then leave the device; nothing is
// asked of it afterwards, as an event behind a kernel that was stopped passes, too.
#include "core/collective/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/base/cuda/cuda_calls.h"
#include "core/base/without_exceptions.h"
#include "core/collective/issue.h"
#include "core/collective/nccl/nccl_operation_internal.h"
#include "core/concurrency/mutex.h"

namespace shardwright::collective {
namespace internal {
namespace {

using cuda::DeviceScope;

constexpr int64_t kShortestPauseNs = 5'000;
constexpr int64_t kLongestPauseNs = 200'000;
constexpr int64_t kGoodbyeNs =
    int64_t{5} * 1'000'000'000;  // until others have what they need of us

// Pauses between questions, and how long to go on with them.
class Patience {
 public:
  explicit Patience(int64_t timeout_ns) {
    if (timeout_ns >= 0)
      limit_.end_within(real_clock().monotonic_ns(), std::max<int64_t>(1, timeout_ns));
  }
  bool is_over() const { return limit_.remaining_ns() == 0; }
  // Sleeps a little, longer each time, and no longer than the limit.
  void pause() {
    const int64_t left_ns = limit_.remaining_ns();
    real_clock().wait_ns(left_ns < 0 ? pause_ns_ : std::min(pause_ns_, left_ns));
    pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  }

 private:
  CallControl limit_;
  int64_t pause_ns_ = kShortestPauseNs;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(NcclRequest request, std::shared_ptr<const NcclLibrary> nccl)
      : request_(std::move(request)), nccl_(std::move(nccl)) {}
  ~NcclCommunicator() override;

  // Waits for all ranks.
  Status open();

  int32_t rank() const override { return request_.rank; }
  int32_t size() const override { return request_.size; }
  std::string_view name() const override { return "nccl"; }
  uint64_t capabilities() const override {
    return kCanAverage | kCanScaleSum | kInPlaceAllGather | kReachesDeviceMemory | kIsAsynchronous;
  }

  Result<WorkPtr> all_gather(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllGather, call, 0, in, out});
  }
  Result<WorkPtr> all_to_all(const CommunicatorCall& call, std::span<const std::byte> in,
                             std::span<std::byte> out) override {
    return issue({OperationKind::kAllToAll, call, 0, in, out});
  }
  Result<WorkPtr> reduce_scatter(const CommunicatorCall& call, std::span<const std::byte> in,
                                 std::span<std::byte> out) override {
    return issue({OperationKind::kReduceScatter, call, 0, in, out});
  }
  Result<WorkPtr> all_reduce(const CommunicatorCall& call, std::span<std::byte> data) override {
    return issue({OperationKind::kAllReduce, call, 0, {}, data});
  }
  Result<WorkPtr> broadcast(const CommunicatorCall& call, std::span<std::byte> data,
                            int32_t root) override {
    return issue({OperationKind::kBroadcast, call, root, {}, data});
  }
  Result<WorkPtr> barrier(const CommunicatorCall& call) override {
    return issue({OperationKind::kBarrier, call, 0, {}, {}});
  }
  void abort(const Status& cause) noexcept override SHW_EXCLUDES(mutex_);

  // Whether an event of ours has passed; what ended the communicator, and what NCCL found.
  Result<bool> has_passed(cudaEvent_t event) SHW_EXCLUDES(mutex_);
  // A stream goes on after an event of ours.
  Status order(uint64_t stream, cudaEvent_t event) SHW_EXCLUDES(mutex_);
  // Nothing that was issued touches its memory any more.
  void leave_the_device() noexcept;
  int32_t device() const { return request_.device; }

 private:
  Result<WorkPtr> issue(const TensorOperation& own);
  Status put_on_stream(const TensorOperation& own, uint64_t part_bytes, Patience patience);
  Status start_behind(uint64_t stream);
  // Until NCCL goes on with nothing by itself.
  Status settle(Patience patience, std::string_view doing) SHW_EXCLUDES(mutex_);
  Result<bool> is_settled(std::string_view doing) SHW_REQUIRES(mutex_);
  NcclPlace place() const SHW_REQUIRES(mutex_) {
    return {*nccl_, communicator_, stream_, barrier_cell_};
  }

  const NcclRequest request_;
  const std::shared_ptr<const NcclLibrary> nccl_;  // co-owned by all that use that file
  cudaStream_t stream_ = nullptr;
  cudaEvent_t inputs_ready_ = nullptr;
  int32_t* barrier_cell_ = nullptr;
  Mutex mutex_;
  ncclComm_t communicator_ SHW_GUARDED_BY(mutex_) = nullptr;  // null: not yet, or ended
  Status end_ SHW_GUARDED_BY(mutex_);                         // why it ended
};

// An operation on the stream. Destroying one that was handed to a stream waits for it, any other
// one that has not ended is given up.
class NcclWork final : public Work {
 public:
  NcclWork(NcclCommunicator& communicator, const TensorOperation& own)
      : communicator_(communicator), own_(own), patience_(own.call.timeout_ns) {}
  ~NcclWork() override;

  // The event behind the operation; made before anything is put on the stream.
  Status make_event();
  Status record(cudaStream_t stream);

  Result<bool> wait(int64_t timeout_ns) override;
  Result<bool> test() override { return wait(0); }
  Status order(uint64_t stream) override;

 private:
  Result<bool> look();
  Status fail(Status status);

  NcclCommunicator& communicator_;
  const TensorOperation own_;
  Patience patience_;
  cudaEvent_t event_ = nullptr;
  bool is_on_stream_ = false;
  bool has_ended_ = false;
  bool is_ordered_ = false;
  Status failure_;
};

// ---- the operation ----

NcclWork::~NcclWork() {
  const DeviceScope scope(communicator_.device());
  if (is_on_stream_ && !has_ended_) {
    if (is_ordered_ && failure_.ok())
      static_cast<void>(wait(-1));  // it fails where it is waited for
    if (!has_ended_) {
      communicator_.abort(without_exceptions("giving up a collective", [&] {
        return aborted(
                   fmt::format("rank {} gave up {}", communicator_.rank(), operation_title(own_)))
            .with_detail("rank", fmt::to_string(communicator_.rank()));
      }));
      communicator_.leave_the_device();
    }
  }
  if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
}

Status NcclWork::make_event() {
  return cuda::status_of(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
                         "making an event");
}

Status NcclWork::record(cudaStream_t stream) {
  SHW_RETURN_IF_ERROR(cuda::status_of(cudaEventRecord(event_, stream), "recording an event"));
  is_on_stream_ = true;
  return {};
}

Result<bool> NcclWork::wait(int64_t timeout_ns) {
  Patience caller(timeout_ns);
  for (;;) {
    SHW_ASSIGN_OR_RETURN(const bool ended, look());
    if (ended) return true;
    if (timeout_ns == 0 || caller.is_over()) return false;
    caller.pause();
  }
}

Result<bool> NcclWork::look() {
  SHW_RETURN_IF_ERROR(failure_);
  if (has_ended_) return true;
  const Result<bool> passed = communicator_.has_passed(event_);
  if (!passed.ok()) return fail(passed.status());
  has_ended_ = *passed;
  if (!has_ended_ && patience_.is_over())
    return fail(without_exceptions("waiting for NCCL", [&] {
      return deadline_exceeded(fmt::format("rank {}: {} did not end within {:g} s",
                                           communicator_.rank(), operation_title(own_),
                                           static_cast<double>(own_.call.timeout_ns) / 1e9));
    }));
  return has_ended_;
}

Status NcclWork::order(uint64_t stream) {
  SHW_RETURN_IF_ERROR(failure_);
  Status ordered = communicator_.order(stream, event_);
  if (!ordered.ok()) return fail(std::move(ordered));
  is_ordered_ = true;
  return {};
}

Status NcclWork::fail(Status status) {
  failure_ = std::move(status).with_detail("unit", fmt::to_string(own_.call.unit));
  communicator_.abort(failure_);
  communicator_.leave_the_device();
  return failure_;
}

// ---- the communicator ----

Status NcclCommunicator::open() {
  const DeviceScope scope(device());
  SHW_RETURN_IF_ERROR(scope.status());
  SHW_RETURN_IF_ERROR(cuda::status_of(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                      "making a stream"));
  SHW_RETURN_IF_ERROR(cuda::status_of(
      cudaEventCreateWithFlags(&inputs_ready_, cudaEventDisableTiming), "making an event"));
  SHW_RETURN_IF_ERROR(
      cuda::status_of(cudaMalloc(reinterpret_cast<void**>(&barrier_cell_), sizeof *barrier_cell_),
                      "allocating memory of the device"));
  SHW_RETURN_IF_ERROR(cuda::status_of(
      cudaMemsetAsync(barrier_cell_, 0, sizeof *barrier_cell_, stream_), "clearing memory"));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclUniqueId id{};
  std::memcpy(id.internal, request_.id.data(), sizeof id.internal);
  const std::string doing = fmt::format("joining {} ranks as rank {}", size(), rank());
  {
    const MutexLock lock(mutex_);
    SHW_RETURN_IF_ERROR(nccl_->status_of(
        nccl_->functions().init_rank(&communicator_, size(), id, rank(), &config), nullptr, doing));
  }
  return settle(Patience(request_.timeout_ns), doing);
}

NcclCommunicator::~NcclCommunicator() {
  const DeviceScope scope(device());
  {
    const MutexLock lock(mutex_);
    if (communicator_ != nullptr && end_.ok() &&
        nccl_->status_of(nccl_->functions().finalize(communicator_), communicator_, "").ok()) {
      // Others may still read what this rank has sent; who does not come is not waited for.
      Patience patience(kGoodbyeNs);
      Result<bool> settled = is_settled("leaving");
      for (; settled.ok() && !*settled && !patience.is_over(); settled = is_settled("leaving"))
        patience.pause();
      if (settled.ok() && *settled)
        static_cast<void>(nccl_->functions().destroy(std::exchange(communicator_, nullptr)));
    }
    if (communicator_ != nullptr)
      static_cast<void>(nccl_->functions().abort(std::exchange(communicator_, nullptr)));
  }
  leave_the_device();
  // What fails from here on has failed before.
  if (barrier_cell_ != nullptr) static_cast<void>(cudaFree(barrier_cell_));
  if (inputs_ready_ != nullptr) static_cast<void>(cudaEventDestroy(inputs_ready_));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
}

void NcclCommunicator::abort(const Status& cause) noexcept {
  const DeviceScope scope(device());
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return;
  end_ = cause.ok()
             ? without_exceptions("abort", [] { return aborted("the communicator was aborted"); })
             : cause;
  // It cannot be used whatever this says.
  static_cast<void>(nccl_->functions().abort(std::exchange(communicator_, nullptr)));
}

void NcclCommunicator::leave_the_device() noexcept {
  if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_));  // of what is known
}

Result<WorkPtr> NcclCommunicator::issue(const TensorOperation& own) {
  Result<WorkPtr> issued = issue_or_abort(*this, "issuing a collective", [&]() -> Result<WorkPtr> {
    SHW_ASSIGN_OR_RETURN(const uint64_t part_bytes, check_operation(own, rank(), size()));
    const DeviceScope scope(device());
    SHW_RETURN_IF_ERROR(scope.status());
    auto work = std::make_unique<NcclWork>(*this, own);
    SHW_RETURN_IF_ERROR(work->make_event());
    SHW_RETURN_IF_ERROR(put_on_stream(own, part_bytes, Patience(own.call.timeout_ns)));
    SHW_RETURN_IF_ERROR(work->record(stream_));
    return WorkPtr(std::move(work));
  });
  if (!issued.ok()) leave_the_device();
  return issued;
}

Status NcclCommunicator::put_on_stream(const TensorOperation& own, uint64_t part_bytes,
                                       Patience patience) {
  SHW_RETURN_IF_ERROR(start_behind(own.call.stream));
  NcclReduction reduction;
  {
    const MutexLock lock(mutex_);
    if (communicator_ == nullptr) return end_;
    if (reduces(own.kind)) SHW_RETURN_IF_ERROR(reduction.make(place(), own.call));
    SHW_RETURN_IF_ERROR(launch(place(), own, part_bytes, reduction));
  }
  SHW_RETURN_IF_ERROR(settle(patience, operation_title(own)));
  const MutexLock lock(mutex_);
  if (communicator_ != nullptr) reduction.give_back(place());
  return {};
}

// Stream 0 is the one on which everything runs that names none.
Status NcclCommunicator::start_behind(uint64_t stream) {
  const auto callers = reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream));
  SHW_RETURN_IF_ERROR(
      cuda::status_of(cudaEventRecord(inputs_ready_, callers), "recording an event"));
  return cuda::status_of(cudaStreamWaitEvent(stream_, inputs_ready_, 0),
                         "waiting for an event on a stream");
}

Status NcclCommunicator::settle(Patience patience, std::string_view doing) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (communicator_ == nullptr) return end_;
      SHW_ASSIGN_OR_RETURN(const bool settled, is_settled(doing));
      if (settled) return {};
    }
    if (patience.is_over())
      return deadline_exceeded(
          fmt::format("rank {}: {}: other ranks did not come in time", rank(), doing));
    patience.pause();
  }
}

Result<bool> NcclCommunicator::is_settled(std::string_view doing) {
  ncclResult_t state = ncclSuccess;
  SHW_RETURN_IF_ERROR(nccl_->status_of(nccl_->functions().get_async_error(communicator_, &state),
                                       communicator_, doing));
  SHW_RETURN_IF_ERROR(nccl_->status_of(state, communicator_, doing));
  return state != ncclInProgress;
}

Result<bool> NcclCommunicator::has_passed(cudaEvent_t event) {
  const DeviceScope scope(device());
  SHW_RETURN_IF_ERROR(scope.status());
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return end_;
  const cudaError_t answer = cudaEventQuery(event);
  // Asked for afterwards: where NCCL has found a failure, what passed may have been stopped.
  SHW_RETURN_IF_ERROR(is_settled("a collective under way").status());
  if (answer == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());  // it is no failure
    return false;
  }
  SHW_RETURN_IF_ERROR(cuda::status_of(answer, "asking for a collective"));
  return true;
}

Status NcclCommunicator::order(uint64_t stream, cudaEvent_t event) {
  const DeviceScope scope(device());
  SHW_RETURN_IF_ERROR(scope.status());
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return end_;
  return cuda::status_of(
      cudaStreamWaitEvent(reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(stream)), event, 0),
      "waiting for a collective on a stream");
}

Status check_ranks(const NcclRequest& request) {
  if (request.size >= 1 && request.rank >= 0 && request.rank < request.size) return {};
  return invalid_argument(
             fmt::format("rank {} of {} ranks does not exist", request.rank, request.size))
      .with_detail("parameter", "rank");
}

}  // namespace
}  // namespace internal

Result<CommunicatorPtr> make_nccl_communicator(const NcclRequest& request) {
  return without_exceptions("making a communicator over NCCL", [&]() -> Result<CommunicatorPtr> {
    SHW_RETURN_IF_ERROR(internal::check_ranks(request));
    SHW_RETURN_IF_ERROR(cuda::check_device(request.device));
    SHW_ASSIGN_OR_RETURN(auto nccl, internal::NcclLibrary::open(request.library));
    auto made = std::make_shared<internal::NcclCommunicator>(request, std::move(nccl));
    const Status opened = made->open();
    if (opened.ok()) return CommunicatorPtr(std::move(made));
    made->abort(opened);  // nobody is waited for any more
    return opened;
  });
}

}  // namespace shardwright::collective
